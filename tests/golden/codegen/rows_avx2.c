#include <immintrin.h>
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
        const __m256 t = _mm256_max_ps(_mm256_setzero_ps(), _mm256_loadu_ps(&A[i * 40]));
        _mm256_storeu_ps(&T[i * 40], _mm256_mul_ps(t, _mm256_set1_ps(0.5f)));
        const __m256 t_1 = _mm256_max_ps(_mm256_setzero_ps(), _mm256_loadu_ps(&A[i * 40 + 8]));
        _mm256_storeu_ps(&T[i * 40 + 8], _mm256_mul_ps(t_1, _mm256_set1_ps(0.5f)));
        const __m256 t_2 = _mm256_max_ps(_mm256_setzero_ps(), _mm256_loadu_ps(&A[i * 40 + 16]));
        _mm256_storeu_ps(&T[i * 40 + 16], _mm256_mul_ps(t_2, _mm256_set1_ps(0.5f)));
        const __m256 t_3 = _mm256_max_ps(_mm256_setzero_ps(), _mm256_loadu_ps(&A[i * 40 + 24]));
        _mm256_storeu_ps(&T[i * 40 + 24], _mm256_mul_ps(t_3, _mm256_set1_ps(0.5f)));
        const __m256 t_4 = _mm256_max_ps(_mm256_setzero_ps(), _mm256_loadu_ps(&A[i * 40 + 32]));
        _mm256_storeu_ps(&T[i * 40 + 32], _mm256_mul_ps(t_4, _mm256_set1_ps(0.5f)));
    }
    team->barrier(team->state, thread);
    if (thread == 0) {
        for (int64_t i = 0; i < 5; i++) { /* serial i: C */
            float *const row = (float *)(own + 0);
            _mm256_storeu_ps(row, (1 <= i ? _mm256_loadu_ps(&T[i * 40 - 40]) : _mm256_setzero_ps()));
            _mm256_storeu_ps(&row[8], (1 <= i ? _mm256_loadu_ps(&T[i * 40 - 32]) : _mm256_setzero_ps()));
            _mm256_storeu_ps(&row[16], (1 <= i ? _mm256_loadu_ps(&T[i * 40 - 24]) : _mm256_setzero_ps()));
            _mm256_storeu_ps(&row[24], (1 <= i ? _mm256_loadu_ps(&T[i * 40 - 16]) : _mm256_setzero_ps()));
            _mm256_storeu_ps(&row[32], (1 <= i ? _mm256_loadu_ps(&T[i * 40 - 8]) : _mm256_setzero_ps()));
            for (int64_t j = 0; j < 40; j++) { /* serial j: C */
                if (j % 3 == 0) {
                    C[i * 40 + j] = row[39 - j];
                } else {
                    const float t = _mm_cvtss_f32(_mm_round_ss(_mm_setzero_ps(), _mm_set_ss(T[i * 40 + j]), 9));
                    C[i * 40 + j] = t;
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
