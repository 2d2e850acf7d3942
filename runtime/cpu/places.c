/* Places: the CPUs that the threads of a region are on. A scheduler may leave two of them on one CPU for seconds, or
 * one on a CPU that other work wants, so they move by themselves; each is free to go again afterwards. Where a thread
 * cannot ask for its CPU, all stay where they are.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

enum { MAX_THREADS = 1024 };
enum { WATCH_NS = 10000 }; /* how long a thread watches the time that another one has a CPU */

/* A thread of the pool; threads[0] is the caller of the region. */
struct thread {
    struct gate start;
    atomic_int place;      /* 1 + the CPU on which it was seen in this region; 0: not yet */
    atomic_int id;         /* as the scheduler has it */
    clockid_t clock;       /* of its time on a CPU */
    void *context;         /* where it is while it runs a member */
};

static struct thread threads[MAX_THREADS];
static _Alignas(LINE) atomic_int count;          /* threads of the region, and its members */
static atomic_int crowded;                       /* 1 + a CPU on which other work stopped a thread of the region; 0 */
static atomic_flag moving = ATOMIC_FLAG_INIT;    /* whether a thread moves one to another CPU */
static _Thread_local int own_id;                 /* of this thread, as the scheduler has it; 0: not asked yet */

#if defined(__linux__)
/* Whether another thread of the region was seen on a CPU. */
static int is_taken(int cpu, int self)
{
    for (int thread = 0, most = atomic_load(&count); thread < most; thread++)
        if (thread != self && atomic_load(&threads[thread].place) == 1 + cpu)
            return 1;
    return 0;
}

/* Move a thread (0: this one) to a CPU at once; then it is free to go again. Whether it moved. One thread at a time
 * does so: who read what another one is allowed while that is one CPU would keep it there for good. */
static int move(int id, int cpu)
{
    cpu_set_t allowed, chosen;
    int moved = 0;
    if (atomic_flag_test_and_set(&moving))
        return 0;
    CPU_ZERO(&chosen);
    CPU_SET(cpu, &chosen);
    if (sched_getaffinity(id, sizeof allowed, &allowed) == 0 && CPU_ISSET(cpu, &allowed) &&
        sched_setaffinity(id, sizeof chosen, &chosen) == 0)
        moved = sched_setaffinity(id, sizeof allowed, &allowed) == 0;
    atomic_flag_clear(&moving);
    return moved;
}

/* Move to a CPU on which no other thread of the region was seen. */
static void leave_cpu(int self)
{
    int here = atomic_load(&threads[self].place) - 1;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || cpu == here || is_taken(cpu, self))
            continue;
        atomic_store(&threads[self].place, 1 + cpu);
        if (is_taken(cpu, self))
            continue; /* another one chose it at the same time */
        if (move(0, cpu))
            return;
        break;
    }
    atomic_store(&threads[self].place, 1 + here);
}

/* Note the CPU that this thread runs on; where another one of the region is there, move to one that is free. */
static void take_cpu(int self)
{
    int here = sched_getcpu();
    atomic_store_explicit(&threads[self].place, 1 + here, memory_order_relaxed);
    if (here >= 0 && is_taken(here, self))
        leave_cpu(self);
}

/* Nanoseconds that a thread has had a CPU for. */
static long time_of(int thread)
{
    struct timespec time = {0, 0};
    clock_gettime(threads[thread].clock, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Whether a thread has no CPU. */
static int is_stopped(int thread)
{
    long begun = now_ns(), before = time_of(thread);
    while (now_ns() < begun + WATCH_NS)
        relax();
    return time_of(thread) - before < WATCH_NS / 4;
}

/* Bring another thread to the CPU of this one; whether it came. */
static int bring(int thread, int self)
{
    int here = sched_getcpu();
    if (here < 0 || !move(atomic_load(&threads[thread].id), here))
        return 0;
    atomic_store(&threads[self].place, 1 + here);
    atomic_store(&threads[thread].place, 1 + here);
    return 1;
}

/* Leave a CPU that other work wants to a worker that goes to sleep, and have that of the worker: the caller's other
 * work would share it for a tenth of a second before a scheduler moves one of them. */
static void return_cpu(void)
{
    int here = atomic_load(&crowded) == 0 ? -1 : sched_getcpu();
    if (here < 0 || atomic_load(&crowded) != 1 + here)
        return;
    for (int thread = 1, most = atomic_load(&count); thread < most; thread++) {
        int place = atomic_load(&threads[thread].place);
        if (place > 0 && place != 1 + here && move(0, place - 1))
            return;
    }
}

/* Note who this thread is, where that is not known yet. */
static void introduce(int self)
{
    if (own_id == 0)
        own_id = (int)syscall(SYS_gettid);
    if (atomic_load_explicit(&threads[self].id, memory_order_relaxed) == own_id)
        return;
    pthread_getcpuclockid(pthread_self(), &threads[self].clock);
    atomic_store(&threads[self].id, own_id);
}
#else
static void take_cpu(int self) { (void)self; }
static void leave_cpu(int self) { (void)self; }
static int is_stopped(int thread) { return (void)thread, 0; }
static int bring(int thread, int self) { return (void)thread, (void)self, 0; }
static void return_cpu(void) {}
static void introduce(int self) { (void)self; }
#endif
