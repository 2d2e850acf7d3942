/* The device of the emulation: a grid's blocks one after the other, a block's threads as fibers.

   One fiber runs until it waits or ends; nothing interrupts it, so a run is the same each time. A
   finding that leaves no way to go on stops the launch. */

#include <cstdint>
#include <cstring>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <vector>

struct em_index { unsigned x, y, z; };
extern "C" {
em_index threadIdx, blockIdx, blockDim, gridDim; /* of the fiber that runs */
}

namespace {

using Entry = void (*)(void *const *);
using Finish = void (*)(void *const *, unsigned);
using Number = long long;
using Site = Number; /* below 0: a line; above: the address after an access */

enum Action { READ, WRITE, ATOMIC, READY, AT_BARRIER, IN_WARP, DONE };
enum Fault {
    RACE, OUT_OF_BOUNDS, UNWRITTEN, BARRIER, WARP, EARLY, MISALIGNED, READ_ONLY, REFUSED, CRASH
};
enum { GLOBAL, SHARED, CONSTANT };

/* Bytes on their way to shared memory. */
struct Copy {
    char *to;
    char bytes[16];
    int size, group, line;
};

struct Thread {
    void *stack_pointer;
    Action state;
    int line;         /* where it waits */
    const char *what; /* the function of a warp that it waits in */
    unsigned lanes;   /* that it names, of those that there are */
    void *brought;
    em_index index;
    std::vector<Copy> copies;
    int groups; /* of copies, committed */
};

/* One launch as the caller describes it, and where its findings go; see emulation_launch.py. */
struct Memory {
    uintptr_t begin;
    Number bytes, granule, kind;
    char *written; /* of each byte, over all launches; null: all are */
};
struct Request {
    Number grid[3], block[3], checked, findings, sites, memories;
    Memory memory[1];
};
struct Party {
    Number block, thread;
    Site site;
    Number action;
};
struct Finding {
    Number fault, times, memory, offset;
    Party first, second;
    const char *text;
};
struct SiteRow { /* AT_BARRIER: requests is how often it was passed, parts how often needed */
    Site site;
    Number action, memory, bytes, requests, parts, least, worst;
};

const int LANES = 32;
const size_t STACK = (64 << 10) + 320; /* no power of two: or all would share a cache's sets */

const Request *request;
Finding *findings;
Number *found; /* how many findings, then how many sites */
SiteRow *site_rows;
Entry entry;
void *const *entry_arguments;
std::vector<Thread> threads;
int running, block_number, warps;
bool stopped;
char *stacks;
size_t stacks_bytes;
void *home;
sigjmp_buf crashed;
volatile sig_atomic_t emulating;
pthread_t emulator;

unsigned existing(int warp)
{
    int left = (int)threads.size() - warp * LANES;
    return left >= LANES ? 0xffffffffu : (1u << left) - 1;
}

void report(Fault fault, Party first, Party second, Number memory = -1, Number offset = 0,
            const char *text = nullptr)
{
    for (Number i = 0; i < found[0]; ++i) {
        Finding &known = findings[i];
        if (known.fault == fault && known.first.site == first.site &&
            known.second.site == second.site && known.memory == memory) {
            ++known.times;
            return;
        }
    }
    if (found[0] < request->findings)
        findings[found[0]++] = {fault, 1, memory, offset, first, second, text};
}

Party party(int thread, Site site, Number action = READY)
{
    return {block_number, thread, site, action};
}
const Party NOBODY = {-1, -1, 0, 0};

} // namespace

extern "C" void em_switch(void **save, void *load) __attribute__((visibility("hidden")));
#if defined(__x86_64__)
__asm__(".text\n.p2align 4\n.globl em_switch\n.hidden em_switch\n.type em_switch,@function\n"
        "em_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size em_switch,.-em_switch\n");
const int ENTRY = 6, FRAME = 8; /* words below a stack's top: where the first return goes, all */
#elif defined(__aarch64__)
__asm__(".text\n.p2align 4\n.globl em_switch\n.hidden em_switch\n.type em_switch,%function\n"
        "em_switch:\n"
        "sub sp, sp, #160\n"
        "stp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\n"
        "stp x25, x26, [sp, #48]\nstp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\n"
        "mov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\n"
        "ldp x25, x26, [sp, #48]\nldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\nret\n"
        ".size em_switch,.-em_switch\n");
const int ENTRY = 11, FRAME = 20;
#else
#error "the emulation switches threads on x86-64 and 64-bit ARM"
#endif

namespace {

[[noreturn]] void leave()
{
    stopped = true;
    void *lost;
    em_switch(&lost, home);
    __builtin_unreachable();
}

void wait_as(Action state, int line)
{
    Thread &self = threads[running];
    self.state = state;
    self.line = line;
    em_switch(&self.stack_pointer, home);
}

void fiber()
{
    entry(entry_arguments);
    wait_as(DONE, 0);
    __builtin_unreachable();
}

/* A fiber that starts when it is switched to. */
void *fresh_stack(int thread)
{
    auto top = (uintptr_t)(stacks + (size_t)(thread + 1) * STACK) & ~(uintptr_t)15;
    auto *frame = (void **)(top - FRAME * sizeof(void *));
    memset(frame, 0, FRAME * sizeof(void *));
    frame[ENTRY] = (void *)fiber;
    return frame;
}

void run(int thread)
{
    running = thread;
    threadIdx = threads[thread].index;
    em_switch(&home, threads[thread].stack_pointer);
}

bool same(const Thread &a, const Thread &b)
{
    return a.lanes == b.lanes && a.line == b.line && a.what == b.what;
}

/* Nobody can run: whoever waits in a warp waits for ever; else a thread left before a barrier. */
void report_stuck()
{
    int count = (int)threads.size();
    for (int i = 0; i < count; ++i) {
        const Thread &waiting = threads[i];
        if (waiting.state != IN_WARP)
            continue;
        for (int lane = 0; lane < LANES; ++lane) {
            int other = i / LANES * LANES + lane;
            if (!(waiting.lanes >> lane & 1) || other == i)
                continue;
            if (threads[other].state != IN_WARP || !same(threads[other], waiting))
                return report(WARP, party(i, -waiting.line, IN_WARP),
                              party(other, -threads[other].line, threads[other].state));
        }
    }
    int waits = 0, left = 0;
    for (int i = 0; i < count; ++i) {
        waits = threads[i].state == AT_BARRIER && threads[waits].state != AT_BARRIER ? i : waits;
        left = threads[i].state == DONE && threads[left].state != DONE ? i : left;
    }
    report(BARRIER, party(waits, -threads[waits].line, AT_BARRIER), party(left, 0, DONE));
}

void checks_begin_launch();
void checks_begin_block();
void checks_barrier(int line);
void checks_end_block();
void checks_end_launch();

/* All wait at a barrier: at the same one? Then they go on. */
void pass_barrier()
{
    for (size_t i = 1; i < threads.size(); ++i)
        if (threads[i].line != threads[0].line) {
            report(BARRIER, party(0, -threads[0].line, AT_BARRIER),
                   party((int)i, -threads[i].line, AT_BARRIER));
            stopped = true;
            return;
        }
    for (Thread &thread : threads)
        thread.state = READY;
    if (request->checked)
        checks_barrier(threads[0].line);
}

/* Run a warp until none of its lanes can go on; whether any could. */
bool run_warp(int warp)
{
    int first = warp * LANES, last = first + LANES;
    last = last > (int)threads.size() ? (int)threads.size() : last;
    bool moved = false, again = true;
    while (again && !stopped) {
        again = false;
        for (int i = first; i < last && !stopped; ++i)
            if (threads[i].state == READY) {
                run(i);
                moved = again = true;
            }
    }
    return moved;
}

void run_block()
{
    for (Number i = 0; i < request->memories; ++i)
        if (request->memory[i].kind == SHARED) /* nobody may rely on what lies there: NaN */
            memset((void *)request->memory[i].begin, 0xff, request->memory[i].bytes);
    unsigned i = 0;
    for (unsigned z = 0; z < blockDim.z; ++z)
        for (unsigned y = 0; y < blockDim.y; ++y)
            for (unsigned x = 0; x < blockDim.x; ++x, ++i) {
                Thread &thread = threads[i];
                thread.stack_pointer = fresh_stack(i);
                thread.state = READY;
                thread.index = {x, y, z};
                thread.copies.clear();
                thread.groups = 0;
            }
    while (!stopped) {
        bool moved = false;
        for (int warp = 0; warp < warps && !stopped; ++warp)
            moved |= run_warp(warp);
        size_t at_barrier = 0, done = 0;
        for (const Thread &thread : threads) {
            at_barrier += thread.state == AT_BARRIER;
            done += thread.state == DONE;
        }
        if (stopped || done == threads.size())
            return;
        if (at_barrier == threads.size())
            pass_barrier();
        else if (!moved) {
            report_stuck();
            stopped = true;
        }
    }
}

/* A kernel that crashes ends its launch, not the process. */
struct sigaction before[3];
const int SIGNALS[3] = {SIGSEGV, SIGBUS, SIGFPE};

void on_crash(int signal, siginfo_t *, void *)
{
    if (emulating && pthread_equal(pthread_self(), emulator))
        siglongjmp(crashed, signal);
    for (int i = 0; i < 3; ++i)
        sigaction(SIGNALS[i], &before[i], nullptr);
}

void run_grid()
{
    static char signal_stack[64 << 10];
    stack_t old_stack, own_stack = {};
    own_stack.ss_sp = signal_stack;
    own_stack.ss_size = sizeof signal_stack;
    sigaltstack(&own_stack, &old_stack);
    struct sigaction action = {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 3; ++i)
        sigaction(SIGNALS[i], &action, &before[i]);
    emulator = pthread_self();
    emulating = 1;
    int signal = sigsetjmp(crashed, 1);
    if (signal == 0) {
        for (blockIdx.z = 0; blockIdx.z < gridDim.z && !stopped; ++blockIdx.z)
            for (blockIdx.y = 0; blockIdx.y < gridDim.y && !stopped; ++blockIdx.y)
                for (blockIdx.x = 0; blockIdx.x < gridDim.x && !stopped; ++blockIdx.x) {
                    if (request->checked)
                        checks_begin_block();
                    run_block();
                    if (request->checked)
                        checks_end_block();
                    ++block_number;
                }
    } else {
        const char *text = signal == SIGFPE ? "an integer division that has no quotient"
                                          : "an access of no memory";
        report(CRASH, party(running, 0), NOBODY, -1, 0, text);
    }
    emulating = 0;
    for (int i = 0; i < 3; ++i)
        sigaction(SIGNALS[i], &before[i], nullptr);
    sigaltstack(&old_stack, nullptr);
}

} // namespace

static em_index index_of(const Number *numbers)
{
    return {(unsigned)numbers[0], (unsigned)numbers[1], (unsigned)numbers[2]};
}

extern "C" __attribute__((visibility("default"))) void
em_emulate(Entry function, void *const *arguments, const Number *asked, Number *counts,
           void *finding_table, void *site_table)
{
    request = (const Request *)asked;
    findings = (Finding *)finding_table;
    site_rows = (SiteRow *)site_table;
    found = counts;
    found[0] = found[1] = 0;
    entry = function;
    entry_arguments = arguments;
    gridDim = index_of(request->grid);
    blockDim = index_of(request->block);
    size_t count = (size_t)blockDim.x * blockDim.y * blockDim.z;
    threads.assign(count, Thread());
    warps = (int)((count + LANES - 1) / LANES);
    stacks_bytes = count * STACK;
    stacks = (char *)mmap(nullptr, stacks_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        report(REFUSED, NOBODY, NOBODY, -1, 0, "there is no memory for the threads' stacks");
        return;
    }
    block_number = running = 0;
    stopped = false;
    if (request->checked)
        checks_begin_launch();
    run_grid();
    if (request->checked)
        checks_end_launch();
    munmap(stacks, stacks_bytes);
}

extern "C" int em_lane(void) { return running % LANES; }

extern "C" void em_refuse(const char *what, int line)
{
    report(REFUSED, party(running, -line), NOBODY, -1, 0, what);
    leave();
}

extern "C" void em_block_barrier(int line) { wait_as(AT_BARRIER, line); }
