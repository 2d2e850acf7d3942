/* What checked mode knows of memory: who wrote and read each granule last, and what stands between.

   Two accesses of one granule by two threads, one of them a write, are a race unless a barrier of
   the block stands between them, or __syncwarp of a warp that both are in, or both are atomic;
   between blocks nothing stands. The kernel's loads and stores call the functions at the end, which
   the compiler inserts for -fsanitize=thread. */

#include <algorithm>

namespace {

/* An access: when, by whom, where in the source. Epoch 0: never. */
struct Mark {
    uint32_t epoch, clock, site;
    uint32_t thread;
};

/* Who made accesses of one kind: the last; the last by another thread of its warp; the last by
   another warp; the last by another block. Any that a later access conflicts with is among these, or
   one of these conflicts with it as well. */
struct Marks {
    Mark last, in_warp, in_block, before;
};

/* Of one granule. pending: a copy on its way here. */
struct Cell {
    Mark write, pending;
    Marks reads;
};

struct Range {
    uintptr_t begin, end;
    Number granule, kind, memory;
    Cell *cells;
    Marks *atomics; /* of each granule; touched only where there are any */
    bool has_atomics;
    size_t granules() const { return (size_t)(end - begin) / granule + 1; }
};

/* One place of the source that touches one range; what its warps asked for is summed up. */
struct SiteSum {
    SiteRow row;
    uint64_t key;
};

/* A barrier of the source: how often a block passed it, and how often something needed it: accesses
   by two threads just before it and just after it that conflict without it. */
struct BarrierSum {
    Number line, passed, needed;
};

struct Record {
    uint32_t site, phase;
    uintptr_t address;
};

const size_t MOST_RECORDS = 1 << 16; /* of a thread between two barriers; no more are summed up */
const size_t SITE_SLOTS = 1 << 14;

std::vector<Range> ranges;
std::vector<SiteSum> sites;
std::vector<uint32_t> site_slots; /* by hash: a site's number plus one */
std::vector<uint32_t> block_epochs; /* the first of each block */
std::vector<uint32_t> clocks;       /* of each thread, what it knows of each lane of its warp */
std::vector<uint32_t> phases;       /* of each thread: how often its warp met */
std::vector<std::vector<Record>> records;
std::vector<BarrierSum> barriers;
size_t last_barrier; /* that the block passed; none: as many as there are */
bool last_is_needed;
uint32_t epoch, block_epoch;
size_t last_range;

uint32_t site_number(Site site, Number action, const Range &range, int bytes)
{
    uint64_t key = ((uint64_t)site * 4 + (uint64_t)action) * 4096 + (uint64_t)range.memory;
    size_t slot = (key * 0x9e3779b97f4a7c15u) >> 50;
    for (;; slot = (slot + 1) % SITE_SLOTS) {
        uint32_t known = site_slots[slot];
        if (known == 0)
            break;
        if (sites[known - 1].key == key && sites[known - 1].row.bytes == bytes)
            return known - 1;
    }
    if (sites.size() < SITE_SLOTS / 2) {
        sites.push_back({{site, action, range.memory, bytes, 0, 0, 0, 0}, key});
        site_slots[slot] = (uint32_t)sites.size();
    }
    return (uint32_t)sites.size() - 1;
}

Party party_of(const Mark &mark, Number action)
{
    auto after = std::upper_bound(block_epochs.begin(), block_epochs.end(), mark.epoch);
    return {after - block_epochs.begin() - 1, mark.thread, sites[mark.site].row.site, action};
}

/* Does what the mark says come before what this thread does now, for every run? */
bool comes_before(const Mark &mark)
{
    if (mark.epoch == 0)
        return true;
    if (mark.epoch < block_epoch)
        return false; /* another block */
    if (mark.epoch < epoch || mark.thread == (uint32_t)running)
        return true;
    if (mark.thread / LANES != (uint32_t)running / LANES)
        return false;
    return mark.clock <= clocks[(size_t)running * LANES + mark.thread % LANES];
}

/* Does nothing but the last barrier stand between? */
bool stands_alone(const Mark &mark)
{
    if (mark.epoch < block_epoch || mark.epoch + 1 != epoch || mark.thread == (uint32_t)running)
        return false;
    if (mark.thread / LANES != (uint32_t)running / LANES)
        return true;
    return mark.clock > clocks[(size_t)running * LANES + mark.thread % LANES];
}

struct Access {
    Range &range;
    uintptr_t address;
    int bytes;
    Action action;
    uint32_t site;

    size_t first() const { return (address - range.begin) / range.granule; }
    size_t last() const { return (address + bytes - 1 - range.begin) / range.granule; }
    Number offset(size_t cell) const { return (Number)(cell * range.granule); }
    Mark mark() const
    {
        uint32_t clock = clocks[(size_t)running * LANES + running % LANES];
        return {epoch, clock, site, (uint32_t)running};
    }
    Party now() const { return party(running, sites[site].row.site, action); }
};

void note_race(const Access &access, size_t cell, const Mark &other, Number action)
{
    report(RACE, party_of(other, action), access.now(), access.range.memory, access.offset(cell));
}

/* Shared memory is new for each block, so marks of another block say nothing there. */
bool is_known(const Access &access, const Mark &mark)
{
    return mark.epoch >= (access.range.kind == SHARED ? block_epoch : 1);
}

/* An earlier access that this one conflicts with unless something stands between; whether nothing
   does. */
bool is_conflict(const Access &access, size_t at, const Mark &mark, Number action)
{
    if (!is_known(access, mark))
        return false;
    last_is_needed |= stands_alone(mark);
    if (comes_before(mark))
        return false;
    note_race(access, at, mark, action);
    return true;
}

void check_against(const Access &access, size_t at, const Marks &marks, Number action)
{
    for (const Mark *mark : {&marks.last, &marks.in_warp, &marks.in_block, &marks.before})
        if (is_conflict(access, at, *mark, action))
            return;
}

void check_against_all(const Access &access, size_t at)
{
    is_conflict(access, at, access.range.cells[at].write, WRITE);
    if (access.action != READ)
        check_against(access, at, access.range.cells[at].reads, READ);
    if (access.action != ATOMIC && access.range.has_atomics)
        check_against(access, at, access.range.atomics[at], ATOMIC);
}

/* In this block, by whatever means, or about to be. */
bool was_written(const Access &access, size_t at)
{
    const Cell &cell = access.range.cells[at];
    return cell.write.epoch >= block_epoch || cell.pending.epoch >= block_epoch ||
           (access.range.has_atomics && access.range.atomics[at].last.epoch >= block_epoch);
}

void check_pending(const Access &access, size_t at)
{
    const Mark &pending = access.range.cells[at].pending;
    if (pending.epoch >= block_epoch && pending.epoch != 0)
        report(EARLY, party_of(pending, WRITE), access.now(), access.range.memory,
               access.offset(at));
}

void remember(Marks &marks, const Mark &mark)
{
    Mark &last = marks.last;
    if (last.epoch != 0 && last.epoch < block_epoch)
        marks = {Mark(), Mark(), Mark(), last};
    else if (last.epoch != 0 && last.thread / LANES != mark.thread / LANES)
        marks = {Mark(), Mark(), last, marks.before};
    else if (last.epoch != 0 && last.thread != mark.thread)
        marks.in_warp = last;
    last = mark;
}

/* Global memory that nobody may read before a kernel writes it. */
void note_fresh(const Access &access)
{
    char *written = request->memory[access.range.memory].written;
    if (!written)
        return;
    Number offset = (Number)(access.address - access.range.begin);
    for (Number at = offset; at < offset + access.bytes; ++at) {
        if (access.action != WRITE && !written[at]) {
            report(UNWRITTEN, access.now(), NOBODY, access.range.memory, at);
            break;
        }
    }
    if (access.action != READ)
        memset(written + offset, 1, access.bytes);
}

/* One access of every granule that it touches. */
void note(const Access &access)
{
    Mark mark = access.mark();
    access.range.has_atomics |= access.action == ATOMIC;
    for (size_t at = access.first(); at <= access.last(); ++at) {
        Cell &cell = access.range.cells[at];
        check_pending(access, at);
        check_against_all(access, at);
        if (access.action != WRITE && access.range.kind == SHARED && !was_written(access, at))
            report(UNWRITTEN, access.now(), NOBODY, access.range.memory, access.offset(at));
        if (access.action == READ) {
            remember(cell.reads, mark);
        } else if (access.action == ATOMIC) {
            remember(access.range.atomics[at], mark);
        } else {
            cell.write = mark;
            if (access.range.has_atomics)
                access.range.atomics[at] = Marks();
        }
    }
}

/* The range of an address; where there is none, the launch ends. */
Range &range_of(uintptr_t address, int bytes, Number action, Site site)
{
    if (last_range >= ranges.size() || address < ranges[last_range].begin ||
        address >= ranges[last_range].end)
        for (last_range = 0; last_range < ranges.size(); ++last_range)
            if (address >= ranges[last_range].begin && address < ranges[last_range].end)
                break;
    if (last_range < ranges.size() && address + bytes <= ranges[last_range].end)
        return ranges[last_range];
    Range *nearest = nullptr;
    uintptr_t distance = UINTPTR_MAX;
    for (Range &range : ranges) {
        uintptr_t away = address < range.begin ? range.begin - address
                         : address >= range.end ? address - range.end
                                                : 0;
        if (away < distance)
            distance = away, nearest = &range;
    }
    Party now = party(running, site, action);
    if (nearest) {
        /* of an access that begins inside, the first byte outside */
        uintptr_t outside = distance == 0 && address < nearest->end ? nearest->end : address;
        Number offset = (Number)outside - (Number)nearest->begin;
        report(OUT_OF_BOUNDS, now, NOBODY, nearest->memory, offset);
    } else {
        report(OUT_OF_BOUNDS, now, NOBODY);
    }
    leave();
}

bool is_private(uintptr_t address)
{
    return address - (uintptr_t)stacks < stacks_bytes ||
           (address >= (uintptr_t)&threadIdx && address < (uintptr_t)(&threadIdx + 1)) ||
           (address >= (uintptr_t)&blockIdx && address < (uintptr_t)(&blockIdx + 1)) ||
           (address >= (uintptr_t)&blockDim && address < (uintptr_t)(&blockDim + 1)) ||
           (address >= (uintptr_t)&gridDim && address < (uintptr_t)(&gridDim + 1));
}

/* One load or store of the running thread, before it happens. */
void touch(uintptr_t address, int bytes, Action action, Site site, bool must_be_aligned)
{
    if (!emulating || !request->checked || is_private(address))
        return;
    Range &range = range_of(address, bytes, action, site);
    Number offset = (Number)(address - range.begin);
    if (must_be_aligned && address % bytes != 0) {
        report(MISALIGNED, party(running, site, action), NOBODY, range.memory, offset);
        leave();
    }
    Access access = {range, address, bytes, action, site_number(site, action, range, bytes)};
    if (range.kind == CONSTANT && action != READ)
        report(READ_ONLY, access.now(), NOBODY, range.memory, offset);
    auto &own = records[running];
    if (own.size() < MOST_RECORDS)
        own.push_back({access.site, phases[running], address});
    note_fresh(access);
    note(access);
}

void checks_issue(const Copy &copy, const void *global)
{
    touch((uintptr_t)global, copy.size, READ, -copy.line, true);
    auto to = (uintptr_t)copy.to;
    Range &range = range_of(to, copy.size, WRITE, -copy.line);
    Access access = {range, to, copy.size, WRITE, site_number(-copy.line, WRITE, range, copy.size)};
    Range &from = range_of((uintptr_t)global, copy.size, READ, -copy.line);
    if (range.kind != SHARED || from.kind == SHARED)
        em_refuse("a copy goes from global memory to shared memory and nowhere else", copy.line);
    if (records[running].size() < MOST_RECORDS)
        records[running].push_back({access.site, phases[running], to});
    for (size_t at = access.first(); at <= access.last(); ++at) {
        check_pending(access, at);
        check_against_all(access, at);
        range.cells[at].pending = access.mark();
    }
}

/* The bytes are there, for this thread; for others after a barrier. */
void checks_land(const Copy &copy)
{
    auto to = (uintptr_t)copy.to;
    Range &range = range_of(to, copy.size, WRITE, -copy.line);
    Access access = {range, to, copy.size, WRITE, site_number(-copy.line, WRITE, range, copy.size)};
    for (size_t at = access.first(); at <= access.last(); ++at) {
        range.cells[at].pending = Mark();
        range.cells[at].write = access.mark();
        if (range.has_atomics)
            range.atomics[at] = Marks();
    }
}

/* Lanes met; __syncwarp also orders what they did in memory. */
void checks_warp(unsigned lanes, bool orders_memory)
{
    size_t first = (size_t)(running / LANES) * LANES;
    uint32_t joined[LANES] = {};
    for (int lane = 0; lane < LANES; ++lane)
        if (lanes >> lane & 1) {
            ++phases[first + lane];
            for (int other = 0; other < LANES; ++other)
                joined[other] = std::max(joined[other], clocks[(first + lane) * LANES + other]);
        }
    for (int lane = 0; lane < LANES && orders_memory; ++lane)
        if (lanes >> lane & 1) {
            std::copy(joined, joined + LANES, &clocks[(first + lane) * LANES]);
            ++clocks[(first + lane) * LANES + lane];
        }
}

/* Zeros that cost nothing until they are touched. */
void *fresh(size_t bytes)
{
    void *made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? nullptr : made;
}

void checks_begin_launch()
{
    ranges.clear();
    sites.clear();
    site_slots.assign(SITE_SLOTS, 0);
    block_epochs.clear();
    records.assign(threads.size(), {});
    barriers.clear();
    epoch = 0;
    last_range = 0;
    for (Number i = 0; i < request->memories && !stopped; ++i) {
        const Memory &memory = request->memory[i];
        Range range = {memory.begin, memory.begin + memory.bytes, memory.granule, memory.kind, i,
                       nullptr, nullptr, false};
        range.cells = (Cell *)fresh(range.granules() * sizeof(Cell));
        range.atomics = (Marks *)fresh(range.granules() * sizeof(Marks));
        ranges.push_back(range);
        if (!range.cells || !range.atomics) {
            report(REFUSED, NOBODY, NOBODY, i, 0, "there is no memory to check this array");
            stopped = true;
        }
    }
}

void checks_begin_block()
{
    last_barrier = barriers.size();
    last_is_needed = false;
    block_epoch = ++epoch;
    block_epochs.push_back(epoch);
    phases.assign(threads.size(), 0);
    clocks.assign((size_t)warps * LANES * LANES, 0);
    for (size_t i = 0; i < threads.size(); ++i)
        clocks[i * LANES + i % LANES] = 1;
}

void sum_up_block();

void sum_up_barrier()
{
    if (last_barrier < barriers.size())
        barriers[last_barrier].needed += last_is_needed;
    last_is_needed = false;
}

void checks_barrier(int line)
{
    ++epoch;
    sum_up_block();
    sum_up_barrier();
    for (last_barrier = 0; last_barrier < barriers.size(); ++last_barrier)
        if (barriers[last_barrier].line == line)
            break;
    if (last_barrier == barriers.size())
        barriers.push_back({line, 0, 0});
    ++barriers[last_barrier].passed;
}

void checks_end_block()
{
    sum_up_block();
    sum_up_barrier();
}

void checks_end_launch()
{
    for (const Range &range : ranges) {
        munmap(range.cells, range.granules() * sizeof(Cell));
        munmap(range.atomics, range.granules() * sizeof(Marks));
    }
    for (const SiteSum &site : sites)
        if (site.row.requests && found[1] < request->sites)
            site_rows[found[1]++] = site.row;
    for (const BarrierSum &sum : barriers)
        if (found[1] < request->sites)
            site_rows[found[1]++] = {-sum.line, AT_BARRIER, -1, 0, sum.passed, sum.needed, 0, 0};
}

} // namespace

extern "C" void em_touch(const void *address, int bytes, int action, int line)
{
    touch((uintptr_t)address, bytes, (Action)action, -line, false);
}

#define TOUCH(bytes, action, aligned) \
    touch((uintptr_t)address, bytes, action, (Site)__builtin_return_address(0), aligned)
#define ACCESS(bytes) \
    void __tsan_read##bytes(void *address) { TOUCH(bytes, READ, true); } \
    void __tsan_write##bytes(void *address) { TOUCH(bytes, WRITE, true); } \
    void __tsan_unaligned_read##bytes(void *address) { TOUCH(bytes, READ, false); } \
    void __tsan_unaligned_write##bytes(void *address) { TOUCH(bytes, WRITE, false); }
extern "C" {
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *address, long bytes) { TOUCH((int)bytes, READ, false); }
void __tsan_write_range(void *address, long bytes) { TOUCH((int)bytes, WRITE, false); }
void *__tsan_memcpy(void *address, const void *from, size_t bytes)
{
    TOUCH((int)bytes, WRITE, false);
    touch((uintptr_t)from, (int)bytes, READ, (Site)__builtin_return_address(0), false);
    return memcpy(address, from, bytes);
}
void *__tsan_memset(void *address, int value, size_t bytes)
{
    TOUCH((int)bytes, WRITE, false);
    return memset(address, value, bytes);
}
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
}
