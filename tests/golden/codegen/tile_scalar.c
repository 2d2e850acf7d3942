#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

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
                            T[i * 32 + j * 16 + v] = T[i * 32 + j * 16 + v] + A[i * 64 + k] * B[k * 32 + j * 16 + v];
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
