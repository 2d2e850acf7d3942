#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

/* rows(input A: float32[5, 40], output C: float32[5, 40]) */
static __attribute__((noinline)) void
rows_body(const float *restrict A, float *C, char *workspace, char *restrict own,
    const struct tw_team *team, int thread, int threads)
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
                    const float t = (__builtin_fabsf(x) < 0x1p23f ? __builtin_copysignf(__builtin_fabsf(x) + 0x1p23f - 0x1p23f, x) : x);
                    const float rounded = t;
                    C[i * 40 + j] = (x < rounded ? rounded - 1.0f : rounded);
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
