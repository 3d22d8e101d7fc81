/* The scans in AVX2: eight lanes to a register, two registers to a line. */
#include "avx2.h"

#if HAVE_X86
AVX2 __m256i broadcast4(const int8_t *p) { return _mm256_set1_epi32(*(const int32_t *)p); }

/* sum += codes . query over four dimensions; |query| <= 64 keeps the 16-bit pairs from saturating */
AVX2 __m256i dot4(__m256i sum, __m256i codes, __m256i query) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, query), _mm256_set1_epi16(1)));
}

/* bytes of dimensions 0..3 and 4..7, from their high halves and their low ones */
AVX2 void join(__m256i high, __m256i low, __m256i *bytes) {
  const __m256i lower = _mm256_set1_epi8(15), upper = _mm256_set1_epi8((char)0xf0);
  bytes[0] = _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(high, 4), upper), _mm256_and_si256(low, lower));
  bytes[1] = _mm256_or_si256(_mm256_and_si256(high, upper), _mm256_and_si256(_mm256_srli_epi16(low, 4), lower));
}

/* the shares of `count` (1..3) query rows starting at p in the bounds of a block; bits is 8, 4, or 44 for two halves */
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
      } else if (bits == 44) {
        const uint8_t *low = c->low + (line - c->codes);
        _mm_prefetch((const char *)(line + PREFETCH), _MM_HINT_T0);
        _mm_prefetch((const char *)(low + PREFETCH), _MM_HINT_T0);
        for (int half = 0; half < 2; half++) {
          __m256i x[2];
          join(_mm256_loadu_si256((const __m256i *)(line + half * 32)),
               _mm256_loadu_si256((const __m256i *)(low + half * 32)), x);
          for (int i = 0; i < count; i++) {
            const int8_t *at = code + i * q->stride + g * 8;
            sum[i][half] = dot4(sum[i][half], x[0], broadcast4(at));
            sum[i][half] = dot4(sum[i][half], x[1], broadcast4(at + 4));
          }
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
      __m256 scale = _mm256_loadu_ps(scales_of(c, r) + half * 8);
      for (int i = 0; i < count; i++) {
        __m256 s = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][half]), _mm256_set1_ps(q->step[p + i]),
                                   _mm256_set1_ps(q->slack[p + i]));
        best[i][half] = _mm256_max_ps(best[i][half], _mm256_mul_ps(s, scale));
      }
    }
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide) {
      best[i][0] = best[i][1] = _mm256_set1_ps(largest256(_mm256_max_ps(best[i][0], best[i][1])));
    }
    __m256 weight = _mm256_set1_ps(q->weight[p + i]);
    float *out = bounds + owner_of(q, p + i) * apart + block * LANES;
    for (int half = 0; half < 2; half++, out += 8) {
      __m256 before = is_first(q, p + i) ? _mm256_setzero_ps() : _mm256_loadu_ps(out);
      _mm256_storeu_ps(out, _mm256_fmadd_ps(weight, probability256(best[i][half], q), before));
    }
  }
}

AVX2 void scan_avx2(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart,
                    int bits) {
  for (int64_t i = 0; i < n; i++) {
    int64_t p = 0;
    for (; p + 3 <= q->rows; p += 3) block_avx2(c, q, blocks[i], p, 3, bits, bounds, apart);
    if (q->rows - p == 2) block_avx2(c, q, blocks[i], p, 2, bits, bounds, apart);
    if (q->rows - p == 1) block_avx2(c, q, blocks[i], p, 1, bits, bounds, apart);
  }
}

AVX2_ENTRY SCAN(scan8_avx2) { scan_avx2(ARGS, 8); }
AVX2_ENTRY SCAN(scan4_avx2) { scan_avx2(ARGS, 4); }
AVX2_ENTRY SCAN(scan44_avx2) { scan_avx2(ARGS, 44); }

AVX2_ENTRY COLLECT(collect_avx2) {
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
#endif
