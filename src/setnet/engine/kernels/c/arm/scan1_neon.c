/* One-bit codes in NEON: four bits of 16 lanes at a time are looked up in tables of the query's sums. */
#include "neon.h"

#if HAVE_NEON
#define AT_ONCE 4 /* query rows whose sums fit the registers */
#define CHUNK 512 /* bytes of a lane whose sums fit 16 bits: 2 x 63 x 512 */

/* the sums of lanes 0..7 and 8..15 over a chunk */
typedef struct {
  uint16x8_t first, second;
} Sums;

/* Add the sums of four bytes of 16 lanes. Each byte's two are below 64, so those of two bytes fit a byte. */
NEON void look_up(const uint8x16_t *codes, const uint8_t *tables, Sums *sums) {
  for (int j = 0; j < 4; j += 2) {
    uint8x16_t s = vdupq_n_u8(0);
    for (int i = j; i < j + 2; i++) {
      s = vaddq_u8(s, vqtbl1q_u8(vld1q_u8(tables + i * 16), vandq_u8(codes[i], vdupq_n_u8(15))));
      s = vaddq_u8(s, vqtbl1q_u8(vld1q_u8(tables + 64 + i * 16), vshrq_n_u8(codes[i], 4)));
    }
    sums->first = vaddw_u8(sums->first, vget_low_u8(s));
    sums->second = vaddw_high_u8(sums->second, s);
  }
}

NEON int64_t chunk_end(int64_t from, int64_t bytes) { return from + CHUNK < bytes ? from + CHUNK : bytes; }

NEON void clear(int32x4_t (*total)[4], int count) {
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 4; k++) total[i][k] = vdupq_n_s32(0);
}

NEON void widen(Sums sums, int32x4_t *total) {
  total[0] = vaddq_s32(total[0], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(sums.first))));
  total[1] = vaddq_s32(total[1], vreinterpretq_s32_u32(vmovl_high_u16(sums.first)));
  total[2] = vaddq_s32(total[2], vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(sums.second))));
  total[3] = vaddq_s32(total[3], vreinterpretq_s32_u32(vmovl_high_u16(sums.second)));
}

/* 16 rows x 16 bytes, byte by byte; of rows that end before, the first 8 bytes */
NEON void transposed(const uint8_t *const *rows, int64_t at, int64_t bytes, uint8x16_t *columns) {
  uint8x16_t half[LANES], *from = columns, *to = half;
  for (int i = 0; i < LANES; i++)
    columns[i] = at + 16 <= bytes ? vld1q_u8(rows[i] + at) : vcombine_u8(vld1_u8(rows[i] + at), vdup_n_u8(0));
  for (int step = 0; step < 4; step++) { /* each step doubles the rows whose bytes stand together */
    for (int i = 0; i < 8; i++) {
      to[2 * i] = vzip1q_u8(from[i], from[i + 8]);
      to[2 * i + 1] = vzip2q_u8(from[i], from[i + 8]);
    }
    uint8x16_t *other = from;
    from = to, to = other;
  }
}

/* total += the sums of 16 rows over bytes from .. to of their codes, for `count` query rows */
NEON void add_rows(const uint8_t *const *rows, int64_t bytes, int64_t from, int64_t to, const uint8_t *tables,
                   int64_t stride, int count, int32x4_t (*total)[4]) {
  Sums sums[AT_ONCE];
  for (int i = 0; i < count; i++) sums[i].first = sums[i].second = vdupq_n_u16(0);
  for (int64_t j = from; j < to; j += 16) {
    uint8x16_t codes[LANES];
    transposed(rows, j, bytes, codes);
    for (int64_t k = 0; k < 16 && j + k < to; k += 4)
      for (int i = 0; i < count; i++) look_up(codes + k, tables + i * stride + (j + k) * 32, &sums[i]);
  }
  for (int i = 0; i < count; i++) widen(sums[i], total[i]);
}

/* set vectors row by row: the shares of `count` query rows starting at p in the scores of the items of a block */
NEON void bits_items(const Codes *c, const Query *q, int64_t block, int64_t p, int count, float *bounds,
                     int64_t apart) {
  const int64_t item = block * LANES, rest = c->items - item, n = rest < LANES ? rest : LANES;
  const uint8_t *rows[LANES], *tables = (const uint8_t *)q->codes + p * q->stride;
  float kept[LANES];
  float32x4_t scale[4];
  for (int64_t lane = 0; lane < LANES; lane++) {
    const int64_t i = item + (lane < n ? lane : n - 1);
    rows[lane] = c->codes + i * c->groups;
    kept[lane] = ((const float *)c->scales)[i];
  }
  for (int k = 0; k < 4; k++) scale[k] = vld1q_f32(kept + k * 4);
  int32x4_t total[AT_ONCE][4];
  clear(total, count);
  for (int64_t from = 0; from < c->groups; from += CHUNK)
    add_rows(rows, c->groups, from, chunk_end(from, c->groups), tables, q->stride, count, total);
  for (int i = 0; i < count; i++) {
    float32x4_t best[4] = {vdupq_n_f32(-INFINITY), vdupq_n_f32(-INFINITY), vdupq_n_f32(-INFINITY),
                           vdupq_n_f32(-INFINITY)};
    keep_best(best, total[i], scale, q, p + i);
    float *out = bounds + owner_of(q, p + i) * apart + item;
    memcpy(kept, out, (size_t)n * sizeof(float));
    add_share(best, q->shift[p + i], q, p + i, kept);
    memcpy(out, kept, (size_t)n * sizeof(float));
  }
}

#define EACH_BLOCK(shares)                                                     \
  for (int64_t i = 0; i < n; i++) {                                            \
    int64_t p = 0;                                                             \
    for (; p + 4 <= q->rows; p += 4) shares(c, q, blocks[i], p, 4, bounds, apart); \
    if (q->rows - p == 3) shares(c, q, blocks[i], p, 3, bounds, apart);        \
    if (q->rows - p == 2) shares(c, q, blocks[i], p, 2, bounds, apart);        \
    if (q->rows - p == 1) shares(c, q, blocks[i], p, 1, bounds, apart);        \
  }

SCAN(scan1_rows_neon) { EACH_BLOCK(bits_items) }
#endif
