#include <immintrin.h>
#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

/* transpose(input A: float32[48, 48], output C: float32[48, 48]) */
static __attribute__((noinline)) void
transpose_body(const float *restrict A, float *restrict C, int thread)
{
    if (thread == 0) {
        for (int64_t i = 0; i < 3; i++) { /* serial i: C */
            __m512 A_tile_0 = {0}, A_tile_1 = {0}, A_tile_2 = {0}, A_tile_3 = {0}, A_tile_4 = {0};
            __m512 A_tile_5 = {0}, A_tile_6 = {0}, A_tile_7 = {0}, A_tile_8 = {0}, A_tile_9 = {0};
            __m512 A_tile_10 = {0}, A_tile_11 = {0}, A_tile_12 = {0}, A_tile_13 = {0};
            __m512 A_tile_14 = {0}, A_tile_15 = {0};
            A_tile_0 = _mm512_loadu_ps(&A[i * 16]);
            A_tile_1 = _mm512_loadu_ps(&A[i * 16 + 48]);
            A_tile_2 = _mm512_loadu_ps(&A[i * 16 + 96]);
            A_tile_3 = _mm512_loadu_ps(&A[i * 16 + 144]);
            A_tile_4 = _mm512_loadu_ps(&A[i * 16 + 192]);
            A_tile_5 = _mm512_loadu_ps(&A[i * 16 + 240]);
            A_tile_6 = _mm512_loadu_ps(&A[i * 16 + 288]);
            A_tile_7 = _mm512_loadu_ps(&A[i * 16 + 336]);
            A_tile_8 = _mm512_loadu_ps(&A[i * 16 + 384]);
            A_tile_9 = _mm512_loadu_ps(&A[i * 16 + 432]);
            A_tile_10 = _mm512_loadu_ps(&A[i * 16 + 480]);
            A_tile_11 = _mm512_loadu_ps(&A[i * 16 + 528]);
            A_tile_12 = _mm512_loadu_ps(&A[i * 16 + 576]);
            A_tile_13 = _mm512_loadu_ps(&A[i * 16 + 624]);
            A_tile_14 = _mm512_loadu_ps(&A[i * 16 + 672]);
            A_tile_15 = _mm512_loadu_ps(&A[i * 16 + 720]);
            const __m512 a = A_tile_0;
            const __m512 b = A_tile_2;
            A_tile_0 = _mm512_unpacklo_ps(a, b);
            A_tile_2 = _mm512_unpackhi_ps(a, b);
            const __m512 a_1 = A_tile_1;
            const __m512 b_1 = A_tile_3;
            A_tile_1 = _mm512_unpacklo_ps(a_1, b_1);
            A_tile_3 = _mm512_unpackhi_ps(a_1, b_1);
            const __m512 a_2 = A_tile_4;
            const __m512 b_2 = A_tile_6;
            A_tile_4 = _mm512_unpacklo_ps(a_2, b_2);
            A_tile_6 = _mm512_unpackhi_ps(a_2, b_2);
            const __m512 a_3 = A_tile_5;
            const __m512 b_3 = A_tile_7;
            A_tile_5 = _mm512_unpacklo_ps(a_3, b_3);
            A_tile_7 = _mm512_unpackhi_ps(a_3, b_3);
            const __m512 a_4 = A_tile_8;
            const __m512 b_4 = A_tile_10;
            A_tile_8 = _mm512_unpacklo_ps(a_4, b_4);
            A_tile_10 = _mm512_unpackhi_ps(a_4, b_4);
            const __m512 a_5 = A_tile_9;
            const __m512 b_5 = A_tile_11;
            A_tile_9 = _mm512_unpacklo_ps(a_5, b_5);
            A_tile_11 = _mm512_unpackhi_ps(a_5, b_5);
            const __m512 a_6 = A_tile_12;
            const __m512 b_6 = A_tile_14;
            A_tile_12 = _mm512_unpacklo_ps(a_6, b_6);
            A_tile_14 = _mm512_unpackhi_ps(a_6, b_6);
            const __m512 a_7 = A_tile_13;
            const __m512 b_7 = A_tile_15;
            A_tile_13 = _mm512_unpacklo_ps(a_7, b_7);
            A_tile_15 = _mm512_unpackhi_ps(a_7, b_7);
            const __m512 a_8 = A_tile_0;
            const __m512 b_8 = A_tile_1;
            A_tile_0 = _mm512_unpacklo_ps(a_8, b_8);
            A_tile_1 = _mm512_unpackhi_ps(a_8, b_8);
            const __m512 a_9 = A_tile_2;
            const __m512 b_9 = A_tile_3;
            A_tile_2 = _mm512_unpacklo_ps(a_9, b_9);
            A_tile_3 = _mm512_unpackhi_ps(a_9, b_9);
            const __m512 a_10 = A_tile_4;
            const __m512 b_10 = A_tile_5;
            A_tile_4 = _mm512_unpacklo_ps(a_10, b_10);
            A_tile_5 = _mm512_unpackhi_ps(a_10, b_10);
            const __m512 a_11 = A_tile_6;
            const __m512 b_11 = A_tile_7;
            A_tile_6 = _mm512_unpacklo_ps(a_11, b_11);
            A_tile_7 = _mm512_unpackhi_ps(a_11, b_11);
            const __m512 a_12 = A_tile_8;
            const __m512 b_12 = A_tile_9;
            A_tile_8 = _mm512_unpacklo_ps(a_12, b_12);
            A_tile_9 = _mm512_unpackhi_ps(a_12, b_12);
            const __m512 a_13 = A_tile_10;
            const __m512 b_13 = A_tile_11;
            A_tile_10 = _mm512_unpacklo_ps(a_13, b_13);
            A_tile_11 = _mm512_unpackhi_ps(a_13, b_13);
            const __m512 a_14 = A_tile_12;
            const __m512 b_14 = A_tile_13;
            A_tile_12 = _mm512_unpacklo_ps(a_14, b_14);
            A_tile_13 = _mm512_unpackhi_ps(a_14, b_14);
            const __m512 a_15 = A_tile_14;
            const __m512 b_15 = A_tile_15;
            A_tile_14 = _mm512_unpacklo_ps(a_15, b_15);
            A_tile_15 = _mm512_unpackhi_ps(a_15, b_15);
            const __m512 a_16 = A_tile_0;
            const __m512 b_16 = A_tile_4;
            A_tile_0 = _mm512_shuffle_f32x4(a_16, b_16, 0x88);
            A_tile_4 = _mm512_shuffle_f32x4(a_16, b_16, 0xdd);
            const __m512 a_17 = A_tile_1;
            const __m512 b_17 = A_tile_5;
            A_tile_1 = _mm512_shuffle_f32x4(a_17, b_17, 0x88);
            A_tile_5 = _mm512_shuffle_f32x4(a_17, b_17, 0xdd);
            const __m512 a_18 = A_tile_2;
            const __m512 b_18 = A_tile_6;
            A_tile_2 = _mm512_shuffle_f32x4(a_18, b_18, 0x88);
            A_tile_6 = _mm512_shuffle_f32x4(a_18, b_18, 0xdd);
            const __m512 a_19 = A_tile_3;
            const __m512 b_19 = A_tile_7;
            A_tile_3 = _mm512_shuffle_f32x4(a_19, b_19, 0x88);
            A_tile_7 = _mm512_shuffle_f32x4(a_19, b_19, 0xdd);
            const __m512 a_20 = A_tile_8;
            const __m512 b_20 = A_tile_12;
            A_tile_8 = _mm512_shuffle_f32x4(a_20, b_20, 0x88);
            A_tile_12 = _mm512_shuffle_f32x4(a_20, b_20, 0xdd);
            const __m512 a_21 = A_tile_9;
            const __m512 b_21 = A_tile_13;
            A_tile_9 = _mm512_shuffle_f32x4(a_21, b_21, 0x88);
            A_tile_13 = _mm512_shuffle_f32x4(a_21, b_21, 0xdd);
            const __m512 a_22 = A_tile_10;
            const __m512 b_22 = A_tile_14;
            A_tile_10 = _mm512_shuffle_f32x4(a_22, b_22, 0x88);
            A_tile_14 = _mm512_shuffle_f32x4(a_22, b_22, 0xdd);
            const __m512 a_23 = A_tile_11;
            const __m512 b_23 = A_tile_15;
            A_tile_11 = _mm512_shuffle_f32x4(a_23, b_23, 0x88);
            A_tile_15 = _mm512_shuffle_f32x4(a_23, b_23, 0xdd);
            const __m512 a_24 = A_tile_0;
            const __m512 b_24 = A_tile_8;
            A_tile_0 = _mm512_shuffle_f32x4(a_24, b_24, 0x88);
            A_tile_8 = _mm512_shuffle_f32x4(a_24, b_24, 0xdd);
            const __m512 a_25 = A_tile_1;
            const __m512 b_25 = A_tile_9;
            A_tile_1 = _mm512_shuffle_f32x4(a_25, b_25, 0x88);
            A_tile_9 = _mm512_shuffle_f32x4(a_25, b_25, 0xdd);
            const __m512 a_26 = A_tile_2;
            const __m512 b_26 = A_tile_10;
            A_tile_2 = _mm512_shuffle_f32x4(a_26, b_26, 0x88);
            A_tile_10 = _mm512_shuffle_f32x4(a_26, b_26, 0xdd);
            const __m512 a_27 = A_tile_3;
            const __m512 b_27 = A_tile_11;
            A_tile_3 = _mm512_shuffle_f32x4(a_27, b_27, 0x88);
            A_tile_11 = _mm512_shuffle_f32x4(a_27, b_27, 0xdd);
            const __m512 a_28 = A_tile_4;
            const __m512 b_28 = A_tile_12;
            A_tile_4 = _mm512_shuffle_f32x4(a_28, b_28, 0x88);
            A_tile_12 = _mm512_shuffle_f32x4(a_28, b_28, 0xdd);
            const __m512 a_29 = A_tile_5;
            const __m512 b_29 = A_tile_13;
            A_tile_5 = _mm512_shuffle_f32x4(a_29, b_29, 0x88);
            A_tile_13 = _mm512_shuffle_f32x4(a_29, b_29, 0xdd);
            const __m512 a_30 = A_tile_6;
            const __m512 b_30 = A_tile_14;
            A_tile_6 = _mm512_shuffle_f32x4(a_30, b_30, 0x88);
            A_tile_14 = _mm512_shuffle_f32x4(a_30, b_30, 0xdd);
            const __m512 a_31 = A_tile_7;
            const __m512 b_31 = A_tile_15;
            A_tile_7 = _mm512_shuffle_f32x4(a_31, b_31, 0x88);
            A_tile_15 = _mm512_shuffle_f32x4(a_31, b_31, 0xdd);
            _mm512_storeu_ps(&C[i * 768], _mm512_add_ps(A_tile_0, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 48], _mm512_add_ps(A_tile_1, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 96], _mm512_add_ps(A_tile_2, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 144], _mm512_add_ps(A_tile_3, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 192], _mm512_add_ps(A_tile_4, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 240], _mm512_add_ps(A_tile_5, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 288], _mm512_add_ps(A_tile_6, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 336], _mm512_add_ps(A_tile_7, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 384], _mm512_add_ps(A_tile_8, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 432], _mm512_add_ps(A_tile_9, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 480], _mm512_add_ps(A_tile_10, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 528], _mm512_add_ps(A_tile_11, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 576], _mm512_add_ps(A_tile_12, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 624], _mm512_add_ps(A_tile_13, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 672], _mm512_add_ps(A_tile_14, _mm512_set1_ps(1.0f)));
            _mm512_storeu_ps(&C[i * 768 + 720], _mm512_add_ps(A_tile_15, _mm512_set1_ps(1.0f)));
        }
    }
}

void transpose(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    transpose_body((const float *)args[0], (float *)args[1], thread);
}
