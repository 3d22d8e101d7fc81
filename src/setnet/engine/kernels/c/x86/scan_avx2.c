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

/* sum[i] += codes of row `r` . query row i, whole bytes */
AVX2 void add_bytes(const Codes *c, int64_t r, const int8_t *code, int64_t stride, int count, __m256i (*sum)[2]) {
  const uint8_t *line = c->codes + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++, line += LINE) {
    __m256i x0 = _mm256_loadu_si256((const __m256i *)line);
    __m256i x1 = _mm256_loadu_si256((const __m256i *)(line + 32));
    _mm_prefetch((const char *)(line + PREFETCH), _MM_HINT_T0);
    for (int i = 0; i < count; i++) {
      __m256i y = broadcast4(code + i * stride + g * 4);
      sum[i][0] = dot4(sum[i][0], x0, y);
      sum[i][1] = dot4(sum[i][1], x1, y);
    }
  }
}

/* the same for bytes in two halves */
AVX2 void add_two_halves(const Codes *c, int64_t r, const int8_t *code, int64_t stride, int count,
                         __m256i (*sum)[2]) {
  const uint8_t *line = c->codes + r * c->groups * LINE, *low = c->low + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++, line += LINE, low += LINE) {
    _mm_prefetch((const char *)(line + PREFETCH), _MM_HINT_T0);
    _mm_prefetch((const char *)(low + PREFETCH), _MM_HINT_T0);
    for (int half = 0; half < 2; half++) {
      __m256i x[2];
      join(_mm256_loadu_si256((const __m256i *)(line + half * 32)),
           _mm256_loadu_si256((const __m256i *)(low + half * 32)), x);
      for (int i = 0; i < count; i++) {
        const int8_t *at = code + i * stride + g * 8;
        sum[i][half] = dot4(sum[i][half], x[0], broadcast4(at));
        sum[i][half] = dot4(sum[i][half], x[1], broadcast4(at + 4));
      }
    }
  }
}

/* sum[i] += halves of `lines` (1..4) lines . query row i: four lines' products fit 16 bits, as 15 x 127 x 16 does */
AVX2 void add_lines(const uint8_t *line, int lines, const int8_t *code, int64_t stride, int count,
                    __m256i (*sum)[2]) {
  const __m256i low = _mm256_set1_epi8(15);
  __m256i pairs[AT_ONCE][2];
  for (int i = 0; i < count; i++) pairs[i][0] = pairs[i][1] = _mm256_setzero_si256();
  for (int k = 0; k < lines; k++) {
    __m256i x[2], y[2];
    for (int half = 0; half < 2; half++) {
      x[half] = _mm256_loadu_si256((const __m256i *)(line + k * LINE + half * 32));
      y[half] = _mm256_and_si256(_mm256_srli_epi16(x[half], 4), low);
      x[half] = _mm256_and_si256(x[half], low);
    }
    for (int i = 0; i < count; i++) {
      const int8_t *at = code + i * stride + k * 8;
      const __m256i first = broadcast4(at), second = broadcast4(at + 4);
      for (int half = 0; half < 2; half++) {
        pairs[i][half] = _mm256_add_epi16(pairs[i][half], _mm256_maddubs_epi16(x[half], first));
        pairs[i][half] = _mm256_add_epi16(pairs[i][half], _mm256_maddubs_epi16(y[half], second));
        KEEP_SUM(pairs[i][half]);
      }
    }
  }
  for (int i = 0; i < count; i++)
    for (int half = 0; half < 2; half++)
      sum[i][half] = _mm256_add_epi32(sum[i][half], _mm256_madd_epi16(pairs[i][half], _mm256_set1_epi16(1)));
}

AVX2 void add_halves(const Codes *c, int64_t r, const int8_t *code, int64_t stride, int count, __m256i (*sum)[2]) {
  const uint8_t *line = c->codes + r * c->groups * LINE;
  int64_t g = 0;
  for (; g + 4 <= c->groups; g += 4, line += 4 * LINE) {
    for (int k = 0; k < 4; k++) _mm_prefetch((const char *)(line + k * LINE + PREFETCH), _MM_HINT_T0);
    add_lines(line, 4, code + g * 8, stride, count, sum);
  }
  for (; g < c->groups; g++, line += LINE) add_lines(line, 1, code + g * 8, stride, count, sum);
}

/* bits is 8, 4, or 44 for two halves */
AVX2 void similarities(const Codes *c, const Query *q, int64_t block, int64_t p, int count, float *best, int bits) {
  __m256 most[AT_ONCE][2];
  for (int i = 0; i < count; i++) most[i][0] = most[i][1] = _mm256_set1_ps(-INFINITY);
  const int8_t *code = q->codes + p * q->stride;
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    __m256i sum[AT_ONCE][2];
    for (int i = 0; i < count; i++) sum[i][0] = sum[i][1] = _mm256_set1_epi32(q->start[p + i]);
    if (bits == 8) add_bytes(c, r, code, q->stride, count, sum);
    if (bits == 4) add_halves(c, r, code, q->stride, count, sum);
    if (bits == 44) add_two_halves(c, r, code, q->stride, count, sum);
    for (int half = 0; half < 2; half++) {
      __m256 scale = _mm256_loadu_ps(scales_of(c, r) + half * 8);
      for (int i = 0; i < count; i++)
        most[i][half] = _mm256_max_ps(most[i][half], similarity256(sum[i][half], scale, q, p + i));
    }
  }
  for (int i = 0; i < count; i++)
    store_best(most[i][0], most[i][1], block >= c->first_wide, best + i * TILE * LANES);
}

AVX2 SIMILARITIES(similarities8) { similarities(c, q, block, p, count, best, 8); }
AVX2 SIMILARITIES(similarities4) { similarities(c, q, block, p, count, best, 4); }
AVX2 SIMILARITIES(similarities44) { similarities(c, q, block, p, count, best, 44); }

AVX2_ENTRY SCAN(scan8_avx2) { scan_tiles(ARGS, similarities8); }
AVX2_ENTRY SCAN(scan4_avx2) { scan_tiles(ARGS, similarities4); }
AVX2_ENTRY SCAN(scan44_avx2) { scan_tiles(ARGS, similarities44); }

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
