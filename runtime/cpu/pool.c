/* The thread pool: one per process, for regions of SPMD code.
 *
 * tw_pool_run calls an entry once for each member of a team, member 0 being the caller's, and returns when all have
 * returned. Members are fibers (fibers.c): each begins on its own thread, but whoever waits goes on with a member
 * that could run and whose thread is not there, because it still wakes up or other work has its CPU. A thread
 * that lost its CPU in the middle of a member, so that nobody else can go on with it, changes CPUs with one that
 * waits. So a region does not wait for the scheduler, and its parts, and their results, are those of its members.
 *
 * A waiter spins for a bounded time, then sleeps (gates.c); where a region has more threads than there are CPUs,
 * nobody spins. A caller that finds the pool busy (another thread's region, or its own) runs its region alone, with
 * one thread, and so does one that finds regions of others on all CPUs but one: callers share out the CPUs. Threads
 * are started when a region first needs them and never stopped; a forked child starts its own. Who runs a member
 * has the caller's floating-point mode, so that rounding and denormals do not depend on the thread. A thread that
 * finds another one of its region on its CPU, at the start or after it slept, moves to a free one: a scheduler may
 * leave two there for seconds.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };
typedef void (*tw_entry)(void *const *args, const struct tw_team *team, int thread, int threads);

/* How long a waiter spins where every thread has a CPU: inside a region, where a thread that sleeps may wake up
 * late and elsewhere, and between regions, where the CPU is the caller's and other libraries'. */
enum { SPIN_INSIDE_NS = 1000000, SPIN_BETWEEN_NS = 50000 };
/* How long a member waits at a barrier before its thread looks for others; how long a thread that found none waits
 * before it asks whether those that still run have a CPU. */
enum { LOOK_NS = 20000, ASK_NS = 30000 };

/* What a member is doing, modulo STATES; its state rises with each change, so that no one is mistaken for another. */
enum { READY = 0 /* once its barrier has opened */, RUNNING = 1, DONE = 2, STATES = 4 };

struct member {
    _Alignas(LINE) atomic_ulong state;
    atomic_uint passed;    /* the value that the gate of barriers must have left behind before it goes on */
    atomic_int thread;     /* that runs it */
    atomic_int left;       /* another one that this thread left for it; -1: none */
    int is_done;
    void *context;         /* where it is while it is ready */
    char *stack;
};

/* The region that runs now; its caller writes it before a member is ready. */
struct region {
    tw_entry entry;
    void *const *args;
    unsigned long long float_mode;
};

static struct region region;
static struct member members[MAX_THREADS];
static struct gate barrier;                      /* moves with each barrier, and when all members are done */
static struct gate finished;                     /* moves then, last of all: the region is the caller's again */
static _Alignas(LINE) atomic_int missing;        /* members that the barrier still waits for */
static _Alignas(LINE) atomic_int unfinished;     /* members that are not done */
static atomic_int is_inside;                     /* whether the caller has not returned from the region */
static atomic_long spin_ns;                      /* of a waiter inside the region; 0 where threads outnumber CPUs */
static _Alignas(LINE) atomic_flag busy = ATOMIC_FLAG_INIT;
static _Alignas(LINE) atomic_int in_use;         /* threads of all regions that run now */
static _Thread_local int held;                   /* those of regions that this thread is inside of, as caller */
static atomic_int started;                       /* workers alive in this process */
static atomic_int cpus;                          /* CPUs that this process may use, as of the last growth */
static pthread_once_t forks = PTHREAD_ONCE_INIT;

#if defined(__SSE__)
static unsigned long long float_mode(void) { return _mm_getcsr() & 0xffc0u; /* without the exception flags */ }
static void set_float_mode(unsigned long long mode) { _mm_setcsr((unsigned)mode); }
#elif defined(__aarch64__)
static unsigned long long float_mode(void)
{
    unsigned long long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static void set_float_mode(unsigned long long mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
static unsigned long long float_mode(void) { return 0; }
static void set_float_mode(unsigned long long mode) { (void)mode; }
#endif

/* A thread other than this that runs a member and has no CPU; -1: none. */
static int find_stopped(int self)
{
    for (int index = 0, most = atomic_load(&count); index < most; index++) {
        unsigned long state = atomic_load(&members[index].state);
        int thread = atomic_load(&members[index].thread);
        if (state % STATES == RUNNING && thread != self && is_stopped(thread) &&
            atomic_load(&members[index].state) == state)
            return thread;
    }
    return -1;
}

/* Let a thread without a CPU, for which the others wait, have that of this one, which waits for the other's; whether
 * there was one. */
static int change_cpus(int self)
{
    int stopped = find_stopped(self), there = stopped < 0 ? 0 : atomic_load(&threads[stopped].place);
    if (stopped < 0 || !bring(stopped, self))
        return 0;
    atomic_store(&crowded, there);
    leave_cpu(self);
    return 1;
}

/* Whether the caller is still inside the region that the thread's gate opened for. */
static int is_awaited(int self, unsigned seen)
{
    return atomic_load(&is_inside) && atomic_load(&threads[self].start.value) == seen;
}

/* Let the caller, where it has no CPU to return on, have that of this thread, which has nothing more to do. */
static int give_cpu(int self, unsigned seen)
{
    for (long begun = now_ns(); is_awaited(self, seen) && now_ns() < begun + LOOK_NS;)
        relax();
    return is_awaited(self, seen) && is_stopped(0) && is_awaited(self, seen) && bring(0, self);
}

/* Sleep until the gate of barriers moves on from `seen`. */
static void sleep_inside(int self, unsigned seen)
{
    gate_sleep(&barrier, seen);
    if (atomic_load(&spin_ns) > 0)
        take_cpu(self); /* who wakes one up may have drawn it to its own CPU */
}

/* Whether a member could go on, and no thread runs it. */
static int is_ready(const struct member *member)
{
    return atomic_load(&member->state) % STATES == READY &&
           atomic_load_explicit(&member->passed, memory_order_relaxed) != atomic_load(&barrier.value);
}

static void team_barrier(void *state, int index)
{
    struct member *member = &members[index];
    unsigned seen = atomic_load_explicit(&barrier.value, memory_order_relaxed);
    (void)state;
    if (atomic_fetch_sub_explicit(&missing, 1, memory_order_acq_rel) == 1) {
        atomic_store_explicit(&missing, atomic_load_explicit(&count, memory_order_relaxed), memory_order_relaxed);
        gate_open(&barrier);
        return;
    }
#if TW_FIBERS
    /* at once, where the thread has left another one that nobody has taken since: there is nobody else */
    int left = atomic_load_explicit(&member->left, memory_order_relaxed);
    long wait_ns = atomic_load_explicit(&spin_ns, memory_order_relaxed) > 0 ? LOOK_NS : 0;
    if ((left < 0 || !is_ready(&members[left])) && spin(&barrier, seen, wait_ns))
        return;
    atomic_store_explicit(&member->passed, seen, memory_order_relaxed);
    fiber_switch(&member->context, threads[atomic_load_explicit(&member->thread, memory_order_relaxed)].context);
#else
    if (!spin(&barrier, seen, atomic_load(&spin_ns)))
        sleep_inside(atomic_load(&member->thread), seen);
#endif
}

static void no_barrier(void *state, int index)
{
    (void)state, (void)index;
}

static const struct tw_team together = {team_barrier, NULL}, alone = {no_barrier, NULL};

/* What a member does. */
static void member_main(void *given)
{
    struct member *member = given;
    region.entry(region.args, &together, (int)(member - members), atomic_load(&count));
    member->is_done = 1;
#if TW_FIBERS
    fiber_switch(&member->context, threads[atomic_load(&member->thread)].context);
#endif
}

/* Go on with a member until it waits or is done, if it is ready; whether it was. last: the one before it. */
static int run_member(int self, int index, int last)
{
    struct member *member = &members[index];
    unsigned long state = atomic_load(&member->state);
    if (!is_ready(member) || !atomic_compare_exchange_strong(&member->state, &state, state + RUNNING))
        return 0;
    atomic_store_explicit(&member->thread, self, memory_order_relaxed);
    atomic_store_explicit(&member->left, last != index ? last : -1, memory_order_relaxed);
    if (region.float_mode != float_mode())
        set_float_mode(region.float_mode);
#if TW_FIBERS
    fiber_switch(&threads[self].context, member->context);
#else
    member_main(member);
#endif
    int is_done = member->is_done;
    atomic_store(&member->state, state + (is_done ? DONE : STATES));
    if (is_done && atomic_fetch_sub(&unfinished, 1) == 1) {
        gate_open(&barrier); /* for those who sleep; not after the next region may have begun */
        gate_open(&finished);
    }
    return 1;
}

/* Run one member: the last, else any that is ready; which one, or -1. */
static int run_any(int self, int last)
{
    if (run_member(self, last, last))
        return last;
    for (int index = 0, most = atomic_load(&count); index < most; index++)
        if (index != last && run_member(self, index, last))
            return index;
    return -1;
}

/* Run members until all are done, first that of the same number. Who is late may take part in the next region,
 * though that has fewer threads: one that has left a member must not go before another one took it. */
static void take_part(int self)
{
    int last = self;
    long begun = 0, asked = 0;
    for (;;) {
        unsigned seen = atomic_load(&barrier.value);
        if (atomic_load(&unfinished) == 0)
            return;
        int ran = run_any(self, last);
        if (ran >= 0) {
            last = ran, begun = 0;
            continue;
        }
        long most = atomic_load(&spin_ns), now = now_ns();
        if (begun == 0)
            begun = now, asked = ASK_NS;
        if (now - begun >= most) {
            sleep_inside(self, seen);
            begun = 0;
        } else if (now - begun >= asked) {
            asked = change_cpus(self) ? most : 2 * (now_ns() - begun); /* once for each wait */
        } else {
            spin(&barrier, seen, 0);
        }
    }
}

static void *worker_main(void *given)
{
    int self = (int)(size_t)given;
    struct gate *start = &threads[self].start;
    unsigned seen = 0;
    introduce(self);
    for (long between_ns = SPIN_BETWEEN_NS;;) {
        if (!spin(start, seen, between_ns))
            gate_sleep(start, seen);
        seen = atomic_load(&start->value); /* of more than one region, where it came too late */
        between_ns = atomic_load(&spin_ns) > 0 ? SPIN_BETWEEN_NS : 0;
        if (between_ns > 0)
            take_cpu(self);
        take_part(self);
        if (between_ns > 0 && (give_cpu(self, seen) || atomic_load(&crowded) != 0))
            between_ns = 0;
    }
    return NULL;
}

static void after_fork_in_child(void)
{
    memset(threads, 0, sizeof threads[0] * (size_t)(1 + atomic_load(&started)));
    memset(&barrier, 0, sizeof barrier);
    memset(&finished, 0, sizeof finished);
    own_id = 0;
    atomic_store(&unfinished, 0);
    atomic_store(&is_inside, 0);
    atomic_store(&started, 0);
    atomic_store(&in_use, held);
    atomic_flag_clear(&busy);
    atomic_flag_clear(&moving);
#if !TW_FUTEX
    pthread_mutex_init(&mutex, NULL);
    pthread_cond_init(&condition, NULL);
#endif
}

static int allowed_cpus(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* Start workers until `wanted` are alive; returns how many are. Signals stay with the other threads. */
static int grow(int wanted)
{
    int alive = atomic_load(&started);
    if (alive >= wanted)
        return wanted;
    sigset_t all, before;
    atomic_store(&cpus, allowed_cpus());
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; alive < wanted; alive++) {
        pthread_t handle;
        if (pthread_create(&handle, NULL, worker_main, (void *)(size_t)(alive + 1)) != 0)
            break;
        pthread_detach(handle);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    atomic_store(&started, alive);
    return alive;
}

static void handle_forks(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* How many of the wanted threads a region may have beside the regions of other callers. */
static int share_of(int wanted)
{
    int others = atomic_load(&in_use) - held;
    if (others <= 0 || wanted <= 1)
        return wanted;
    if (atomic_load(&cpus) == 0)
        atomic_store(&cpus, allowed_cpus());
    int left = atomic_load(&cpus) - others;
    return wanted <= left ? wanted : left > 1 ? left : 1;
}

static void hold(int taken)
{
    held += taken;
    atomic_fetch_add(&in_use, taken);
}

/* Make members ready to begin; how many: fewer where there is no memory for a stack. */
static int make_members(int wanted)
{
#if TW_FIBERS
    for (int index = 0; index < wanted; index++) {
        struct member *member = &members[index];
        if (member->stack == NULL && (member->stack = new_stack()) == NULL)
            return index;
        member->context = new_context(member->stack, member_main, member);
    }
#endif
    return wanted;
}

/* Run a region of so many members, for which there are threads. */
static void run_region(int wanted)
{
    unsigned before = atomic_load(&barrier.value) - 1, seen = atomic_load(&finished.value);
    introduce(0);
    atomic_store(&is_inside, 1);
    atomic_store(&crowded, 0);
    atomic_store(&spin_ns, wanted <= atomic_load(&cpus) ? SPIN_INSIDE_NS : 0);
    for (int thread = 1; thread < wanted; thread++)
        atomic_store_explicit(&threads[thread].place, 0, memory_order_relaxed);
    atomic_store(&count, wanted);
    if (atomic_load(&spin_ns) > 0)
        take_cpu(0);
    atomic_store(&missing, wanted);
    atomic_store(&unfinished, wanted);
    for (int index = 0; index < wanted; index++) {
        struct member *member = &members[index];
        member->is_done = 0;
        atomic_store_explicit(&member->passed, before, memory_order_relaxed);
        atomic_store(&member->state, (atomic_load(&member->state) / STATES + 1) * STATES);
    }
    for (int thread = 1; thread < wanted; thread++)
        gate_open(&threads[thread].start);
    take_part(0);
    if (!spin(&finished, seen, atomic_load(&spin_ns)))
        gate_sleep(&finished, seen);
    atomic_store(&is_inside, 0);
    return_cpu();
}

/* Run a region of up to `wanted` members; returns how many it had (fewer beside other callers). */
int tw_pool_run(tw_entry entry, void *const *args, int wanted)
{
    pthread_once(&forks, handle_forks);
    wanted = share_of(wanted);
    int is_alone = wanted <= 1 || atomic_flag_test_and_set_explicit(&busy, memory_order_acquire);
    if (!is_alone)
        wanted = make_members(1 + grow((wanted < MAX_THREADS ? wanted : MAX_THREADS) - 1));
    if (is_alone || wanted <= 1) {
        hold(1);
        entry(args, &alone, 0, 1);
        hold(-1);
    } else {
        hold(wanted);
        region = (struct region){entry, args, float_mode()};
        run_region(wanted);
        hold(-wanted);
    }
    if (!is_alone)
        atomic_flag_clear_explicit(&busy, memory_order_release);
    return is_alone || wanted <= 1 ? 1 : wanted;
}

/* How many worker threads live in this process. */
int tw_pool_started(void)
{
    return atomic_load(&started);
}
