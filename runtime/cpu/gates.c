/* Gates: counters that threads wait on, for a time spinning, then asleep in the kernel: on Linux with futex,
 * elsewhere on a condition variable.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
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

enum { CHECKS_PER_CLOCK = 64, LINE = 128 };

/* `value` moves once each time the gate opens. */
struct gate {
    _Alignas(LINE) atomic_uint value;
    atomic_uint sleepers;
};

#if defined(__SSE__)
static void relax(void) { _mm_pause(); }
#elif defined(__aarch64__)
static void relax(void) { __asm__ volatile("yield"); }
#else
static void relax(void) {}
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

/* Spin until the gate has moved on from `seen`, for that long or a little longer; whether it has. */
static int spin(struct gate *gate, unsigned seen, long for_ns)
{
    long deadline = 0;
    do {
        for (int check = 0; check < CHECKS_PER_CLOCK; check++) {
            if (atomic_load_explicit(&gate->value, memory_order_acquire) != seen)
                return 1;
            relax();
        }
        if (deadline == 0)
            deadline = now_ns() + for_ns;
    } while (for_ns > 0 && now_ns() < deadline);
    return 0;
}

/* Sleep until the gate has moved on from `seen`. */
static void gate_sleep(struct gate *gate, unsigned seen)
{
    atomic_fetch_add(&gate->sleepers, 1);
    sleep_while(&gate->value, seen);
    atomic_fetch_sub(&gate->sleepers, 1);
}
