#include <immintrin.h>
#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

/* tile(input A: float32[4, 64], input B: float32[64, 32], output C: float32[4, 20]) */
static __attribute__((noinline)) void
tile_body(const float *restrict A, const float *restrict B, float *restrict C, int thread)
{
    __m256 T_0_0 = {0}, T_0_1 = {0}, T_0_2 = {0}, T_1_0 = {0}, T_1_1 = {0}, T_1_2 = {0}, T_2_0 = {0};
    __m256 T_2_1 = {0}, T_2_2 = {0}, T_3_0 = {0}, T_3_1 = {0}, T_3_2 = {0};
    if (thread == 0) {
        T_0_0 = _mm256_setzero_ps();
        T_0_1 = _mm256_setzero_ps();
        T_0_2 = _mm256_setzero_ps();
        T_1_0 = _mm256_setzero_ps();
        T_1_1 = _mm256_setzero_ps();
        T_1_2 = _mm256_setzero_ps();
        T_2_0 = _mm256_setzero_ps();
        T_2_1 = _mm256_setzero_ps();
        T_2_2 = _mm256_setzero_ps();
        T_3_0 = _mm256_setzero_ps();
        T_3_1 = _mm256_setzero_ps();
        T_3_2 = _mm256_setzero_ps();
        for (int64_t k = 0; k < 64; k++) { /* serial k: C */
            const __m256 A_1 = _mm256_set1_ps(A[k]);
            const __m256 B_1 = _mm256_loadu_ps(&B[k * 32]);
            T_0_0 = _mm256_fmadd_ps(A_1, B_1, T_0_0);
            const __m256 B_2 = _mm256_loadu_ps(&B[k * 32 + 8]);
            T_0_1 = _mm256_fmadd_ps(A_1, B_2, T_0_1);
            const __m256i on = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)4), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            const __m256 B_3 = _mm256_maskload_ps(&B[k * 32 + 16], on);
            T_0_2 = _mm256_fmadd_ps(A_1, B_3, T_0_2);
            const __m256 A_2 = _mm256_set1_ps(A[k + 64]);
            T_1_0 = _mm256_fmadd_ps(A_2, B_1, T_1_0);
            T_1_1 = _mm256_fmadd_ps(A_2, B_2, T_1_1);
            T_1_2 = _mm256_fmadd_ps(A_2, B_3, T_1_2);
            const __m256 A_3 = _mm256_set1_ps(A[k + 128]);
            T_2_0 = _mm256_fmadd_ps(A_3, B_1, T_2_0);
            T_2_1 = _mm256_fmadd_ps(A_3, B_2, T_2_1);
            T_2_2 = _mm256_fmadd_ps(A_3, B_3, T_2_2);
            const __m256 A_4 = _mm256_set1_ps(A[k + 192]);
            T_3_0 = _mm256_fmadd_ps(A_4, B_1, T_3_0);
            T_3_1 = _mm256_fmadd_ps(A_4, B_2, T_3_1);
            T_3_2 = _mm256_fmadd_ps(A_4, B_3, T_3_2);
        }
        _mm256_storeu_ps(C, T_0_0);
        _mm256_storeu_ps(&C[8], T_0_1);
        const __m256i on = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)4), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
        _mm256_maskstore_ps(&C[16], on, T_0_2);
        _mm256_storeu_ps(&C[20], T_1_0);
        _mm256_storeu_ps(&C[28], T_1_1);
        _mm256_maskstore_ps(&C[36], on, T_1_2);
        _mm256_storeu_ps(&C[40], T_2_0);
        _mm256_storeu_ps(&C[48], T_2_1);
        _mm256_maskstore_ps(&C[56], on, T_2_2);
        _mm256_storeu_ps(&C[60], T_3_0);
        _mm256_storeu_ps(&C[68], T_3_1);
        _mm256_maskstore_ps(&C[76], on, T_3_2);
    }
}

void tile(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    tile_body((const float *)args[0], (const float *)args[1], (float *)args[2], thread);
}
