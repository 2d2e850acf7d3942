/* Probes of the machine's limits, as entries for the thread pool (pool.c).
 *
 * tw_probe_fma: args = {long iterations, float *result}. Independent chains of multiply-adds on whole vectors, enough
 * of them to hide the latency and few enough for the register file. Without FMA, a multiplication and an addition.
 * tw_probe_read: args = {long passes, char *memory, long bytes per thread, long long *result}. Each thread reads its
 * own part, `passes` times; bytes is a multiple of 512.
 */
struct tw_team { void (*barrier)(void *state, int thread); void *state; };
typedef void (*tw_entry)(void *const *args, const struct tw_team *team, int thread, int threads);
typedef int (*tw_run)(tw_entry entry, void *const *args, int threads);

#define TWELVE(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11)
#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 vector;
#define MULTIPLY_ADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#define EACH(do) TWELVE(do) do(12) do(13) do(14) do(15) do(16) do(17) do(18) do(19) do(20) do(21) do(22) do(23)
enum { CHAINS = 24 };
#elif defined(__AVX2__)
#include <immintrin.h>
typedef __m256 vector;
#define MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#define EACH(do) TWELVE(do)
enum { CHAINS = 12 };
#else
typedef float vector __attribute__((vector_size(16)));
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define EACH(do) TWELVE(do)
enum { CHAINS = 12 };
#endif
enum { LANES = sizeof(vector) / sizeof(float), STRIDE = 32 };

/* Floating-point operations of one iteration of one thread. */
int tw_probe_flops(void)
{
    return 2 * CHAINS * LANES;
}

void tw_probe_fma(void *const *args, const struct tw_team *team, int thread, int threads)
{
    long iterations = *(const long *)args[0];
    float *result = (float *)args[1] + thread * STRIDE;
    vector zero = {0}, factor = zero + 0.999f, sum = zero;
    (void)team, (void)threads;
#define DECLARE(n) vector chain##n = zero + (float)(n);
#define STEP(n) chain##n = MULTIPLY_ADD(chain##n, factor, factor);
#define COLLECT(n) sum += chain##n;
    EACH(DECLARE)
    for (long i = 0; i < iterations; i++) {
        EACH(STEP)
    }
    EACH(COLLECT)
    for (int lane = 0; lane < LANES; lane++)
        result[lane] = sum[lane];
}

typedef long long block __attribute__((vector_size(sizeof(vector)), aligned(16)));

void tw_probe_read(void *const *args, const struct tw_team *team, int thread, int threads)
{
    long passes = *(const long *)args[0], bytes = *(const long *)args[2];
    const char *memory = (const char *)args[1] + thread * bytes;
    block a = {0}, b = a, c = a, d = a;
    (void)team, (void)threads;
    for (long pass = 0; pass < passes; pass++) {
        for (long at = 0; at < bytes; at += 4 * (long)sizeof(block)) {
            const block *here = (const block *)(memory + at);
            a ^= here[0];
            b ^= here[1];
            c ^= here[2];
            d ^= here[3];
        }
        __asm__ volatile("" ::: "memory");
    }
    a ^= b ^ c ^ d;
    ((long long *)args[3])[thread * STRIDE] = a[0] ^ a[1];
}

static void nothing(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)args, (void)team, (void)thread, (void)threads;
}

/* Open and close `count` empty regions of `threads` threads: args = {long count, tw_run run, long threads}. */
void tw_probe_regions(void *const *args, const struct tw_team *team, int thread, int threads)
{
    tw_run run = *(const tw_run *)args[1];
    int wanted = (int)*(const long *)args[2];
    (void)team, (void)thread, (void)threads;
    for (long i = *(const long *)args[0]; i > 0; i--)
        run(nothing, args, wanted);
}

/* Pass `count` barriers: args = {long count}. */
void tw_probe_barriers(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)threads;
    for (long i = *(const long *)args[0]; i > 0; i--)
        team->barrier(team->state, thread);
}
