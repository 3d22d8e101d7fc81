/* Inverted lists in AVX-512 with VNNI. */
#include "../lists.h"

#if HAVE_X86
#define AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"), always_inline)) static inline
#define AVX512_ENTRY __attribute__((target("avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))
#define NEAR 2048 /* bytes ahead: lists are short */

AVX512 __m512i broadcast4(const int8_t *p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return _mm512_set1_epi32(four);
}

/* the sums of a block's 16 lanes */
AVX512 __m512i block_sums(const uint8_t *line, int64_t units, const int8_t *even, const int8_t *odd) {
  const __m512i low = _mm512_set1_epi8(15);
  __m512i a = _mm512_setzero_si512(), b = a;
  for (int64_t u = 0; u < units; u++, line += LINE) {
    const __m512i x = _mm512_loadu_si512(line);
    _mm_prefetch((const char *)line + NEAR, _MM_HINT_T0);
    a = _mm512_dpbusd_epi32(a, _mm512_and_si512(x, low), broadcast4(even + u * 4));
    b = _mm512_dpbusd_epi32(b, _mm512_and_si512(_mm512_srli_epi16(x, 4), low), broadcast4(odd + u * 4));
  }
  return _mm512_add_epi32(a, b);
}

AVX512_ENTRY static CENTRE_SUMS(centre_sums) {
  for (int64_t b = 0; b < l->lists / LANES; b++) {
    const uint8_t *upper = l->centres + b * 2 * l->units * LINE;
    const __m512i x = block_sums(upper, l->units, q->even, q->odd);
    const __m512i y = block_sums(upper + l->units * LINE, l->units, q->even, q->odd);
    _mm512_storeu_si512(sums + b * LANES, _mm512_add_epi32(_mm512_slli_epi32(x, 5), _mm512_slli_epi32(y, 1)));
  }
}

AVX512_ENTRY static NEAR_BLOCKS(near_blocks) {
  for (; block < end && near->found + LANES <= near->room; block++) {
    const uint16_t *factors = l->factors + block * LANES;
    const __m512i sum = block_sums(l->codes + block * l->units * LINE, l->units, q->even, q->odd);
    const __m512i twice = _mm512_sub_epi32(_mm512_slli_epi32(sum, 1), _mm512_set1_epi32(q->middle));
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)factors));
    const __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(twice), _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16)));
    unsigned mask = _mm512_cmp_ps_mask(x, _mm512_set1_ps(near->floor), _CMP_GE_OQ);
    if (!mask) continue;
    float similarity[LANES];
    _mm512_storeu_ps(similarity, x);
    for (; mask; mask &= mask - 1) {
      const int lane = __builtin_ctz(mask);
      take(l, block * LANES + lane, similarity[lane], near);
    }
  }
  return block;
}

AVX512_ENTRY static ROW_SUMS(row_sums) {
  const __m512i low = _mm512_set1_epi8(15);
  const int64_t width = units * 4;
  for (int64_t p = 0; p < rows; p++, query += 2 * width) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t at = 0; at < width; at += LINE) {
      const __mmask64 m = width - at < LINE ? ((__mmask64)1 << (width - at)) - 1 : ~(__mmask64)0;
      const __m512i x = _mm512_maskz_loadu_epi8(m, codes + at);
      sum = _mm512_dpbusd_epi32(sum, _mm512_and_si512(x, low), _mm512_maskz_loadu_epi8(m, query + at));
      const __m512i y = _mm512_and_si512(_mm512_srli_epi16(x, 4), low);
      sum = _mm512_dpbusd_epi32(sum, y, _mm512_maskz_loadu_epi8(m, query + width + at));
    }
    sums[p] = _mm512_reduce_add_epi32(sum);
  }
}

const ListKernels lists_avx512 = {centre_sums, near_blocks, row_sums};
#endif
