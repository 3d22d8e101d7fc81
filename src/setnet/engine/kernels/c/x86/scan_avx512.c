/* The scans in AVX-512 with VNNI: a register is a line, and a dot over four dimensions one instruction. */
#include "../scan.h"

#if HAVE_X86
#define TARGET512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"
#define AVX512 __attribute__((target(TARGET512), always_inline)) static inline
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
  __m512i odd[4];
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
  __m512i odd[4];
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

/* the same for bytes in two halves, which are joined first: dimensions 0..3 and 4..7 of a line each; no prefetching */
AVX512 void two_halves_avx512(const uint8_t *row, const uint8_t *low, int64_t groups, const int8_t *code,
                              int64_t stride, int count, __m512i *sum) {
  const __m512i upper = _mm512_set1_epi8((char)0xf0);
  __m512i odd[4];
  for (int i = 0; i < count; i++) odd[i] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g++) {
    __m512i x = _mm512_loadu_si512(row + g * LINE), y = _mm512_loadu_si512(low + g * LINE);
    /* 0xca: the second where the first has a one, else the third */
    __m512i a = _mm512_ternarylogic_epi32(upper, _mm512_slli_epi16(x, 4), y, 0xca);
    __m512i b = _mm512_ternarylogic_epi32(upper, x, _mm512_srli_epi16(y, 4), 0xca);
    for (int i = 0; i < count; i++) {
      sum[i] = _mm512_dpbusd_epi32(sum[i], a, broadcast4_512(code + i * stride + g * 8));
      odd[i] = _mm512_dpbusd_epi32(odd[i], b, broadcast4_512(code + i * stride + g * 8 + 4));
    }
  }
  for (int i = 0; i < count; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

/* the shares of `count` (1..4) query rows starting at p in the bounds of a block; bits is 8, 4, or 44 for two halves */
AVX512 void block_avx512(const Codes *c, const Query *q, int64_t block, int64_t p, int count, int bits, float *bounds,
                         int64_t apart) {
  __m512 best[4];
  for (int i = 0; i < count; i++) best[i] = _mm512_set1_ps(-INFINITY);
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    const int64_t at = r * c->groups * LINE;
    const int8_t *code = q->codes + p * q->stride;
    __m512i sum[4];
    for (int i = 0; i < count; i++) sum[i] = _mm512_set1_epi32(q->start[p + i]);
    if (bits == 8) bytes_avx512(c->codes + at, c->groups, code, q->stride, count, sum);
    if (bits == 4) nibbles_avx512(c->codes + at, c->groups, code, q->stride, count, sum);
    if (bits == 44) two_halves_avx512(c->codes + at, c->low + at, c->groups, code, q->stride, count, sum);
    __m512 scale = _mm512_loadu_ps(scales_of(c, r));
    for (int i = 0; i < count; i++) {
      __m512 s = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i]), _mm512_set1_ps(q->step[p + i]),
                                 _mm512_set1_ps(q->slack[p + i]));
      best[i] = _mm512_max_ps(best[i], _mm512_mul_ps(s, scale));
    }
  }
  for (int i = 0; i < count; i++) {
    if (block >= c->first_wide) best[i] = _mm512_set1_ps(_mm512_reduce_max_ps(best[i]));
    float *out = bounds + owner_of(q, p + i) * apart + block * LANES;
    __m512 before = is_first(q, p + i) ? _mm512_setzero_ps() : _mm512_loadu_ps(out);
    _mm512_storeu_ps(out, _mm512_fmadd_ps(_mm512_set1_ps(q->weight[p + i]), probability512(best[i], q), before));
  }
}

AVX512 void scan_avx512(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart,
                        int bits) {
  for (int64_t i = 0; i < n; i++) {
    int64_t p = 0;
    for (; p + 4 <= q->rows; p += 4) block_avx512(c, q, blocks[i], p, 4, bits, bounds, apart);
    if (q->rows - p == 3) block_avx512(c, q, blocks[i], p, 3, bits, bounds, apart);
    if (q->rows - p == 2) block_avx512(c, q, blocks[i], p, 2, bits, bounds, apart);
    if (q->rows - p == 1) block_avx512(c, q, blocks[i], p, 1, bits, bounds, apart);
  }
}

AVX512_ENTRY SCAN(scan8_avx512) { scan_avx512(ARGS, 8); }
AVX512_ENTRY SCAN(scan4_avx512) { scan_avx512(ARGS, 4); }
AVX512_ENTRY SCAN(scan44_avx512) { scan_avx512(ARGS, 44); }

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
