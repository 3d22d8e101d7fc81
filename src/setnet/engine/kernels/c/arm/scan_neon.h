/* The scans of bytes and halves of bytes in NEON, four lanes to a register and four registers to a line.
 *
 * Whoever includes this says how four dimensions are multiplied, see scan_neon.c:
 *   NAME(function)                            the name of a scan
 *   TARGET                                    the instruction set to compile it for
 *   dot(sum, codes, query)                    sum += codes . query; codes are signed here
 *   dot_halves(sum, a, b, query_a, query_b)   the same for two registers of codes below 16 */
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

NEON TARGET void add4(const Codes *c, int64_t at, const int8_t *code, int64_t stride, int count,
                      int32x4_t (*sum)[4]) {
  __builtin_prefetch(c->codes + at * LINE + PREFETCH);
  for (int k = 0; k < 4; k++) {
    uint8x16_t x = vld1q_u8(c->codes + at * LINE + k * 16);
    int8x16_t a = vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15))), b = vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
    for (int i = 0; i < count; i++)
      sum[i][k] = dot_halves(sum[i][k], a, b, four(code + i * stride), four(code + i * stride + 4));
  }
}

NEON TARGET void add44(const Codes *c, int64_t at, const int8_t *code, int64_t stride, int count,
                       int32x4_t (*sum)[4]) {
  __builtin_prefetch(c->codes + at * LINE + PREFETCH);
  __builtin_prefetch(c->low + at * LINE + PREFETCH);
  for (int k = 0; k < 4; k++) {
    uint8x16_t high = vld1q_u8(c->codes + at * LINE + k * 16), low = vld1q_u8(c->low + at * LINE + k * 16);
    int8x16_t a = less128(vsliq_n_u8(low, high, 4)), b = less128(vsriq_n_u8(high, low, 4));
    for (int i = 0; i < count; i++) {
      sum[i][k] = dot(sum[i][k], a, four(code + i * stride));
      sum[i][k] = dot(sum[i][k], b, four(code + i * stride + 4));
    }
  }
}

/* the shares of `count` (1..AT_ONCE) query rows starting at p in the bounds of a block; bits is 8, 4 or 44 */
NEON TARGET void block_neon(const Codes *c, const Query *q, int64_t block, int64_t p, int count, int bits,
                            const int32_t *start, float *bounds, int64_t apart) {
  float32x4_t best[AT_ONCE][4];
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 4; k++) best[i][k] = vdupq_n_f32(-INFINITY);
  for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
    int32x4_t sum[AT_ONCE][4];
    for (int i = 0; i < count; i++)
      for (int k = 0; k < 4; k++) sum[i][k] = vdupq_n_s32(start[i]);
    const int8_t *code = q->codes + p * q->stride;
    for (int64_t at = r * c->groups; at < (r + 1) * c->groups; at++) {
      if (bits == 8) add8(c, at, code, q->stride, count, sum);
      if (bits == 4) add4(c, at, code, q->stride, count, sum);
      if (bits == 44) add44(c, at, code, q->stride, count, sum);
      code += bits == 8 ? 4 : 8;
    }
    const float *scales = scales_of(c, r);
    const float32x4_t scale[4] = {vld1q_f32(scales), vld1q_f32(scales + 4), vld1q_f32(scales + 8),
                                  vld1q_f32(scales + 12)};
    for (int i = 0; i < count; i++) keep_best(best[i], sum[i], scale, q, p + i);
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide) spread_best(best[i]);
    add_share(best[i], 0.0f, q, p + i, bounds + owner_of(q, p + i) * apart + block * LANES);
  }
}

NEON TARGET void scan_neon(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds,
                           int64_t apart, int bits) {
  const int64_t used = c->groups * (bits == 8 ? 4 : 8);
  for (int64_t from = 0; from < q->rows; from += STARTS) {
    const int64_t to = from + STARTS < q->rows ? from + STARTS : q->rows;
    int32_t start[STARTS];
    for (int64_t p = from; p < to; p++) { /* what codes that are 128 less leave out of the sums */
      int32_t total = 0;
      for (int64_t d = 0; d < used && bits != 4; d++) total += q->codes[p * q->stride + d];
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
TARGET SCAN(NAME(scan44)) { scan_neon(ARGS, 44); }
