/* One-bit codes in AVX2: four bits of 16 lanes at a time are looked up in tables of the query's sums.
 *
 * A table's 16 entries are the sums that four dimensions can have, as numbers below 64, so that four of them fit a byte.
 * The two halves of a register hold two bytes of the same 16 lanes. */
#include "avx2.h"

#if HAVE_X86
#define CHUNK 1024 /* bytes of a lane whose sums fit 16 bits: 2 x 63 x 1024 / 2 */

/* 16 lanes x 4 bytes as they are looked up: byte 0 | byte 1, byte 2 | byte 3 */
typedef struct {
  __m256i first, second;
} Quad;

/* even and odd lanes of 16 sums; the halves of a register are still apart */
typedef struct {
  __m256i even, odd;
} Sums;

AVX2 void look_up(Quad codes, const uint8_t *tables, Sums *sums) {
  const __m256i low = _mm256_set1_epi8(15), even = _mm256_set1_epi16(255), *t = (const __m256i *)tables;
  __m256i s = _mm256_shuffle_epi8(_mm256_loadu_si256(t), _mm256_and_si256(codes.first, low));
  s = _mm256_add_epi8(s, _mm256_shuffle_epi8(_mm256_loadu_si256(t + 1), _mm256_and_si256(codes.second, low)));
  __m256i high = _mm256_and_si256(_mm256_srli_epi16(codes.first, 4), low);
  s = _mm256_add_epi8(s, _mm256_shuffle_epi8(_mm256_loadu_si256(t + 2), high));
  high = _mm256_and_si256(_mm256_srli_epi16(codes.second, 4), low);
  s = _mm256_add_epi8(s, _mm256_shuffle_epi8(_mm256_loadu_si256(t + 3), high));
  sums->even = _mm256_add_epi16(sums->even, _mm256_and_si256(s, even));
  sums->odd = _mm256_add_epi16(sums->odd, _mm256_srli_epi16(s, 8));
}

/* total += the sums of lanes 0..7 and 8..15 */
AVX2 void widen(Sums sums, __m256i *total) {
  __m256i a = _mm256_unpacklo_epi16(sums.even, sums.odd), b = _mm256_unpackhi_epi16(sums.even, sums.odd);
  total[0] = _mm256_add_epi32(total[0], _mm256_add_epi32(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)),
                                                         _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1))));
  total[1] = _mm256_add_epi32(total[1], _mm256_add_epi32(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(b)),
                                                         _mm256_cvtepu16_epi32(_mm256_extracti128_si256(b, 1))));
}

/* 16 rows x 16 bytes, byte by byte: four quads */
AVX2 void transposed(const uint8_t *const *rows, int64_t at, int64_t bytes, Quad *quads) {
  __m256i x[8], y[8];
  for (int i = 0; i < 8; i++) {
    __m128i a, b;
    if (at + 16 <= bytes) {
      a = _mm_loadu_si128((const __m128i *)(rows[i] + at));
      b = _mm_loadu_si128((const __m128i *)(rows[i + 8] + at));
    } else { /* rows are whole 64-bit words */
      a = _mm_loadl_epi64((const __m128i *)(rows[i] + at));
      b = _mm_loadl_epi64((const __m128i *)(rows[i + 8] + at));
    }
    x[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
  }
  /* rows i and i + 4, then i + 2, then i + 1 take turns: each step doubles the rows whose bytes stand together */
  for (int i = 0; i < 4; i++) {
    y[2 * i] = _mm256_unpacklo_epi8(x[i], x[i + 4]); /* bytes 0..7 */
    y[2 * i + 1] = _mm256_unpackhi_epi8(x[i], x[i + 4]);
  }
  for (int i = 0; i < 4; i++) { /* y[i]: row i / 2, half i % 2 */
    x[2 * i] = _mm256_unpacklo_epi8(y[i], y[i + 4]);
    x[2 * i + 1] = _mm256_unpackhi_epi8(y[i], y[i + 4]);
  }
  for (int i = 0; i < 4; i++) { /* x[i]: of row 0, x[i + 4]: of row 1, bytes 4 i.. of quarter i */
    y[2 * i] = _mm256_unpacklo_epi8(x[i], x[i + 4]);
    y[2 * i + 1] = _mm256_unpackhi_epi8(x[i], x[i + 4]);
  }
  for (int i = 0; i < 4; i++) {
    quads[i].first = _mm256_permute4x64_epi64(y[2 * i], 0xd8);
    quads[i].second = _mm256_permute4x64_epi64(y[2 * i + 1], 0xd8);
  }
}

/* the sums of 16 lanes over their codes in lane order, for `count` (1..3) query rows */
AVX2 void lane_sums(const uint8_t *row, int64_t bytes, const uint8_t *tables, int64_t stride, int count,
                    __m256i (*total)[2]) {
  for (int64_t from = 0; from < bytes; from += CHUNK) {
    Sums sums[3];
    const int64_t to = from + CHUNK < bytes ? from + CHUNK : bytes;
    for (int i = 0; i < count; i++) sums[i].even = sums[i].odd = _mm256_setzero_si256();
    for (int64_t j = from; j < to; j += 4) {
      const __m256i *line = (const __m256i *)(row + j * LANES);
      const Quad quad = {_mm256_loadu_si256(line), _mm256_loadu_si256(line + 1)};
      _mm_prefetch((const char *)line + PREFETCH, _MM_HINT_T0);
      for (int i = 0; i < count; i++) look_up(quad, tables + i * stride + j * 32, &sums[i]);
    }
    for (int i = 0; i < count; i++) widen(sums[i], total[i]);
  }
}

/* the same over 16 rows that are stored one by one */
AVX2 void row_sums(const uint8_t *const *rows, int64_t bytes, const uint8_t *tables, int64_t stride, int count,
                   __m256i (*total)[2]) {
  for (int64_t from = 0; from < bytes; from += CHUNK) {
    Sums sums[3];
    const int64_t to = from + CHUNK < bytes ? from + CHUNK : bytes;
    for (int i = 0; i < count; i++) sums[i].even = sums[i].odd = _mm256_setzero_si256();
    for (int64_t j = from; j < to; j += 16) {
      Quad quads[4];
      transposed(rows, j, bytes, quads);
      const int n = to - j < 16 ? 2 : 4;
      for (int k = 0; k < n; k++)
        for (int i = 0; i < count; i++) look_up(quads[k], tables + i * stride + (j + 4 * k) * 32, &sums[i]);
    }
    for (int i = 0; i < count; i++) widen(sums[i], total[i]);
  }
}

/* factor: a float32 whose lower half is not stored */
AVX2 __m256 factors(const uint16_t *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

AVX2 __m256 similarity(__m256i sum, __m256 scale, const Query *q, int64_t p) {
  return _mm256_mul_ps(scale, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(q->step[p]),
                                              _mm256_set1_ps(q->slack[p])));
}

/* add row p's share in the scores of eight lanes */
AVX2 void share(__m256 best, const Query *q, int64_t p, float *out) {
  __m256 before = is_first(q, p) ? _mm256_setzero_ps() : _mm256_loadu_ps(out);
  __m256 s = _mm256_add_ps(best, _mm256_set1_ps(q->shift[p]));
  _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_set1_ps(q->weight[p]), probability256(s, q), before));
}

/* elements in lane order: the shares of `count` query rows starting at p in the scores of a block */
AVX2 void bits_block(const Codes *c, const Query *q, int64_t block, int64_t p, int count, float *bounds,
                     int64_t apart) {
  const uint8_t *tables = (const uint8_t *)q->codes + p * q->stride;
  __m256 best[3][2];
  for (int i = 0; i < count; i++) best[i][0] = best[i][1] = _mm256_set1_ps(-INFINITY);
  for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
    __m256i total[3][2];
    for (int i = 0; i < count; i++) total[i][0] = total[i][1] = _mm256_setzero_si256();
    lane_sums(c->codes + r * c->groups * LANES, c->groups, tables, q->stride, count, total);
    for (int half = 0; half < 2; half++) {
      __m256 scale = factors((const uint16_t *)c->scales + r * LANES + half * 8);
      for (int i = 0; i < count; i++)
        best[i][half] = _mm256_max_ps(best[i][half], similarity(total[i][half], scale, q, p + i));
    }
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide)
      best[i][0] = best[i][1] = _mm256_set1_ps(largest256(_mm256_max_ps(best[i][0], best[i][1])));
    float *out = bounds + owner_of(q, p + i) * apart + block * LANES;
    share(best[i][0], q, p + i, out);
    share(best[i][1], q, p + i, out + 8);
  }
}

/* set vectors row by row: the same for items i .. i + n, n <= LANES */
AVX2 void bits_items(const Codes *c, const Query *q, int64_t item, int64_t n, int64_t p, int count, float *bounds,
                     int64_t apart) {
  const uint8_t *rows[LANES], *tables = (const uint8_t *)q->codes + p * q->stride;
  float scales[LANES], kept[LANES];
  for (int64_t lane = 0; lane < LANES; lane++) {
    const int64_t i = item + (lane < n ? lane : n - 1);
    rows[lane] = c->codes + i * c->groups;
    scales[lane] = ((const float *)c->scales)[i];
  }
  __m256i total[3][2];
  for (int i = 0; i < count; i++) total[i][0] = total[i][1] = _mm256_setzero_si256();
  row_sums(rows, c->groups, tables, q->stride, count, total);
  for (int i = 0; i < count; i++) {
    float *out = bounds + owner_of(q, p + i) * apart + item;
    float *to = n == LANES ? out : memcpy(kept, out, (size_t)n * sizeof(float));
    for (int half = 0; half < 2; half++)
      share(similarity(total[i][half], _mm256_loadu_ps(scales + half * 8), q, p + i), q, p + i, to + half * 8);
    if (n < LANES) memcpy(out, kept, (size_t)n * sizeof(float));
  }
}

AVX2_ENTRY SCAN(scan1_avx2) {
  for (int64_t i = 0; i < n; i++) {
    int64_t p = 0;
    for (; p + 3 <= q->rows; p += 3) bits_block(c, q, blocks[i], p, 3, bounds, apart);
    if (q->rows - p == 2) bits_block(c, q, blocks[i], p, 2, bounds, apart);
    if (q->rows - p == 1) bits_block(c, q, blocks[i], p, 1, bounds, apart);
  }
}

AVX2_ENTRY SCAN(scan1_rows_avx2) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t item = blocks[i] * LANES, rest = c->items - item, used = rest < LANES ? rest : LANES;
    int64_t p = 0;
    for (; p + 3 <= q->rows; p += 3) bits_items(c, q, item, used, p, 3, bounds, apart);
    if (q->rows - p == 2) bits_items(c, q, item, used, p, 2, bounds, apart);
    if (q->rows - p == 1) bits_items(c, q, item, used, p, 1, bounds, apart);
  }
}
#endif
