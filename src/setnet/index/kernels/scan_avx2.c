/* The scans in AVX2: eight lanes to a register, two registers to a line. */
#include "scan.h"

#if HAVE_X86
#define AVX2 __attribute__((target("avx2,fma,f16c"), always_inline)) static inline
#define AVX2_ENTRY __attribute__((target("avx2,fma,f16c")))

/* as quick_exp */
AVX2 __m256 exp256(__m256 x) {
  __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), 8);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 y = _mm256_set1_ps(1.0f / 720);
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 120));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 24));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 6));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0.5f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
  __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y), e));
}

AVX2 __m256 probability256(__m256 s, const Query *q) {
  __m256 z = _mm256_fmadd_ps(_mm256_sub_ps(s, _mm256_set1_ps(q->threshold)), _mm256_set1_ps(q->w),
                             _mm256_set1_ps(q->inflate));
  z = _mm256_min_ps(_mm256_max_ps(z, _mm256_set1_ps(-80.0f)), _mm256_set1_ps(80.0f));
  __m256 e = exp256(_mm256_sub_ps(_mm256_setzero_ps(), z));
  return _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

AVX2 __m256i broadcast4(const int8_t *p) { return _mm256_set1_epi32(*(const int32_t *)p); }

/* sum += codes . query over four dimensions; |query| <= 64 keeps the 16-bit pairs from saturating */
AVX2 __m256i dot4(__m256i sum, __m256i codes, __m256i query) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, query), _mm256_set1_epi16(1)));
}

/* the shares of `count` (1..3) query rows starting at p in the bounds of a block; bits is 8 or 4 */
AVX2 void block_avx2(const Codes *c, const Query *q, int64_t block, int64_t p, int count, int bits, float *bounds,
                     int64_t apart) {
  __m256 best[3][2];
  for (int i = 0; i < count; i++) best[i][0] = best[i][1] = _mm256_set1_ps(-INFINITY);
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    const uint8_t *row = c->codes + r * c->groups * LINE;
    const int8_t *code = q->codes + p * q->stride;
    __m256i sum[3][2];
    for (int i = 0; i < count; i++) sum[i][0] = sum[i][1] = _mm256_set1_epi32(q->start[p + i]);
    for (int64_t g = 0; g < c->groups; g++) {
      const uint8_t *line = row + g * LINE;
      if (bits == 8) {
        __m256i x0 = _mm256_loadu_si256((const __m256i *)line);
        __m256i x1 = _mm256_loadu_si256((const __m256i *)(line + 32));
        for (int i = 0; i < count; i++) {
          __m256i y = broadcast4(code + i * q->stride + g * 4);
          sum[i][0] = dot4(sum[i][0], x0, y);
          sum[i][1] = dot4(sum[i][1], x1, y);
        }
      } else {
        _mm_prefetch((const char *)(line + PREFETCH), _MM_HINT_T0);
        const __m256i low = _mm256_set1_epi8(15);
        for (int half = 0; half < 2; half++) {
          __m256i x = _mm256_loadu_si256((const __m256i *)(line + half * 32));
          __m256i a = _mm256_and_si256(x, low), b = _mm256_and_si256(_mm256_srli_epi16(x, 4), low);
          for (int i = 0; i < count; i++) {
            const int8_t *at = code + i * q->stride + g * 8;
            __m256i pairs = _mm256_maddubs_epi16(a, broadcast4(at));
            pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(b, broadcast4(at + 4)));
            sum[i][half] = _mm256_add_epi32(sum[i][half], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
          }
        }
      }
    }
    for (int half = 0; half < 2; half++) {
      __m256 scale = _mm256_loadu_ps(c->scales + r * LANES + half * 8);
      for (int i = 0; i < count; i++) {
        __m256 s = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][half]), _mm256_set1_ps(q->step[p + i]),
                                   _mm256_set1_ps(q->slack[p + i]));
        best[i][half] = _mm256_max_ps(best[i][half], _mm256_mul_ps(s, scale));
      }
    }
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide) {
      float lanes[8];
      _mm256_storeu_ps(lanes, _mm256_max_ps(best[i][0], best[i][1]));
      for (int lane = 1; lane < 8; lane++) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
      best[i][0] = best[i][1] = _mm256_set1_ps(lanes[0]);
    }
    __m256 weight = _mm256_set1_ps(q->weight[p + i]);
    float *out = bounds + owner_of(q, p + i) * apart + block * LANES;
    for (int half = 0; half < 2; half++, out += 8) {
      __m256 before = is_first(q, p + i) ? _mm256_setzero_ps() : _mm256_loadu_ps(out);
      _mm256_storeu_ps(out, _mm256_fmadd_ps(weight, probability256(best[i][half], q), before));
    }
  }
}

AVX2 void scan_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart,
                    int bits) {
  for (int64_t block = first; block < last; block++) {
    int64_t p = 0;
    for (; p + 3 <= q->rows; p += 3) block_avx2(c, q, block, p, 3, bits, bounds, apart);
    if (q->rows - p == 2) block_avx2(c, q, block, p, 2, bits, bounds, apart);
    if (q->rows - p == 1) block_avx2(c, q, block, p, 1, bits, bounds, apart);
  }
}

AVX2_ENTRY void scan8_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart) {
  scan_avx2(c, q, first, last, bounds, apart, 8);
}

AVX2_ENTRY void scan4_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart) {
  scan_avx2(c, q, first, last, bounds, apart, 4);
}

AVX2 int32_t dot_avx2(const uint8_t *codes, const int8_t *query, int64_t width) {
  __m256i sum = _mm256_setzero_si256();
  int64_t d = 0;
  for (; d + 32 <= width; d += 32)
    sum = dot4(sum, _mm256_loadu_si256((const __m256i *)(codes + d)), _mm256_loadu_si256((const __m256i *)(query + d)));
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return _mm_cvtsi128_si32(half) + dot_portable(codes + d, query + d, width - d);
}

AVX2_ENTRY void refine_avx2(const Rows8 *r, const Query *q, const int64_t *items, int64_t n, float *bounds) {
  refine_with(r, q, items, n, bounds, dot_avx2);
}

AVX2_ENTRY int64_t collect_avx2(const float *bounds, int64_t n, float low, int64_t *out, int64_t room) {
  const __m256 floor = _mm256_set1_ps(low);
  int64_t found = 0, i = 0;
  for (; i + 16 <= n; i += 16) {
    __m256 a = _mm256_cmp_ps(_mm256_loadu_ps(bounds + i), floor, _CMP_GE_OQ);
    __m256 b = _mm256_cmp_ps(_mm256_loadu_ps(bounds + i + 8), floor, _CMP_GE_OQ);
    uint64_t mask = (uint64_t)_mm256_movemask_ps(a) | (uint64_t)_mm256_movemask_ps(b) << 8;
    if (mask) found = append(mask, i, out, found, room);
  }
  return collect_rest(bounds, i, n, low, out, found, room);
}

AVX2_ENTRY void scan1_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2,
                                          3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201ull);
  for (int64_t i = first; i < last; i++) {
    const int32_t *words = (const int32_t *)(c->codes + i * c->groups * 8);
    for (int64_t p = 0; p < q->rows; p++) {
      const int8_t *code = q->codes + p * q->stride;
      __m256i sum = _mm256_setzero_si256();
      for (int64_t g = 0; g < c->groups * 2; g++) {
        __m256i x = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(words[g]), spread), bit);
        __m256i y = _mm256_and_si256(_mm256_cmpeq_epi8(x, bit), _mm256_loadu_si256((const __m256i *)(code + g * 32)));
        sum = dot4(sum, _mm256_set1_epi8(1), y);
      }
      int32_t lanes[8], all = 0;
      _mm256_storeu_si256((__m256i *)lanes, sum);
      for (int lane = 0; lane < 8; lane++) all += lanes[lane];
      float s = c->scales[i] * (q->step[p] * (float)(2 * all + q->start[p]) + q->slack[p]);
      float *out = bounds + owner_of(q, p) * apart + i;
      *out = (is_first(q, p) ? 0.0f : *out) + q->weight[p] * probability(s, q->w, q->threshold, q->inflate);
    }
  }
}
#endif
