#include <immintrin.h>
#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

/* transpose(input A: float32[48, 48], output C: float32[48, 48]) */
static __attribute__((noinline)) void
transpose_body(const float *restrict A, float *restrict C, int thread)
{
    if (thread == 0) {
        for (int64_t i = 0; i < 6; i++) { /* serial i: C */
            __m256 A_tile_0 = {0}, A_tile_1 = {0}, A_tile_2 = {0}, A_tile_3 = {0}, A_tile_4 = {0};
            __m256 A_tile_5 = {0}, A_tile_6 = {0}, A_tile_7 = {0};
            A_tile_0 = _mm256_loadu_ps(&A[i * 8]);
            A_tile_1 = _mm256_loadu_ps(&A[i * 8 + 48]);
            A_tile_2 = _mm256_loadu_ps(&A[i * 8 + 96]);
            A_tile_3 = _mm256_loadu_ps(&A[i * 8 + 144]);
            A_tile_4 = _mm256_loadu_ps(&A[i * 8 + 192]);
            A_tile_5 = _mm256_loadu_ps(&A[i * 8 + 240]);
            A_tile_6 = _mm256_loadu_ps(&A[i * 8 + 288]);
            A_tile_7 = _mm256_loadu_ps(&A[i * 8 + 336]);
            const __m256 a = A_tile_0;
            const __m256 b = A_tile_2;
            A_tile_0 = _mm256_unpacklo_ps(a, b);
            A_tile_2 = _mm256_unpackhi_ps(a, b);
            const __m256 a_1 = A_tile_1;
            const __m256 b_1 = A_tile_3;
            A_tile_1 = _mm256_unpacklo_ps(a_1, b_1);
            A_tile_3 = _mm256_unpackhi_ps(a_1, b_1);
            const __m256 a_2 = A_tile_4;
            const __m256 b_2 = A_tile_6;
            A_tile_4 = _mm256_unpacklo_ps(a_2, b_2);
            A_tile_6 = _mm256_unpackhi_ps(a_2, b_2);
            const __m256 a_3 = A_tile_5;
            const __m256 b_3 = A_tile_7;
            A_tile_5 = _mm256_unpacklo_ps(a_3, b_3);
            A_tile_7 = _mm256_unpackhi_ps(a_3, b_3);
            const __m256 a_4 = A_tile_0;
            const __m256 b_4 = A_tile_1;
            A_tile_0 = _mm256_unpacklo_ps(a_4, b_4);
            A_tile_1 = _mm256_unpackhi_ps(a_4, b_4);
            const __m256 a_5 = A_tile_2;
            const __m256 b_5 = A_tile_3;
            A_tile_2 = _mm256_unpacklo_ps(a_5, b_5);
            A_tile_3 = _mm256_unpackhi_ps(a_5, b_5);
            const __m256 a_6 = A_tile_4;
            const __m256 b_6 = A_tile_5;
            A_tile_4 = _mm256_unpacklo_ps(a_6, b_6);
            A_tile_5 = _mm256_unpackhi_ps(a_6, b_6);
            const __m256 a_7 = A_tile_6;
            const __m256 b_7 = A_tile_7;
            A_tile_6 = _mm256_unpacklo_ps(a_7, b_7);
            A_tile_7 = _mm256_unpackhi_ps(a_7, b_7);
            const __m256 a_8 = A_tile_0;
            const __m256 b_8 = A_tile_4;
            A_tile_0 = _mm256_permute2f128_ps(a_8, b_8, 0x20);
            A_tile_4 = _mm256_permute2f128_ps(a_8, b_8, 0x31);
            const __m256 a_9 = A_tile_1;
            const __m256 b_9 = A_tile_5;
            A_tile_1 = _mm256_permute2f128_ps(a_9, b_9, 0x20);
            A_tile_5 = _mm256_permute2f128_ps(a_9, b_9, 0x31);
            const __m256 a_10 = A_tile_2;
            const __m256 b_10 = A_tile_6;
            A_tile_2 = _mm256_permute2f128_ps(a_10, b_10, 0x20);
            A_tile_6 = _mm256_permute2f128_ps(a_10, b_10, 0x31);
            const __m256 a_11 = A_tile_3;
            const __m256 b_11 = A_tile_7;
            A_tile_3 = _mm256_permute2f128_ps(a_11, b_11, 0x20);
            A_tile_7 = _mm256_permute2f128_ps(a_11, b_11, 0x31);
            _mm256_storeu_ps(&C[i * 384], _mm256_add_ps(A_tile_0, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 48], _mm256_add_ps(A_tile_1, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 96], _mm256_add_ps(A_tile_2, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 144], _mm256_add_ps(A_tile_3, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 192], _mm256_add_ps(A_tile_4, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 240], _mm256_add_ps(A_tile_5, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 288], _mm256_add_ps(A_tile_6, _mm256_set1_ps(1.0f)));
            _mm256_storeu_ps(&C[i * 384 + 336], _mm256_add_ps(A_tile_7, _mm256_set1_ps(1.0f)));
        }
    }
}

void transpose(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    transpose_body((const float *)args[0], (float *)args[1], thread);
}
