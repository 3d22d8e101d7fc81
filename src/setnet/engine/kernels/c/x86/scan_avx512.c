/* The scans in AVX-512 with VNNI: a register is a line, and a dot over four dimensions one instruction. */
#include "../scan.h"

#if HAVE_X86
#define TARGET512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"
#define AVX512 __attribute__((target(TARGET512), always_inline)) static inline
#define ROWS 8 /* of a query against which codes are held at a time: the work of unpacking a line is shared */
#define AVX512_ENTRY __attribute__((target(TARGET512)))

AVX512 __m512 exp512(__m512 x) {
  __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 y = _mm512_set1_ps(1.0f / 720);
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f / 120));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f / 24));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f / 6));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.5f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(y, n);
}

AVX512 __m512 probability512(__m512 s, const Query *q) {
  if (q->w == 0) return _mm512_max_ps(_mm512_min_ps(s, _mm512_set1_ps(UNBOUNDED)), _mm512_setzero_ps());
  __m512 z = _mm512_fmadd_ps(_mm512_sub_ps(s, _mm512_set1_ps(q->threshold)), _mm512_set1_ps(q->w),
                             _mm512_set1_ps(q->inflate));
  z = _mm512_min_ps(_mm512_max_ps(z, _mm512_set1_ps(-80.0f)), _mm512_set1_ps(80.0f));
  __m512 e = exp512(_mm512_sub_ps(_mm512_setzero_ps(), z));
  return _mm512_div_ps(_mm512_set1_ps(1.0f), _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

AVX512 __m512i broadcast4_512(const int8_t *p) { return _mm512_set1_epi32(*(const int32_t *)p); }

/* sums += nibbles . query over all dimensions of a row; two chains per query row hide the latency of the dot */
AVX512 void nibbles_avx512(const uint8_t *row, int64_t groups, const int8_t *code, int64_t stride, int count,
                           __m512i *sum) {
  const __m512i low = _mm512_set1_epi8(15);
  __m512i odd[ROWS];
  for (int i = 0; i < count; i++) odd[i] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g++) {
    __m512i x = _mm512_loadu_si512(row + g * LINE);
    _mm_prefetch((const char *)(row + g * LINE + PREFETCH), _MM_HINT_T0);
    __m512i a = _mm512_and_si512(x, low), b = _mm512_and_si512(_mm512_srli_epi16(x, 4), low);
    for (int i = 0; i < count; i++) {
      sum[i] = _mm512_dpbusd_epi32(sum[i], a, broadcast4_512(code + i * stride + g * 8));
      odd[i] = _mm512_dpbusd_epi32(odd[i], b, broadcast4_512(code + i * stride + g * 8 + 4));
    }
  }
  for (int i = 0; i < count; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

/* the same for bytes: so little work to a line that the hardware's own prefetching keeps up and ours disturbs it */
AVX512 void bytes_avx512(const uint8_t *row, int64_t groups, const int8_t *code, int64_t stride, int count,
                         __m512i *sum) {
  __m512i odd[ROWS];
  for (int i = 0; i < count; i++) odd[i] = _mm512_setzero_si512();
  int64_t g = 0;
  for (; g + 2 <= groups; g += 2) {
    __m512i x = _mm512_loadu_si512(row + g * LINE), y = _mm512_loadu_si512(row + g * LINE + LINE);
    for (int i = 0; i < count; i++) {
      sum[i] = _mm512_dpbusd_epi32(sum[i], x, broadcast4_512(code + i * stride + g * 4));
      odd[i] = _mm512_dpbusd_epi32(odd[i], y, broadcast4_512(code + i * stride + g * 4 + 4));
    }
  }
  if (g < groups) {
    __m512i x = _mm512_loadu_si512(row + g * LINE);
    for (int i = 0; i < count; i++) sum[i] = _mm512_dpbusd_epi32(sum[i], x, broadcast4_512(code + i * stride + g * 4));
  }
  for (int i = 0; i < count; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

/* the same for five bits: fifth bits come to stand above their halves one after another */
AVX512 void fives_avx512(const uint8_t *row, int64_t groups, int64_t ahead, const int8_t *code, int64_t stride, int count,
                         __m512i *sum) {
  const __m512i low = _mm512_set1_epi8(15), fifth = _mm512_set1_epi8(16);
  __m512i odd[ROWS];
  for (int i = 0; i < count; i++) odd[i] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g += 5, row += 5 * LINE, code += PANEL) {
    const __m512i all = _mm512_loadu_si512(row);
    __m512i bits = all;
    _mm_prefetch((const char *)(row + ahead), _MM_HINT_T0);
    for (int k = 0; k < 4; k++) {
      const __m512i x = _mm512_loadu_si512(row + (1 + k) * LINE);
      _mm_prefetch((const char *)(row + (1 + k) * LINE + ahead), _MM_HINT_T0);
      if (k == 2) bits = _mm512_slli_epi32(all, 4);
      /* 0xea: the third, and what the first two have in common */
      const __m512i a = _mm512_ternarylogic_epi32(bits, fifth, _mm512_and_si512(x, low), 0xea);
      bits = _mm512_srli_epi32(bits, 1);
      const __m512i b =
          _mm512_ternarylogic_epi32(bits, fifth, _mm512_and_si512(_mm512_srli_epi16(x, 4), low), 0xea);
      bits = _mm512_srli_epi32(bits, 1);
      for (int i = 0; i < count; i++) {
        sum[i] = _mm512_dpbusd_epi32(sum[i], a, broadcast4_512(code + i * stride + k * 8));
        odd[i] = _mm512_dpbusd_epi32(odd[i], b, broadcast4_512(code + i * stride + k * 8 + 4));
      }
    }
  }
  for (int i = 0; i < count; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

/* the same for the upper eight of nine bits, put together into bytes: half the products of both parts */
AVX512 void eights_avx512(const uint8_t *row, const uint8_t *fine, int64_t groups, int64_t ahead, int64_t fine_ahead,
                          const int8_t *code, int64_t stride, int count, __m512i *sum) {
  const __m512i fifth = _mm512_set1_epi8((char)128), four = _mm512_set1_epi8(120), three = _mm512_set1_epi8(7);
  __m512i odd[ROWS];
  for (int i = 0; i < count; i++) odd[i] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g += 5, row += 5 * LINE, fine += 4 * LINE, code += PANEL) {
    const __m512i bits = _mm512_loadu_si512(row);
    _mm_prefetch((const char *)(row + ahead), _MM_HINT_T0);
    for (int k = 0; k < 4; k++) {
      const __m512i x = _mm512_loadu_si512(row + (1 + k) * LINE), y = _mm512_loadu_si512(fine + k * LINE);
      _mm_prefetch((const char *)(row + (1 + k) * LINE + ahead), _MM_HINT_T0);
      _mm_prefetch((const char *)(fine + k * LINE + fine_ahead), _MM_HINT_T0);
      const int up = (k < 2 ? 3 : 11) - 2 * k; /* from where the fifth bit of the first four dimensions is to the top */
      __m512i a = _mm512_and_si512(_mm512_srli_epi16(y, 1), three);
      __m512i b = _mm512_and_si512(_mm512_srli_epi16(y, 5), three);
      a = _mm512_ternarylogic_epi32(_mm512_slli_epi16(x, 3), four, a, 0xea);
      b = _mm512_ternarylogic_epi32(_mm512_srli_epi16(x, 1), four, b, 0xea);
      a = _mm512_ternarylogic_epi32(_mm512_slli_epi16(bits, up), fifth, a, 0xea);
      b = _mm512_ternarylogic_epi32(_mm512_slli_epi16(bits, up - 1), fifth, b, 0xea);
      for (int i = 0; i < count; i++) {
        sum[i] = _mm512_dpbusd_epi32(sum[i], a, broadcast4_512(code + i * stride + k * 8));
        odd[i] = _mm512_dpbusd_epi32(odd[i], b, broadcast4_512(code + i * stride + k * 8 + 4));
      }
    }
  }
  for (int i = 0; i < count; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

AVX512 __m512 upper_halves512(const uint16_t *stored) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)stored)), 16));
}

/* similarities, or their upper bounds, of row r's lanes to `count` (1..ROWS) query rows; bits is 8, 4, 5 or 9, of which
 * the upper eight are read */
AVX512 void similarities512(const Codes *c, const Query *q, int64_t r, int64_t p, int count, int bits, __m512 *s) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  const int8_t *code = q->codes + p * q->stride;
  const int is_exact = bits == 8 || bits == 4;
  __m512i sum[ROWS];
  for (int i = 0; i < count; i++) sum[i] = _mm512_set1_epi32(q->start[p + i]);
  if (bits == 8) bytes_avx512(row, c->groups, code, q->stride, count, sum);
  if (bits == 4) nibbles_avx512(row, c->groups, code, q->stride, count, sum);
  if (bits == 5) fives_avx512(row, c->groups, bytes_ahead(c, c->groups), code, q->stride, count, sum);
  if (bits == 9) {
    const int64_t lines = c->groups / 5 * 4;
    eights_avx512(row, c->fine + r * lines * LINE, c->groups, bytes_ahead(c, c->groups), bytes_ahead(c, lines), code,
                  q->stride, count, sum);
  }
  if (!is_exact && c->ahead) fetch_norms(c, r);
  const __m512 scale = is_exact ? _mm512_loadu_ps(scales_of(c, r)) : upper_halves512(norms_of(c, r, SCALE));
  __m512 residual, norm;
  if (!is_exact) {
    residual = upper_halves512(bits == 9 ? c->fine_norms + r * LANES : norms_of(c, r, RESIDUAL));
    norm = upper_halves512(norms_of(c, r, NORM));
  }
  for (int i = 0; i < count; i++) {
    const __m512 x = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i]), _mm512_set1_ps(q->step[p + i]),
                                     _mm512_set1_ps(q->slack[p + i]));
    s[i] = _mm512_mul_ps(x, scale);
    if (!is_exact) {
      s[i] = _mm512_fmadd_ps(residual, _mm512_set1_ps(q->length[p + i]), s[i]);
      s[i] = _mm512_fmadd_ps(norm, _mm512_set1_ps(q->lost[p + i]), s[i]);
    }
  }
}

/* the shares of `count` (1..ROWS) query rows starting at p in the bounds of a block */
AVX512 void block_avx512(const Codes *c, const Query *q, int64_t block, int64_t p, int count, int bits, float *bounds,
                         int64_t apart) {
  __m512 best[ROWS], s[ROWS];
  for (int i = 0; i < count; i++) best[i] = _mm512_set1_ps(-INFINITY);
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    similarities512(c, q, r, p, count, bits, s);
    for (int i = 0; i < count; i++) best[i] = _mm512_max_ps(best[i], s[i]);
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide) best[i] = _mm512_set1_ps(_mm512_reduce_max_ps(best[i]));
    float *out = bounds + owner_of(q, p + i) * apart + block * LANES;
    __m512 before = is_first(q, p + i) ? _mm512_setzero_ps() : _mm512_loadu_ps(out);
    _mm512_storeu_ps(out, _mm512_fmadd_ps(_mm512_set1_ps(q->weight[p + i]), probability512(best[i], q), before));
  }
}

AVX512 __m512 most512(const Codes *c, const Query *q, int64_t r, int64_t p, int count, __m512 most) {
  __m512 s[ROWS];
  similarities512(c, q, r, p, count, 5, s);
  for (int i = 0; i < count; i++) most = _mm512_max_ps(most, _mm512_sub_ps(s[i], _mm512_set1_ps(q->least[p + i])));
  return most;
}

AVX512_ENTRY SCAN(least5_avx512) {
  for (int64_t b = 0; b < n; b++)
    for (int64_t from = 0, to; from < q->rows; from = to) {
      __m512 least = _mm512_set1_ps(INFINITY);
      to = query_end(q, from);
      for (int64_t r = row_of(c, blocks[b]); r < row_of(c, blocks[b] + 1); r++) {
        __m512 most = _mm512_set1_ps(-INFINITY);
        int64_t p = from;
        for (; p + 4 <= to; p += 4) most = most512(c, q, r, p, 4, most);
        if (to - p == 3) most = most512(c, q, r, p, 3, most);
        if (to - p == 2) most = most512(c, q, r, p, 2, most);
        if (to - p == 1) most = most512(c, q, r, p, 1, most);
        least = _mm512_min_ps(least, most);
      }
      if (blocks[b] >= c->first_wide) least = _mm512_set1_ps(_mm512_reduce_min_ps(least));
      _mm512_storeu_ps(bounds + owner_of(q, from) * apart + blocks[b] * LANES, least);
    }
}

AVX512 void scan_avx512(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart,
                        int bits) {
  for (int64_t i = 0; i < n; i++) {
    const Codes near = ahead_of(c, blocks, i, n);
    int64_t p = 0;
    for (; p + ROWS <= q->rows; p += ROWS) block_avx512(&near, q, blocks[i], p, ROWS, bits, bounds, apart);
    for (; p + 4 <= q->rows; p += 4) block_avx512(&near, q, blocks[i], p, 4, bits, bounds, apart);
    if (q->rows - p == 3) block_avx512(&near, q, blocks[i], p, 3, bits, bounds, apart);
    if (q->rows - p == 2) block_avx512(&near, q, blocks[i], p, 2, bits, bounds, apart);
    if (q->rows - p == 1) block_avx512(&near, q, blocks[i], p, 1, bits, bounds, apart);
  }
}

AVX512_ENTRY SCAN(scan8_avx512) { scan_avx512(ARGS, 8); }
AVX512_ENTRY SCAN(scan4_avx512) { scan_avx512(ARGS, 4); }
AVX512_ENTRY SCAN(scan5_avx512) { scan_avx512(ARGS, 5); }
AVX512_ENTRY SCAN(upper8_avx512) { scan_avx512(ARGS, 9); }

AVX512_ENTRY COLLECT(collect_avx512) {
  const __m512 floor = _mm512_set1_ps(low);
  int64_t found = 0, i = 0;
  for (; i + 64 <= n; i += 64) {
    uint64_t mask = 0;
    for (int j = 0; j < 4; j++) {
      mask |= (uint64_t)_mm512_cmp_ps_mask(_mm512_loadu_ps(bounds + i + j * 16), floor, _CMP_GE_OQ) << (j * 16);
      _mm_prefetch((const char *)(bounds + i + j * 16) + PREFETCH, _MM_HINT_T0);
    }
    if (mask) found = append(mask, i, out, found, room);
  }
  return collect_rest(bounds, i, n, low, out, found, room);
}
#endif
