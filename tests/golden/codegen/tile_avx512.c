#include <immintrin.h>
#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

/* tile(input A: float32[4, 64], input B: float32[64, 32], output C: float32[4, 20]) */
static __attribute__((noinline)) void
tile_body(const float *restrict A, const float *restrict B, float *restrict C, int thread)
{
    __m512 T_0_0 = {0}, T_0_1 = {0}, T_1_0 = {0}, T_1_1 = {0}, T_2_0 = {0}, T_2_1 = {0}, T_3_0 = {0};
    __m512 T_3_1 = {0};
    if (thread == 0) {
        T_0_0 = _mm512_setzero_ps();
        T_0_1 = _mm512_setzero_ps();
        T_1_0 = _mm512_setzero_ps();
        T_1_1 = _mm512_setzero_ps();
        T_2_0 = _mm512_setzero_ps();
        T_2_1 = _mm512_setzero_ps();
        T_3_0 = _mm512_setzero_ps();
        T_3_1 = _mm512_setzero_ps();
        for (int64_t k = 0; k < 64; k++) { /* serial k: C */
            const __m512 A_1 = _mm512_set1_ps(A[k]);
            const __m512 B_1 = _mm512_loadu_ps(&B[k * 32]);
            T_0_0 = _mm512_fmadd_ps(A_1, B_1, T_0_0);
            const __mmask16 on = (__mmask16)0xf;
            const __m512 B_2 = _mm512_maskz_loadu_ps(on, &B[k * 32 + 16]);
            T_0_1 = _mm512_fmadd_ps(A_1, B_2, T_0_1);
            const __m512 A_2 = _mm512_set1_ps(A[k + 64]);
            T_1_0 = _mm512_fmadd_ps(A_2, B_1, T_1_0);
            T_1_1 = _mm512_fmadd_ps(A_2, B_2, T_1_1);
            const __m512 A_3 = _mm512_set1_ps(A[k + 128]);
            T_2_0 = _mm512_fmadd_ps(A_3, B_1, T_2_0);
            T_2_1 = _mm512_fmadd_ps(A_3, B_2, T_2_1);
            const __m512 A_4 = _mm512_set1_ps(A[k + 192]);
            T_3_0 = _mm512_fmadd_ps(A_4, B_1, T_3_0);
            T_3_1 = _mm512_fmadd_ps(A_4, B_2, T_3_1);
        }
        _mm512_storeu_ps(C, T_0_0);
        const __mmask16 on = (__mmask16)0xf;
        _mm512_mask_storeu_ps(&C[16], on, T_0_1);
        _mm512_storeu_ps(&C[20], T_1_0);
        _mm512_mask_storeu_ps(&C[36], on, T_1_1);
        _mm512_storeu_ps(&C[40], T_2_0);
        _mm512_mask_storeu_ps(&C[56], on, T_2_1);
        _mm512_storeu_ps(&C[60], T_3_0);
        _mm512_mask_storeu_ps(&C[76], on, T_3_1);
    }
}

void tile(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    tile_body((const float *)args[0], (const float *)args[1], (float *)args[2], thread);
}
