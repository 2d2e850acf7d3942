/* What a warp's accesses cost: sectors of global memory, passes over the banks of shared memory.

   The n-th access of a place by a lane, counted since its warp met last, is taken to be one request
   with the n-th of the other lanes. */

namespace {

struct Request32 {
    uintptr_t address[LANES];
    int lanes; /* how many addresses */
    int lane[LANES];
};

/* Distinct values among the first `count`; sorts them. */
int distinct(uintptr_t *values, int count)
{
    std::sort(values, values + count);
    return (int)(std::unique(values, values + count) - values);
}

/* Shared memory gives 32 words of 4 bytes from different banks in a pass; a request of 8 or 16
   bytes a lane goes by halves or quarters of a warp. */
void sum_up_shared(SiteRow &row, const Request32 &asked)
{
    int wide = row.bytes <= 4 ? 1 : (int)row.bytes / 4;
    for (int part = 0; part < wide; ++part) {
        uintptr_t words[LANES * 4];
        int count = 0, in_bank[LANES] = {}, degree = 0;
        for (int i = 0; i < asked.lanes; ++i)
            if (asked.lane[i] * wide / LANES == part)
                for (int word = 0; word < wide; ++word)
                    words[count++] = asked.address[i] / 4 + word;
        count = distinct(words, count);
        for (int i = 0; i < count; ++i)
            degree = std::max(degree, ++in_bank[words[i] % LANES]);
        row.parts += degree;
        row.least += degree > 0;
        row.worst = std::max(row.worst, (Number)degree);
    }
}

/* Global memory goes by sectors of 32 bytes. */
void sum_up_global(SiteRow &row, const Request32 &asked)
{
    uintptr_t bytes[LANES], sectors[LANES * 2];
    int count = 0;
    for (int i = 0; i < asked.lanes; ++i) {
        bytes[i] = asked.address[i];
        sectors[count++] = asked.address[i] / 32;
        sectors[count++] = (asked.address[i] + row.bytes - 1) / 32;
    }
    count = distinct(sectors, count);
    int starts = distinct(bytes, asked.lanes);
    uintptr_t covered = 0, end = 0;
    for (int i = 0; i < starts; ++i) {
        uintptr_t from = std::max(bytes[i], end);
        end = bytes[i] + row.bytes;
        covered += end > from ? end - from : 0;
    }
    row.parts += count;
    row.least += (covered + 31) / 32;
    row.worst = std::max(row.worst, (Number)count);
}

void sum_up(uint32_t site, const Request32 &asked)
{
    SiteRow &row = sites[site].row;
    ++row.requests;
    if (request->memory[row.memory].kind == SHARED)
        sum_up_shared(row, asked);
    else
        sum_up_global(row, asked);
}

/* Do all lanes have the same places in the same order? Then each column is a request. */
bool in_step(int first, int count)
{
    const auto &one = records[first];
    for (int i = first + 1; i < first + count; ++i) {
        if (records[i].size() != one.size())
            return false;
        for (size_t n = 0; n < one.size(); ++n)
            if (records[i][n].site != one[n].site || records[i][n].phase != one[n].phase)
                return false;
    }
    return true;
}

void sum_up_columns(int first, int count)
{
    for (size_t n = 0; n < records[first].size(); ++n) {
        Request32 asked;
        asked.lanes = count;
        for (int i = 0; i < count; ++i) {
            asked.lane[i] = i;
            asked.address[i] = records[first + i][n].address;
        }
        sum_up(records[first][n].site, asked);
    }
}

struct Ask {
    uint64_t key; /* site and phase */
    uint32_t turn;
    int lane;
    uintptr_t address;
};

bool is_same(const Ask &a, const Ask &b) { return a.key == b.key && a.turn == b.turn; }

void sum_up_sorted(int first, int count)
{
    std::vector<Ask> asks;
    for (int i = 0; i < count; ++i) {
        size_t begin = asks.size();
        for (const Record &record : records[first + i])
            asks.push_back({(uint64_t)record.site << 32 | record.phase, 0, i, record.address});
        std::stable_sort(asks.begin() + begin, asks.end(),
                         [](const Ask &a, const Ask &b) { return a.key < b.key; });
        for (size_t n = begin + 1; n < asks.size(); ++n)
            asks[n].turn = asks[n].key == asks[n - 1].key ? asks[n - 1].turn + 1 : 0;
    }
    std::stable_sort(asks.begin(), asks.end(), [](const Ask &a, const Ask &b) {
        return a.key != b.key ? a.key < b.key : a.turn < b.turn;
    });
    for (size_t n = 0; n < asks.size();) {
        Request32 asked;
        asked.lanes = 0;
        size_t begin = n;
        for (; n < asks.size() && is_same(asks[n], asks[begin]); ++n) {
            asked.lane[asked.lanes] = asks[n].lane;
            asked.address[asked.lanes++] = asks[n].address;
        }
        sum_up((uint32_t)(asks[begin].key >> 32), asked);
    }
}

void sum_up_block()
{
    int all = (int)threads.size();
    for (int first = 0; first < all; first += LANES) {
        int count = std::min(LANES, all - first);
        if (in_step(first, count))
            sum_up_columns(first, count);
        else
            sum_up_sorted(first, count);
    }
    for (auto &own : records)
        own.clear();
}

} // namespace
