/* What the NEON scans share: the sigmoid of four similarities, and a row's share in the bounds of a block. */
#ifndef SETNET_NEON_H
#define SETNET_NEON_H

#include "../scan.h"

#if HAVE_NEON
#define NEON __attribute__((always_inline)) static inline

/* as quick_exp */
NEON float32x4_t exp_neon(float32x4_t x) {
  float32x4_t n = vrndnq_f32(vmulq_n_f32(x, 1.44269504f));
  float32x4_t r = vfmsq_f32(x, n, vdupq_n_f32(0.693359375f));
  r = vfmsq_f32(r, n, vdupq_n_f32(-2.12194440e-4f));
  float32x4_t y = vdupq_n_f32(1.0f / 720);
  y = vfmaq_f32(vdupq_n_f32(1.0f / 120), y, r);
  y = vfmaq_f32(vdupq_n_f32(1.0f / 24), y, r);
  y = vfmaq_f32(vdupq_n_f32(1.0f / 6), y, r);
  y = vfmaq_f32(vdupq_n_f32(0.5f), y, r);
  y = vfmaq_f32(vdupq_n_f32(1.0f), y, r);
  y = vfmaq_f32(vdupq_n_f32(1.0f), y, r);
  return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(y), vshlq_n_s32(vcvtq_s32_f32(n), 23)));
}

NEON float32x4_t probability_neon(float32x4_t s, const Query *q) {
  if (q->w == 0) return vmaxnmq_f32(vminnmq_f32(s, vdupq_n_f32(UNBOUNDED)), vdupq_n_f32(0.0f));
  float32x4_t z = vfmaq_n_f32(vdupq_n_f32(q->inflate), vsubq_f32(s, vdupq_n_f32(q->threshold)), q->w);
  z = vmaxnmq_f32(vminnmq_f32(z, vdupq_n_f32(80.0f)), vdupq_n_f32(-80.0f)); /* a NaN becomes 80 */
  return vdivq_f32(vdupq_n_f32(1.0f), vaddq_f32(vdupq_n_f32(1.0f), exp_neon(vnegq_f32(z))));
}

/* best = max(best, similarity) of 16 lanes: scale * (step * sum + slack) */
NEON void keep_best(float32x4_t *best, const int32x4_t *sum, const float32x4_t *scale, const Query *q, int64_t p) {
  for (int k = 0; k < 4; k++) {
    float32x4_t s = vfmaq_n_f32(vdupq_n_f32(q->slack[p]), vcvtq_f32_s32(sum[k]), q->step[p]);
    best[k] = vmaxnmq_f32(best[k], vmulq_f32(s, scale[k]));
  }
}

/* all lanes of a wide item get the best of them */
NEON void spread_best(float32x4_t *best) {
  float32x4_t most = vmaxnmq_f32(vmaxnmq_f32(best[0], best[1]), vmaxnmq_f32(best[2], best[3]));
  for (int k = 0; k < 4; k++) best[k] = vdupq_n_f32(vmaxnmvq_f32(most));
}

/* add row p's share in the bounds of 16 lanes */
NEON void add_share(const float32x4_t *best, float shift, const Query *q, int64_t p, float *out) {
  for (int k = 0; k < 4; k++, out += 4) {
    float32x4_t before = is_first(q, p) ? vdupq_n_f32(0) : vld1q_f32(out);
    float32x4_t s = vaddq_f32(best[k], vdupq_n_f32(shift));
    vst1q_f32(out, vfmaq_n_f32(before, probability_neon(s, q), q->weight[p]));
  }
}
#endif
#endif
