/* The thread pool: one per process, for regions of SPMD code.
 *
 * tw_pool_run calls an entry once per thread, thread 0 being the caller, and returns when all have returned.
 * A waiter spins for a bounded time, then sleeps in the kernel: on Linux with futex, elsewhere on a condition
 * variable. Where a region has more threads than there are CPUs, nobody spins. A caller that finds the pool
 * busy (another thread's region, or its own) runs its region alone, with one thread, and so does one that finds
 * regions of others on all CPUs but one: callers share out the CPUs. Threads are started when a region first
 * needs them and never stopped; a forked child starts its own. Workers take over the caller's floating-point
 * mode, so that rounding and denormals do not depend on the thread. A thread that finds another one of its region
 * on its CPU, at the start or after it slept, moves to a free one: a scheduler may leave two there for seconds.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif
#if defined(__linux__) && !defined(TW_NO_FUTEX)
#include <sys/syscall.h>
#define TW_FUTEX 1
#else
#define TW_FUTEX 0
#endif

struct tw_team { void (*barrier)(void *state, int thread); void *state; };
typedef void (*tw_entry)(void *const *args, const struct tw_team *team, int thread, int threads);

enum { MAX_THREADS = 1024, CHECKS_PER_CLOCK = 64, LINE = 128 };
/* How long a waiter spins where every thread has a CPU: inside a region, where a thread that sleeps may wake up
 * late and elsewhere, and between regions, where the CPU is the caller's and other libraries'. */
static const long SPIN_INSIDE_NS = 1000000, SPIN_BETWEEN_NS = 50000;

/* A counter that threads wait on. `value` moves once each time the gate opens. */
struct gate {
    _Alignas(LINE) atomic_uint value;
    atomic_uint sleepers;
    atomic_int place; /* of start[t]: 1 + the CPU on which thread t of the region was seen; 0: not yet */
};

/* The region that runs now; its caller writes it before a start gate opens. */
struct region {
    tw_entry entry;
    void *const *args;
    int threads;
    long spin_ns;
    unsigned long long float_mode;
};

static struct region region;
static struct gate start[MAX_THREADS];           /* start[t] lets worker t take part; start[0] has only a place */
static struct gate barrier, finished;
static _Alignas(LINE) atomic_int missing;        /* threads that the barrier still waits for */
static _Alignas(LINE) atomic_int running;        /* workers that have not left the region */
static _Alignas(LINE) atomic_flag busy = ATOMIC_FLAG_INIT;
static _Alignas(LINE) atomic_int in_use;         /* threads of all regions that run now */
static _Thread_local int held;                   /* those of regions that this thread is inside of, as caller */
static atomic_int started;                       /* workers alive in this process */
static atomic_int cpus;                          /* CPUs that this process may use, as of the last growth */
static pthread_once_t forks = PTHREAD_ONCE_INIT;

#if defined(__SSE__)
static void relax(void) { _mm_pause(); }
static unsigned long long float_mode(void) { return _mm_getcsr() & 0xffc0u; /* without the exception flags */ }
static void set_float_mode(unsigned long long mode) { _mm_setcsr((unsigned)mode); }
#elif defined(__aarch64__)
static void relax(void) { __asm__ volatile("yield"); }
static unsigned long long float_mode(void) { unsigned long long mode; __asm__ volatile("mrs %0, fpcr" : "=r"(mode)); return mode; }
static void set_float_mode(unsigned long long mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
static void relax(void) {}
static unsigned long long float_mode(void) { return 0; }
static void set_float_mode(unsigned long long mode) { (void)mode; }
#endif

static long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

#if TW_FUTEX
static void sleep_while(atomic_uint *value, unsigned seen)
{
    while (atomic_load(value) == seen)
        syscall(SYS_futex, value, 128 /* FUTEX_WAIT_PRIVATE */, seen, NULL, NULL, 0);
}

static void wake(atomic_uint *value)
{
    syscall(SYS_futex, value, 129 /* FUTEX_WAKE_PRIVATE */, INT_MAX, NULL, NULL, 0);
}
#else
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void sleep_while(atomic_uint *value, unsigned seen)
{
    pthread_mutex_lock(&mutex);
    while (atomic_load(value) == seen)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void wake(atomic_uint *value)
{
    (void)value;
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
}
#endif

/* Either the opener sees the sleeper or the sleeper sees the new value: both are sequentially consistent. */
static void gate_open(struct gate *gate)
{
    atomic_fetch_add(&gate->value, 1);
    if (atomic_load(&gate->sleepers) != 0)
        wake(&gate->value);
}

/* Wait until the gate has moved on from `seen`; whether the thread slept. */
static int gate_wait(struct gate *gate, unsigned seen, long spin_ns)
{
    long deadline = 0;
    do {
        for (int check = 0; check < CHECKS_PER_CLOCK; check++) {
            if (atomic_load_explicit(&gate->value, memory_order_acquire) != seen)
                return 0;
            relax();
        }
        if (deadline == 0)
            deadline = now_ns() + spin_ns;
    } while (spin_ns > 0 && now_ns() < deadline);
    atomic_fetch_add(&gate->sleepers, 1);
    sleep_while(&gate->value, seen);
    atomic_fetch_sub(&gate->sleepers, 1);
    return 1;
}

#if defined(__linux__)
/* Whether another thread of the region was seen on a CPU. */
static int is_taken(int cpu, int self)
{
    for (int thread = 0; thread < region.threads; thread++)
        if (thread != self && atomic_load(&start[thread].place) == 1 + cpu)
            return 1;
    return 0;
}

/* Note the CPU that this thread runs on; where another one of the region is there, move to one that is free. */
static void take_cpu(int self)
{
    int here = sched_getcpu();
    cpu_set_t allowed, chosen;
    atomic_store_explicit(&start[self].place, 1 + here, memory_order_relaxed);
    if (here < 0 || !is_taken(here, self) || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || is_taken(cpu, self))
            continue;
        atomic_store(&start[self].place, 1 + cpu);
        if (is_taken(cpu, self))
            continue; /* another one chose it at the same time */
        CPU_ZERO(&chosen);
        CPU_SET(cpu, &chosen);
        if (sched_setaffinity(0, sizeof chosen, &chosen) == 0) /* moves at once; then free to go again */
            sched_setaffinity(0, sizeof allowed, &allowed);
        return;
    }
    atomic_store(&start[self].place, 1 + here);
}
#else
static void take_cpu(int self) { (void)self; }
#endif

static void team_barrier(void *state, int thread)
{
    unsigned seen = atomic_load_explicit(&barrier.value, memory_order_relaxed);
    (void)state;
    if (atomic_fetch_sub_explicit(&missing, 1, memory_order_acq_rel) != 1) {
        if (gate_wait(&barrier, seen, region.spin_ns) && region.spin_ns > 0)
            take_cpu(thread); /* who wakes one up may have drawn it to its own CPU */
        return;
    }
    atomic_store_explicit(&missing, region.threads, memory_order_relaxed);
    gate_open(&barrier);
}

static void no_barrier(void *state, int thread)
{
    (void)state, (void)thread;
}

static const struct tw_team together = {team_barrier, NULL}, alone = {no_barrier, NULL};

static void *worker_main(void *thread)
{
    int self = (int)(size_t)thread;
    long spin_ns = SPIN_BETWEEN_NS;
    for (unsigned seen = 0;; seen++) {
        gate_wait(&start[self], seen, spin_ns);
        spin_ns = region.spin_ns > 0 ? SPIN_BETWEEN_NS : 0;
        if (region.float_mode != float_mode())
            set_float_mode(region.float_mode);
        if (spin_ns > 0)
            take_cpu(self);
        region.entry(region.args, &together, self, region.threads);
        if (atomic_fetch_sub(&running, 1) == 1) /* the last: from here on `region` is the caller's again */
            gate_open(&finished);
    }
    return NULL;
}

static void after_fork_in_child(void)
{
    memset(start, 0, sizeof start[0] * (size_t)(1 + atomic_load(&started)));
    memset(&barrier, 0, sizeof barrier);
    memset(&finished, 0, sizeof finished);
    atomic_store(&started, 0);
    atomic_store(&in_use, held);
    atomic_flag_clear(&busy);
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

/* How many of `threads` threads a region may have beside the regions of other callers. */
static int share_of(int threads)
{
    int others = atomic_load(&in_use) - held;
    if (others <= 0 || threads <= 1)
        return threads;
    if (atomic_load(&cpus) == 0)
        atomic_store(&cpus, allowed_cpus());
    int left = atomic_load(&cpus) - others;
    return threads <= left ? threads : left > 1 ? left : 1;
}

static void hold(int threads)
{
    held += threads;
    atomic_fetch_add(&in_use, threads);
}

/* Run a region on up to `threads` threads; returns how many took part (fewer beside other callers). */
int tw_pool_run(tw_entry entry, void *const *args, int threads)
{
    pthread_once(&forks, handle_forks);
    threads = share_of(threads);
    if (threads <= 1 || atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        hold(1);
        entry(args, &alone, 0, 1);
        hold(-1);
        return 1;
    }
    threads = 1 + grow((threads < MAX_THREADS ? threads : MAX_THREADS) - 1);
    hold(threads);
    unsigned seen = atomic_load(&finished.value);
    region = (struct region){entry, args, threads, threads <= atomic_load(&cpus) ? SPIN_INSIDE_NS : 0, float_mode()};
    for (int thread = 1; thread < threads; thread++)
        atomic_store_explicit(&start[thread].place, 0, memory_order_relaxed);
    if (region.spin_ns > 0)
        take_cpu(0);
    atomic_store(&missing, threads);
    atomic_store(&running, threads - 1);
    for (int thread = 1; thread < threads; thread++)
        gate_open(&start[thread]);
    entry(args, threads > 1 ? &together : &alone, 0, threads);
    if (threads > 1)
        gate_wait(&finished, seen, region.spin_ns);
    atomic_flag_clear_explicit(&busy, memory_order_release);
    hold(-threads);
    return threads;
}

/* How many worker threads live in this process. */
int tw_pool_started(void)
{
    return atomic_load(&started);
}
