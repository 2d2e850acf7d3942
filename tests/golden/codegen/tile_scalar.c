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

/* tile(input A: float32[4, 64], input B: float32[64, 32], output C: float32[4, 20]) */
static __attribute__((noinline)) void
tile_body(const float *restrict A, const float *restrict B, float *restrict C, int thread)
{
    float T[128];
    if (thread == 0) {
        for (int64_t i = 0; i < 4; i++) { /* serial i: C */
            for (int64_t j = 0; j < 2; j++) { /* serial j: C */
                for (int64_t v = 0; v < 16; v++) { /* serial v: C */
                    if (j * 16 + v < 20) {
                        T[i * 32 + j * 16 + v] = 0.0f;
                    }
                }
            }
        }
        for (int64_t k = 0; k < 64; k++) { /* serial k: C */
            for (int64_t i = 0; i < 4; i++) { /* serial i: C */
                for (int64_t j = 0; j < 2; j++) { /* serial j: C */
                    for (int64_t v = 0; v < 16; v++) { /* serial v: C */
                        if (j * 16 + v < 20) {
                            const float sum = tw_fmaf(A[i * 64 + k], B[k * 32 + j * 16 + v], T[i * 32 + j * 16 + v]);
                            T[i * 32 + j * 16 + v] = sum;
                        }
                    }
                }
            }
        }
        for (int64_t i = 0; i < 4; i++) { /* serial i: C */
            for (int64_t j = 0; j < 2; j++) { /* serial j: C */
                for (int64_t v = 0; v < 16; v++) { /* serial v: C */
                    if (j * 16 + v < 20) {
                        C[i * 20 + j * 16 + v] = T[i * 32 + j * 16 + v];
                    }
                }
            }
        }
    }
}

void tile(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    tile_body((const float *)args[0], (const float *)args[1], (float *)args[2], thread);
}
