#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

struct tw_team { void (*barrier)(void *state, int thread); void *state; };

/* transpose(input A: float32[48, 48], output C: float32[48, 48]) */
static __attribute__((noinline)) void
transpose_body(const float *restrict A, float *restrict C, int thread)
{
    if (thread == 0) {
        for (int64_t i = 0; i < 12; i++) { /* serial i: C */
            float32x4_t A_tile_0 = {0}, A_tile_1 = {0}, A_tile_2 = {0}, A_tile_3 = {0};
            A_tile_0 = vld1q_f32(&A[i * 4]);
            A_tile_1 = vld1q_f32(&A[i * 4 + 48]);
            A_tile_2 = vld1q_f32(&A[i * 4 + 96]);
            A_tile_3 = vld1q_f32(&A[i * 4 + 144]);
            const float32x4_t a = A_tile_0;
            const float32x4_t b = A_tile_2;
            A_tile_0 = vzip1q_f32(a, b);
            A_tile_2 = vzip2q_f32(a, b);
            const float32x4_t a_1 = A_tile_1;
            const float32x4_t b_1 = A_tile_3;
            A_tile_1 = vzip1q_f32(a_1, b_1);
            A_tile_3 = vzip2q_f32(a_1, b_1);
            const float32x4_t a_2 = A_tile_0;
            const float32x4_t b_2 = A_tile_1;
            A_tile_0 = vzip1q_f32(a_2, b_2);
            A_tile_1 = vzip2q_f32(a_2, b_2);
            const float32x4_t a_3 = A_tile_2;
            const float32x4_t b_3 = A_tile_3;
            A_tile_2 = vzip1q_f32(a_3, b_3);
            A_tile_3 = vzip2q_f32(a_3, b_3);
            vst1q_f32(&C[i * 192], vaddq_f32(A_tile_0, vdupq_n_f32(1.0f)));
            vst1q_f32(&C[i * 192 + 48], vaddq_f32(A_tile_1, vdupq_n_f32(1.0f)));
            vst1q_f32(&C[i * 192 + 96], vaddq_f32(A_tile_2, vdupq_n_f32(1.0f)));
            vst1q_f32(&C[i * 192 + 144], vaddq_f32(A_tile_3, vdupq_n_f32(1.0f)));
        }
    }
}

void transpose(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    transpose_body((const float *)args[0], (float *)args[1], thread);
}
