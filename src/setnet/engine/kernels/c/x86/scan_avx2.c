/* The scans in AVX2: eight lanes to a register, two registers to a line. */
#include "avx2.h"

#if HAVE_X86
AVX2 __m256i broadcast4(const int8_t *p) { return _mm256_set1_epi32(*(const int32_t *)p); }

/* sum += codes . query over four dimensions; |query| <= 64 keeps the 16-bit pairs from saturating */
AVX2 __m256i dot4(__m256i sum, __m256i codes, __m256i query) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(codes, query), _mm256_set1_epi16(1)));
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

AVX2 void add_halves(const uint8_t *line, int64_t groups, const int8_t *code, int64_t stride, int count,
                     __m256i (*sum)[2]) {
  int64_t g = 0;
  for (; g + 4 <= groups; g += 4, line += 4 * LINE) {
    for (int k = 0; k < 4; k++) _mm_prefetch((const char *)(line + k * LINE + PREFETCH), _MM_HINT_T0);
    add_lines(line, 4, code + g * 8, stride, count, sum);
  }
  for (; g < groups; g++, line += LINE) add_lines(line, 1, code + g * 8, stride, count, sum);
}

/* the same for five bits: the products of two lines fit 16 bits, as 31 x 127 x 8 does */
AVX2 void add_fives(const uint8_t *row, int64_t groups, int64_t ahead, const int8_t *code, int64_t stride, int count,
                    __m256i (*sum)[2]) {
  const __m256i low = _mm256_set1_epi8(15), fifth = _mm256_set1_epi8(16);
  for (int64_t g = 0; g < groups; g += 5, row += 5 * LINE, code += PANEL) {
    for (int k = 0; k < 5; k++) _mm_prefetch((const char *)(row + k * LINE + ahead), _MM_HINT_T0);
    for (int half = 0; half < 2; half++) {
      const __m256i all = _mm256_loadu_si256((const __m256i *)(row + half * 32));
      __m256i bits = all;
      for (int k = 0; k < 4; k += 2) {
        __m256i pairs[AT_ONCE];
        if (k == 2) bits = _mm256_slli_epi32(all, 4);
        for (int i = 0; i < count; i++) pairs[i] = _mm256_setzero_si256();
        for (int m = k; m < k + 2; m++) {
          const __m256i x = _mm256_loadu_si256((const __m256i *)(row + (1 + m) * LINE + half * 32));
          const __m256i a = _mm256_or_si256(_mm256_and_si256(x, low), _mm256_and_si256(bits, fifth));
          bits = _mm256_srli_epi32(bits, 1);
          const __m256i b =
              _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(x, 4), low), _mm256_and_si256(bits, fifth));
          bits = _mm256_srli_epi32(bits, 1);
          for (int i = 0; i < count; i++) {
            const int8_t *at = code + i * stride + m * 8;
            pairs[i] = _mm256_add_epi16(pairs[i], _mm256_maddubs_epi16(a, broadcast4(at)));
            pairs[i] = _mm256_add_epi16(pairs[i], _mm256_maddubs_epi16(b, broadcast4(at + 4)));
            KEEP_SUM(pairs[i]);
          }
        }
        for (int i = 0; i < count; i++)
          sum[i][half] = _mm256_add_epi32(sum[i][half], _mm256_madd_epi16(pairs[i], _mm256_set1_epi16(1)));
      }
    }
  }
}

AVX2 __m256 upper_halves256(const uint16_t *stored) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)stored)), 16));
}

/* similarities, or their upper bounds, of row r's lanes to `count` (1..3) query rows; bits is 8, 4, 5 or 9 */
AVX2 void row_similarities(const Codes *c, const Query *q, int64_t r, int64_t p, int count, int bits,
                           __m256 (*s)[2]) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  const int8_t *code = q->codes + p * q->stride;
  __m256i sum[AT_ONCE][2];
  for (int i = 0; i < count; i++)
    sum[i][0] = sum[i][1] = bits == 9 ? _mm256_setzero_si256() : _mm256_set1_epi32(q->start[p + i]);
  if (bits == 8) add_bytes(c, r, code, q->stride, count, sum);
  if (bits == 4) add_halves(row, c->groups, code, q->stride, count, sum);
  if (bits == 5 || bits == 9) add_fives(row, c->groups, bytes_ahead(c, c->groups), code, q->stride, count, sum);
  if ((bits == 5 || bits == 9) && c->ahead) fetch_norms(c, r);
  if (bits == 9) {
    const int64_t lines = c->groups / 5 * 4;
    for (int i = 0; i < count; i++)
      for (int half = 0; half < 2; half++)
        sum[i][half] = _mm256_add_epi32(_mm256_slli_epi32(sum[i][half], 4), _mm256_set1_epi32(q->start[p + i]));
    add_halves(c->fine + r * lines * LINE, lines, code, q->stride, count, sum);
  }
  for (int half = 0; half < 2; half++) {
    if (bits == 8 || bits == 4) {
      const __m256 scale = _mm256_loadu_ps(scales_of(c, r) + half * 8);
      for (int i = 0; i < count; i++) s[i][half] = similarity256(sum[i][half], scale, q, p + i);
      continue;
    }
    const uint16_t *residuals = bits == 9 ? c->fine_norms + r * LANES : norms_of(c, r, RESIDUAL);
    const __m256 scale = upper_halves256(norms_of(c, r, SCALE) + half * 8);
    const __m256 residual = upper_halves256(residuals + half * 8), norm = upper_halves256(norms_of(c, r, NORM) + half * 8);
    for (int i = 0; i < count; i++) {
      const __m256 x = similarity256(sum[i][half], scale, q, p + i);
      s[i][half] = _mm256_fmadd_ps(norm, _mm256_set1_ps(q->lost[p + i]),
                                   _mm256_fmadd_ps(residual, _mm256_set1_ps(q->length[p + i]), x));
    }
  }
}

AVX2 void similarities(const Codes *c, const Query *q, int64_t block, int64_t p, int count, float *best, int bits) {
  __m256 most[AT_ONCE][2], s[AT_ONCE][2];
  for (int i = 0; i < count; i++) most[i][0] = most[i][1] = _mm256_set1_ps(-INFINITY);
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    row_similarities(c, q, r, p, count, bits, s);
    for (int i = 0; i < count; i++)
      for (int half = 0; half < 2; half++) most[i][half] = _mm256_max_ps(most[i][half], s[i][half]);
  }
  for (int i = 0; i < count; i++)
    store_best(most[i][0], most[i][1], block >= c->first_wide, best + i * TILE * LANES);
}

AVX2 SIMILARITIES(similarities8) { similarities(c, q, block, p, count, best, 8); }
AVX2 SIMILARITIES(similarities4) { similarities(c, q, block, p, count, best, 4); }
AVX2 SIMILARITIES(similarities5) { similarities(c, q, block, p, count, best, 5); }
AVX2 SIMILARITIES(similarities9) { similarities(c, q, block, p, count, best, 9); }

AVX2_ENTRY SCAN(scan8_avx2) { scan_tiles(ARGS, similarities8); }
AVX2_ENTRY SCAN(scan4_avx2) { scan_tiles(ARGS, similarities4); }
AVX2_ENTRY SCAN(scan5_avx2) { scan_tiles(ARGS, similarities5); }
AVX2_ENTRY SCAN(scan9_avx2) { scan_tiles(ARGS, similarities9); }

AVX2 void keep_most(const Codes *c, const Query *q, int64_t r, int64_t p, int count, __m256 *most) {
  __m256 s[AT_ONCE][2];
  row_similarities(c, q, r, p, count, 5, s);
  for (int i = 0; i < count; i++)
    for (int half = 0; half < 2; half++)
      most[half] = _mm256_max_ps(most[half], _mm256_sub_ps(s[i][half], _mm256_set1_ps(q->least[p + i])));
}

AVX2_ENTRY SCAN(least5_avx2) {
  for (int64_t b = 0; b < n; b++)
    for (int64_t from = 0, to; from < q->rows; from = to) {
      __m256 least[2] = {_mm256_set1_ps(INFINITY), _mm256_set1_ps(INFINITY)};
      to = query_end(q, from);
      for (int64_t r = row_of(c, blocks[b]); r < row_of(c, blocks[b] + 1); r++) {
        __m256 most[2] = {_mm256_set1_ps(-INFINITY), _mm256_set1_ps(-INFINITY)};
        int64_t p = from;
        for (; p + 3 <= to; p += 3) keep_most(c, q, r, p, 3, most);
        if (to - p == 2) keep_most(c, q, r, p, 2, most);
        if (to - p == 1) keep_most(c, q, r, p, 1, most);
        for (int half = 0; half < 2; half++) least[half] = _mm256_min_ps(least[half], most[half]);
      }
      float *out = bounds + owner_of(q, from) * apart + blocks[b] * LANES;
      if (blocks[b] >= c->first_wide) {
        const __m256 negative = _mm256_sub_ps(_mm256_setzero_ps(), _mm256_min_ps(least[0], least[1]));
        least[0] = least[1] = _mm256_set1_ps(-largest256(negative));
      }
      _mm256_storeu_ps(out, least[0]);
      _mm256_storeu_ps(out + 8, least[1]);
    }
}

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
