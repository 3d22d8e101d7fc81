/* Inverted lists in AVX2: two registers to a line. */
#include "../lists.h"
#include "avx2.h"

#if HAVE_X86
#define NEAR 2048 /* bytes ahead: lists are short */

AVX2 __m256i broadcast4(const int8_t *p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return _mm256_set1_epi32(four);
}

/* sums of four bytes each: both halves' products of up to four units fit 16 bits, as 15 x 127 x 16 does */
AVX2 __m256i pairs_added(__m256i pairs, __m256i x, __m256i even, __m256i odd) {
  const __m256i low = _mm256_set1_epi8(15);
  pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_and_si256(x, low), even));
  return _mm256_add_epi16(pairs, _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(x, 4), low), odd));
}

AVX2 __m256i widened(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

/* the sums of a block's lanes 0..7 and 8..15; units are a multiple of four */
AVX2 void block_sums(const uint8_t *line, int64_t units, const int8_t *even, const int8_t *odd, __m256i *sums) {
  sums[0] = sums[1] = _mm256_setzero_si256();
  for (int64_t u = 0; u < units; u += 4) {
    __m256i pairs[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int k = 0; k < 4; k++, line += LINE) {
      const __m256i a = broadcast4(even + (u + k) * 4), b = broadcast4(odd + (u + k) * 4);
      _mm_prefetch((const char *)line + NEAR, _MM_HINT_T0);
      for (int half = 0; half < 2; half++)
        pairs[half] = pairs_added(pairs[half], _mm256_loadu_si256((const __m256i *)(line + half * 32)), a, b);
    }
    for (int half = 0; half < 2; half++) sums[half] = _mm256_add_epi32(sums[half], widened(pairs[half]));
  }
}

AVX2_ENTRY static CENTRE_SUMS(centre_sums) {
  for (int64_t b = 0; b < l->lists / LANES; b++) {
    const uint8_t *upper = l->centres + b * 2 * l->units * LINE;
    __m256i x[2], y[2];
    block_sums(upper, l->units, q->even, q->odd, x);
    block_sums(upper + l->units * LINE, l->units, q->even, q->odd, y);
    for (int half = 0; half < 2; half++)
      _mm256_storeu_si256((__m256i *)(sums + b * LANES + half * 8),
                          _mm256_add_epi32(_mm256_slli_epi32(x[half], 5), _mm256_slli_epi32(y[half], 1)));
  }
}

AVX2_ENTRY static NEAR_BLOCKS(near_blocks) {
  for (; block < end && near->found + LANES <= near->room; block++) {
    __m256i sums[2];
    float similarity[LANES];
    unsigned mask = 0;
    block_sums(l->codes + block * l->units * LINE, l->units, q->even, q->odd, sums);
    for (int half = 0; half < 2; half++) {
      const uint16_t *factors = l->factors + block * LANES + half * 8;
      const __m256i twice = _mm256_sub_epi32(_mm256_slli_epi32(sums[half], 1), _mm256_set1_epi32(q->middle));
      const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)factors));
      const __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(twice), _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16)));
      _mm256_storeu_ps(similarity + half * 8, x);
      const __m256 reached = _mm256_cmp_ps(x, _mm256_set1_ps(near->floor), _CMP_GE_OQ);
      mask |= (unsigned)_mm256_movemask_ps(reached) << half * 8;
    }
    for (; mask; mask &= mask - 1) {
      const int lane = __builtin_ctz(mask);
      take(l, block * LANES + lane, similarity[lane], near);
    }
  }
  return block;
}

AVX2_ENTRY static ROW_SUMS(row_sums) {
  const int64_t width = units * 4;
  for (int64_t p = 0; p < rows; p++, query += 2 * width) {
    __m256i sum = _mm256_setzero_si256();
    int64_t at = 0;
    for (; at + 32 <= width; at += 32) {
      const __m256i x = _mm256_loadu_si256((const __m256i *)(codes + at));
      const __m256i even = _mm256_loadu_si256((const __m256i *)(query + at));
      const __m256i odd = _mm256_loadu_si256((const __m256i *)(query + width + at));
      sum = _mm256_add_epi32(sum, widened(pairs_added(_mm256_setzero_si256(), x, even, odd)));
    }
    if (at < width) { /* sixteen bytes more */
      const __m256i x = _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)(codes + at)));
      const __m256i even = _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)(query + at)));
      const __m256i odd = _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)(query + width + at)));
      sum = _mm256_add_epi32(sum, widened(pairs_added(_mm256_setzero_si256(), x, even, odd)));
    }
    int32_t lanes[8];
    _mm256_storeu_si256((__m256i *)lanes, sum);
    sums[p] = lanes[0] + lanes[1] + lanes[2] + lanes[3] + lanes[4] + lanes[5] + lanes[6] + lanes[7];
  }
}

const ListKernels lists_avx2 = {centre_sums, near_blocks, row_sums};
#endif
