/* What the lanes of a warp do together, and copies that land late. */

namespace {

void checks_warp(unsigned lanes, bool orders_memory);
void checks_issue(const Copy &copy, const void *global);
void checks_land(const Copy &copy);

void finish_nothing(void *const *, unsigned) {}

void meet(const char *what, unsigned lanes, void *brought, Finish finish, int line)
{
    Thread &self = threads[running];
    int first = running / LANES * LANES;
    self.what = what;
    self.lanes = lanes & existing(running / LANES);
    self.brought = brought;
    self.line = line;
    self.state = IN_WARP;
    void *all[LANES] = {};
    for (int i = 0; i < LANES; ++i)
        if (self.lanes >> i & 1) {
            const Thread &other = threads[first + i];
            if (other.state != IN_WARP || !same(other, self))
                return wait_as(IN_WARP, line); /* somebody has yet to come, or waits elsewhere */
            all[i] = other.brought;
        }
    finish(all, self.lanes);
    for (int i = 0; i < LANES; ++i)
        if (self.lanes >> i & 1)
            threads[first + i].state = READY;
    if (request->checked)
        checks_warp(self.lanes, finish == finish_nothing);
}

} // namespace

extern "C" void em_warp(const char *what, unsigned lanes, void *brought, Finish finish, int line)
{
    if (!(lanes >> running % LANES & 1))
        em_refuse("it takes part, but its own lane is not named", line);
    meet(what, lanes, brought, finish, line);
}

extern "C" void em_whole_warp(const char *what, void *brought, Finish finish, int line)
{
    if (existing(running / LANES) != 0xffffffffu)
        em_refuse("it takes a whole warp, and the block's last one has fewer threads", line);
    meet(what, 0xffffffffu, brought, finish, line);
}

extern "C" void em_warp_barrier(unsigned lanes, int line)
{
    em_warp("__syncwarp", lanes, nullptr, finish_nothing, line);
}

extern "C" void em_copy_async(void *shared, const void *global, int bytes, int line)
{
    Thread &self = threads[running];
    Copy copy = {(char *)shared, {}, bytes, self.groups, line};
    if (((uintptr_t)shared | (uintptr_t)global) % bytes != 0)
        em_refuse("an address of a copy is not aligned to its size", line);
    if (request->checked)
        checks_issue(copy, global);
    memcpy(copy.bytes, global, bytes);
    self.copies.push_back(copy);
}

extern "C" void em_copy_commit(void) { ++threads[running].groups; }

/* Land the copies of all committed groups but the last `pending` ones. */
extern "C" void em_copy_wait(int pending)
{
    Thread &self = threads[running];
    std::vector<Copy> later;
    for (const Copy &copy : self.copies)
        if (copy.group < self.groups - pending) {
            if (request->checked)
                checks_land(copy);
            memcpy(copy.to, copy.bytes, copy.size);
        } else
            later.push_back(copy);
    self.copies.swap(later);
}
