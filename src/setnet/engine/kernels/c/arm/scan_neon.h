/* The scans of bytes and halves of bytes in NEON, four lanes to a register and four registers to a line.
 *
 * Whoever includes this says how four dimensions are multiplied, see scan_neon.c:
 *   NAME(function)                            the name of a scan
 *   TARGET                                    the instruction set to compile it for
 *   dot(sum, codes, query)                    sum += codes . query; codes are signed here
 *   dot_halves(sum, a, b, query_a, query_b)   the same for two registers of codes below 32 */
#include "neon.h"

#define AT_ONCE 4 /* query rows whose sums fit the registers */
#define STARTS 64 /* query rows whose first sums are worked out together */

NEON int8x16_t four(const int8_t *query) {
  int32_t four;
  memcpy(&four, query, sizeof four);
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

/* unsigned bytes as signed ones: 128 less */
NEON int8x16_t less128(uint8x16_t x) { return vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(128))); }

/* sum[i] += codes of a line . four or eight dimensions of query row i */
NEON TARGET void add8(const Codes *c, int64_t at, const int8_t *code, int64_t stride, int count,
                      int32x4_t (*sum)[4]) {
  for (int k = 0; k < 4; k++) {
    int8x16_t x = less128(vld1q_u8(c->codes + at * LINE + k * 16));
    for (int i = 0; i < count; i++) sum[i][k] = dot(sum[i][k], x, four(code + i * stride));
  }
}

NEON TARGET void add4(const uint8_t *line, const int8_t *code, int64_t stride, int count, int32x4_t (*sum)[4]) {
  __builtin_prefetch(line + PREFETCH);
  for (int k = 0; k < 4; k++) {
    uint8x16_t x = vld1q_u8(line + k * 16);
    int8x16_t a = vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15))), b = vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
    for (int i = 0; i < count; i++)
      sum[i][k] = dot_halves(sum[i][k], a, b, four(code + i * stride), four(code + i * stride + 4));
  }
}

/* a panel of 32 dimensions of five bits */
NEON TARGET void add5(const uint8_t *panel, const int8_t *code, int64_t stride, int count, int32x4_t (*sum)[4]) {
  const uint8x16_t low = vdupq_n_u8(15), fifth = vdupq_n_u8(16);
  for (int m = 0; m < 5; m++) __builtin_prefetch(panel + m * LINE + PREFETCH);
  for (int k = 0; k < 4; k++) {
    const uint8x16_t all = vld1q_u8(panel + k * 16);
    uint8x16_t bits = all;
    for (int m = 0; m < 4; m++) {
      const uint8x16_t x = vld1q_u8(panel + (1 + m) * LINE + k * 16);
      if (m == 2) bits = vshlq_n_u8(all, 4);
      const uint8x16_t a = vorrq_u8(vandq_u8(x, low), vandq_u8(bits, fifth));
      bits = vshrq_n_u8(bits, 1);
      const uint8x16_t b = vorrq_u8(vshrq_n_u8(x, 4), vandq_u8(bits, fifth));
      bits = vshrq_n_u8(bits, 1);
      for (int i = 0; i < count; i++)
        sum[i][k] = dot_halves(sum[i][k], vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b),
                               four(code + i * stride + m * 8), four(code + i * stride + m * 8 + 4));
    }
  }
}

NEON void upper_halves_neon(const uint16_t *stored, float32x4_t *out) {
  for (int k = 0; k < 4; k++) out[k] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(stored + k * 4), 16));
}

/* similarities, or their upper bounds, of row r's lanes to `count` (1..AT_ONCE) query rows; bits is 8, 4, 5 or 9 */
NEON TARGET void similarities_neon(const Codes *c, const Query *q, int64_t r, int64_t p, int count, int bits,
                                   const int32_t *start, float32x4_t (*s)[4]) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  const int8_t *code = q->codes + p * q->stride;
  int32x4_t sum[AT_ONCE][4];
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 4; k++) sum[i][k] = vdupq_n_s32(bits == 9 ? 0 : start[i]);
  for (int64_t g = 0; g < c->groups && bits == 8; g++) add8(c, r * c->groups + g, code + g * 4, q->stride, count, sum);
  for (int64_t g = 0; g < c->groups && bits == 4; g++) add4(row + g * LINE, code + g * 8, q->stride, count, sum);
  for (int64_t g = 0; g < c->groups / 5 && bits >= 5 && bits != 8; g++)
    add5(row + g * 5 * LINE, code + g * PANEL, q->stride, count, sum);
  if (bits == 9) {
    const int64_t lines = c->groups / 5 * 4;
    for (int i = 0; i < count; i++)
      for (int k = 0; k < 4; k++) sum[i][k] = vaddq_s32(vshlq_n_s32(sum[i][k], 4), vdupq_n_s32(start[i]));
    for (int64_t g = 0; g < lines; g++)
      add4(c->fine + (r * lines + g) * LINE, code + g * 8, q->stride, count, sum);
  }
  float32x4_t scale[4], residual[4], norm[4];
  const int is_exact = bits == 8 || bits == 4;
  if (is_exact) {
    for (int k = 0; k < 4; k++) scale[k] = vld1q_f32(scales_of(c, r) + k * 4);
  } else {
    upper_halves_neon(norms_of(c, r, SCALE), scale);
    upper_halves_neon(bits == 9 ? c->fine_norms + r * LANES : norms_of(c, r, RESIDUAL), residual);
    upper_halves_neon(norms_of(c, r, NORM), norm);
  }
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 4; k++) {
      s[i][k] = vmulq_f32(vfmaq_n_f32(vdupq_n_f32(q->slack[p + i]), vcvtq_f32_s32(sum[i][k]), q->step[p + i]), scale[k]);
      if (!is_exact)
        s[i][k] = vfmaq_n_f32(vfmaq_n_f32(s[i][k], residual[k], q->length[p + i]), norm[k], q->lost[p + i]);
    }
}

/* the shares of `count` (1..AT_ONCE) query rows starting at p in the bounds of a block */
NEON TARGET void block_neon(const Codes *c, const Query *q, int64_t block, int64_t p, int count, int bits,
                            const int32_t *start, float *bounds, int64_t apart) {
  float32x4_t best[AT_ONCE][4], s[AT_ONCE][4];
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 4; k++) best[i][k] = vdupq_n_f32(-INFINITY);
  for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
    similarities_neon(c, q, r, p, count, bits, start, s);
    for (int i = 0; i < count; i++)
      for (int k = 0; k < 4; k++) best[i][k] = vmaxnmq_f32(best[i][k], s[i][k]);
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide) spread_best(best[i]);
    add_share(best[i], 0.0f, q, p + i, bounds + owner_of(q, p + i) * apart + block * LANES);
  }
}

NEON TARGET void keep_most(const Codes *c, const Query *q, int64_t r, int64_t p, int count, float32x4_t *most) {
  float32x4_t s[AT_ONCE][4];
  similarities_neon(c, q, r, p, count, 5, q->start + p, s);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 4; k++) most[k] = vmaxnmq_f32(most[k], vsubq_f32(s[i][k], vdupq_n_f32(q->least[p + i])));
}

TARGET SCAN(NAME(least5)) {
  for (int64_t b = 0; b < n; b++)
    for (int64_t from = 0, to; from < q->rows; from = to) {
      float32x4_t least[4], most[4];
      for (int k = 0; k < 4; k++) least[k] = vdupq_n_f32(INFINITY);
      to = query_end(q, from);
      for (int64_t r = row_of(c, blocks[b]); r < row_of(c, blocks[b] + 1); r++) {
        for (int k = 0; k < 4; k++) most[k] = vdupq_n_f32(-INFINITY);
        int64_t p = from;
        for (; p + 4 <= to; p += 4) keep_most(c, q, r, p, 4, most);
        for (; p < to; p++) keep_most(c, q, r, p, 1, most);
        for (int k = 0; k < 4; k++) least[k] = vminnmq_f32(least[k], most[k]);
      }
      if (blocks[b] >= c->first_wide) {
        const float lowest = vminnmvq_f32(vminnmq_f32(vminnmq_f32(least[0], least[1]), vminnmq_f32(least[2], least[3])));
        for (int k = 0; k < 4; k++) least[k] = vdupq_n_f32(lowest);
      }
      for (int k = 0; k < 4; k++) vst1q_f32(bounds + owner_of(q, from) * apart + blocks[b] * LANES + k * 4, least[k]);
    }
}

NEON TARGET void scan_neon(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds,
                           int64_t apart, int bits) {
  const int64_t used = bits == 8 ? c->groups * 4 : 0;
  for (int64_t from = 0; from < q->rows; from += STARTS) {
    const int64_t to = from + STARTS < q->rows ? from + STARTS : q->rows;
    int32_t start[STARTS];
    for (int64_t p = from; p < to; p++) { /* what codes that are 128 less leave out of the sums */
      int32_t total = 0;
      for (int64_t d = 0; d < used; d++) total += q->codes[p * q->stride + d];
      start[p - from] = q->start[p] + 128 * total;
    }
    for (int64_t i = 0; i < n; i++) {
      int64_t p = from;
      for (; p + 4 <= to; p += 4) block_neon(c, q, blocks[i], p, 4, bits, start + p - from, bounds, apart);
      if (to - p == 3) block_neon(c, q, blocks[i], p, 3, bits, start + p - from, bounds, apart);
      if (to - p == 2) block_neon(c, q, blocks[i], p, 2, bits, start + p - from, bounds, apart);
      if (to - p == 1) block_neon(c, q, blocks[i], p, 1, bits, start + p - from, bounds, apart);
    }
  }
}

TARGET SCAN(NAME(scan8)) { scan_neon(ARGS, 8); }
TARGET SCAN(NAME(scan4)) { scan_neon(ARGS, 4); }
TARGET SCAN(NAME(scan5)) { scan_neon(ARGS, 5); }
TARGET SCAN(NAME(scan9)) { scan_neon(ARGS, 9); }
