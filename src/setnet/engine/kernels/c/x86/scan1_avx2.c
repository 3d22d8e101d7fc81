/* One-bit codes in AVX2: four bits of 16 lanes at a time are looked up in tables of the query's sums.
 *
 * A table's 16 entries are the sums that four dimensions can have, as numbers below 64: four of them fit a byte. The two
 * halves of a register hold two bytes of the same 16 lanes. */
#include "avx2.h"

#if HAVE_X86
#define CHUNK 512 /* bytes of a lane whose sums fit 16 bits: 2 x 63 x 512 */

/* 16 lanes x 4 bytes as they are looked up: byte 0 | byte 1, byte 2 | byte 3 */
typedef struct {
  __m256i first, second;
} Quad;

/* Sums of odd lanes and of all: those of even lanes plus 256 x those of odd ones. Halves of registers are still apart. */
typedef struct {
  __m256i all, odd;
} Sums;

AVX2 void look_up(Quad codes, const uint8_t *tables, Sums *sums) {
  const __m256i low = _mm256_set1_epi8(15), *t = (const __m256i *)tables;
  __m256i s = _mm256_shuffle_epi8(_mm256_loadu_si256(t), _mm256_and_si256(codes.first, low));
  s = _mm256_add_epi8(s, _mm256_shuffle_epi8(_mm256_loadu_si256(t + 1), _mm256_and_si256(codes.second, low)));
  __m256i high = _mm256_and_si256(_mm256_srli_epi16(codes.first, 4), low);
  s = _mm256_add_epi8(s, _mm256_shuffle_epi8(_mm256_loadu_si256(t + 2), high));
  high = _mm256_and_si256(_mm256_srli_epi16(codes.second, 4), low);
  s = _mm256_add_epi8(s, _mm256_shuffle_epi8(_mm256_loadu_si256(t + 3), high));
  sums->all = _mm256_add_epi16(sums->all, s);
  sums->odd = _mm256_add_epi16(sums->odd, _mm256_srli_epi16(s, 8));
  KEEP_SUM(sums->all);
  KEEP_SUM(sums->odd);
}

AVX2 __m128i halves_added(__m256i x) {
  return _mm_add_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
}

/* total += the sums of even and of odd lanes; carries of `all` beyond 16 bits cancel */
AVX2 void widen(Sums sums, __m256i *total) {
  __m128i odd = halves_added(sums.odd), even = _mm_sub_epi16(halves_added(sums.all), _mm_slli_epi16(odd, 8));
  total[0] = _mm256_add_epi32(total[0], _mm256_cvtepu16_epi32(even));
  total[1] = _mm256_add_epi32(total[1], _mm256_cvtepu16_epi32(odd));
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

/* the sums of 16 rows that are stored one by one, for `count` (1..3) query rows */
AVX2 void row_sums(const uint8_t *const *rows, int64_t bytes, const uint8_t *tables, int64_t stride, int count,
                   __m256i (*total)[2]) {
  for (int i = 0; i < count; i++) total[i][0] = total[i][1] = _mm256_setzero_si256();
  for (int64_t from = 0; from < bytes; from += CHUNK) {
    Sums sums[AT_ONCE];
    const int64_t to = from + CHUNK < bytes ? from + CHUNK : bytes;
    for (int i = 0; i < count; i++) sums[i].all = sums[i].odd = _mm256_setzero_si256();
    for (int64_t j = from; j < to; j += 16) {
      Quad quads[4];
      for (int k = 0; k < 4; k++) _mm_prefetch((const char *)(rows[0] + j * LANES + k * LINE + PREFETCH), _MM_HINT_T0);
      transposed(rows, j, bytes, quads);
      const int n = to - j < 16 ? 2 : 4;
      for (int k = 0; k < n; k++)
        for (int i = 0; i < count; i++) look_up(quads[k], tables + i * stride + (j + 4 * k) * 32, &sums[i]);
    }
    for (int i = 0; i < count; i++) widen(sums[i], total[i]);
  }
}

/* store the best similarities of even and of odd lanes */
AVX2 void store_lanes(__m256 even, __m256 odd, float shift, float *best) {
  even = _mm256_add_ps(even, _mm256_set1_ps(shift));
  odd = _mm256_add_ps(odd, _mm256_set1_ps(shift));
  __m256 a = _mm256_unpacklo_ps(even, odd), b = _mm256_unpackhi_ps(even, odd);
  store_best(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31), 0, best);
}

/* set vectors row by row; lanes without an item repeat the last */
AVX2 SIMILARITIES(row_similarities) {
  const uint8_t *rows[LANES], *tables = (const uint8_t *)q->codes + p * q->stride;
  float scales[LANES];
  for (int64_t lane = 0; lane < LANES; lane++) {
    const int64_t wanted = block * LANES + lane, item = wanted < c->items ? wanted : c->items - 1;
    rows[lane] = c->codes + item * c->groups;
    scales[lane % 2 * 8 + lane / 2] = ((const float *)c->scales)[item];
  }
  __m256i total[AT_ONCE][2];
  row_sums(rows, c->groups, tables, q->stride, count, total);
  for (int i = 0; i < count; i++) {
    __m256 even = similarity256(total[i][0], _mm256_loadu_ps(scales), q, p + i);
    __m256 odd = similarity256(total[i][1], _mm256_loadu_ps(scales + 8), q, p + i);
    store_lanes(even, odd, q->shift[p + i], best + i * TILE * LANES);
  }
}

AVX2_ENTRY SCAN(scan1_rows_avx2) { scan_tiles(ARGS, row_similarities); }
#endif
