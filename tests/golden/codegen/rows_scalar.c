#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

static inline int64_t tw_of_f64(double value)
{
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double tw_to_f64(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* a + b; if not exact, the neighbour whose last bit is 1: so the next rounding is the only one. */
static inline double tw_add_to_odd(double a, double b)
{
    const double sum = a + b, part = sum - a, lost = (a - (sum - part)) + (b - part);
    const int64_t bits = tw_of_f64(sum);
    if ((lost > 0 || lost < 0) && (bits & 1) == 0)
        return tw_to_f64(bits + ((lost > 0) == (sum > 0) ? 1 : -1));
    return sum;
}

/* a*b + c, rounded once, without such an instruction: the product is exact in double precision. */
static inline float tw_fmaf(float a, float b, float c)
{
    return (float)tw_add_to_odd((double)a * (double)b, (double)c);
}

static inline float tw_to_f32(int32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* rows(input A: float32[5, 40], output C: float32[5, 40]) */
static __attribute__((noinline)) void
rows_body(const float *restrict A, float *restrict C, char *restrict workspace,
    char *restrict own, const struct tw_team *team, int thread, int threads)
{
    float *const T = (float *)(workspace + 0);
    const int64_t i_end = (int64_t)5 * (thread + 1) / threads;
    for (int64_t i = (int64_t)5 * thread / threads; i < i_end; i++) { /* parallel i: T */
        for (int64_t j = 0; j < 40; j++) { /* serial j: T */
            const float loaded = A[i * 40 + j];
            T[i * 40 + j] = (0.0f > loaded ? 0.0f : loaded) * 0.5f;
        }
    }
    team->barrier(team->state, thread);
    if (thread == 0) {
        for (int64_t i = 0; i < 5; i++) { /* serial i: C */
            float *const row = (float *)(own + 0);
            for (int64_t j = 0; j < 40; j++) { /* serial j: row */
                row[j] = (1 <= i ? T[i * 40 + j - 40] : 0.0f);
            }
            for (int64_t j = 0; j < 40; j++) { /* serial j: C */
                if (j % 3 == 0) {
                    C[i * 40 + j] = row[39 - j];
                } else {
                    const float x = T[i * 40 + j];
                    float t_3;
                    if (x < -87.33655f) {
                        t_3 = 0.0f;
                    } else {
                        const float product = x * 1.442695f;
                        const float t = (__builtin_fabsf(product) < 0x1p23f ? __builtin_copysignf(__builtin_fabsf(product) + 0x1p23f - 0x1p23f, product) : product);
                        const float t_1 = t;
                        const float n = (t_1 < 127.0f ? t_1 : 127.0f);
                        const float r_high = tw_fmaf(n, -0.6933594f, x);
                        const float r = tw_fmaf(n, 0.00021219444f, r_high);
                        const float t_2 = (n < 496.0f ? n : 496.0f);
                        const int32_t n_1 = (int32_t)(t_2 > (-496.0f) ? t_2 : (-496.0f));
                        const int32_t q = (n_1 >> 2);
                        const float step = tw_to_f32((int32_t)((uint32_t)q * 8388608u + 1065353216u));
                        const float sum = tw_fmaf(tw_fmaf(0.0016110291f, r, 0.008336581f), r, 0.041622356f);
                        const float sum_1 = tw_fmaf(tw_fmaf(tw_fmaf(sum, r, 0.1666686f), r, 0.50000215f), r, 1.0f);
                        const int32_t sum_2 = (int32_t)((uint32_t)n_1 * 8388608u - (uint32_t)q * 25165824u + 1065353216u);
                        t_3 = tw_fmaf(sum_1, r, 1.0f) * step * step * step * tw_to_f32(sum_2);
                    }
                    C[i * 40 + j] = t_3;
                }
            }
        }
    }
}

void rows(void *const *args, const struct tw_team *team, int thread, int threads)
{
    char *const workspace = (char *)args[2];
    char *const own = workspace + 832 + (size_t)thread * 192;
    rows_body((const float *)args[0], (float *)args[1], workspace, own, team, thread, threads);
}
