/* The scans in AVX-512 with VNNI: a register is a line, and a dot over four dimensions one instruction. */
#include "scan.h"

#include <stdlib.h>

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

/* the shares of `count` (1..4) query rows starting at p in the bounds of a block; bits is 8 or 4 */
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
    if (bits == 8) {
      bytes_avx512(c->codes + at, c->groups, code, q->stride, count, sum);
    } else {
      nibbles_avx512(c->codes + at, c->groups, code, q->stride, count, sum);
    }
    __m512 scale = _mm512_loadu_ps(c->scales + r * LANES);
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

AVX512 void scan_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart,
                        int bits) {
  for (int64_t block = first; block < last; block++) {
    int64_t p = 0;
    for (; p + 4 <= q->rows; p += 4) block_avx512(c, q, block, p, 4, bits, bounds, apart);
    if (q->rows - p == 3) block_avx512(c, q, block, p, 3, bits, bounds, apart);
    if (q->rows - p == 2) block_avx512(c, q, block, p, 2, bits, bounds, apart);
    if (q->rows - p == 1) block_avx512(c, q, block, p, 1, bits, bounds, apart);
  }
}

AVX512_ENTRY void scan8_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds,
                               int64_t apart) {
  scan_avx512(c, q, first, last, bounds, apart, 8);
}

AVX512_ENTRY void scan4_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds,
                               int64_t apart) {
  scan_avx512(c, q, first, last, bounds, apart, 4);
}

AVX512 int32_t dot_avx512(const uint8_t *codes, const int8_t *query, int64_t width) {
  __m512i sum = _mm512_setzero_si512();
  int64_t d = 0;
  for (; d + 64 <= width; d += 64)
    sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(codes + d), _mm512_loadu_si512(query + d));
  if (d < width) {
    __mmask64 rest = ~0ull >> (64 - (width - d));
    sum = _mm512_dpbusd_epi32(sum, _mm512_maskz_loadu_epi8(rest, codes + d), _mm512_maskz_loadu_epi8(rest, query + d));
  }
  return _mm512_reduce_add_epi32(sum);
}

AVX512_ENTRY void refine_avx512(const Rows8 *r, const Query *q, const int64_t *items, int64_t n, float *bounds) {
  refine_with(r, q, items, n, bounds, dot_avx512);
}

AVX512_ENTRY int64_t collect_avx512(const float *bounds, int64_t n, float low, int64_t *out, int64_t room) {
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

/* ---- one bit: bit t of 64 bytes at once, as ones and zeros, against the query's codes of these dimensions -------- */

enum { ITEMS = 4, CHUNK = 512 }; /* items whose sums are made together; dimensions in a line of bits */

/* by_bit[p][chunk][t][j] is the code of dimension 8 j + t of a chunk */
AVX512 int8_t *by_bit_of(const Query *q, int64_t groups, int64_t chunks) {
  int8_t *by_bit = calloc((size_t)(q->rows * chunks + 1), CHUNK);
  for (int64_t p = 0; by_bit && p < q->rows; p++)
    for (int64_t d = 0; d < groups * 64; d++)
      by_bit[(p * chunks + d / CHUNK) * CHUNK + d % 8 * LINE + d % CHUNK / 8] = q->codes[p * q->stride + d];
  return by_bit;
}

/* sums[i][k] = the query row's codes over the bits set in item k, for `count` (1..4) rows and four items */
AVX512 void bits_avx512(const uint8_t *const *items, int64_t groups, const int8_t *by_bit, int64_t stride, int count,
                        int32_t (*sums)[LANES]) {
  const __m512i one = _mm512_set1_epi8(1);
  __m512i sum[4][ITEMS];
  for (int i = 0; i < count; i++)
    for (int k = 0; k < ITEMS; k++) sum[i][k] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g += 8, by_bit += CHUNK) {
    const __mmask8 there = groups - g < 8 ? (__mmask8)((1 << (groups - g)) - 1) : 0xff;
    __m512i x[ITEMS];
    for (int k = 0; k < ITEMS; k++) {
      x[k] = _mm512_maskz_loadu_epi64(there, items[k] + g * 8);
      _mm_prefetch((const char *)(items[k] + g * 8 + PREFETCH), _MM_HINT_T0);
    }
    for (int t = 0; t < 8; t++) {
      __m512i y[4];
      for (int i = 0; i < count; i++) y[i] = _mm512_loadu_si512(by_bit + i * stride + t * LINE);
      for (int k = 0; k < ITEMS; k++) {
        const __m512i bit = _mm512_and_si512(_mm512_srli_epi16(x[k], (unsigned)t), one);
        for (int i = 0; i < count; i++) sum[i][k] = _mm512_dpbusd_epi32(sum[i][k], bit, y[i]);
      }
    }
  }
  for (int i = 0; i < count; i++)
    for (int k = 0; k < ITEMS; k++) sums[i][k] = _mm512_reduce_add_epi32(sum[i][k]);
}

/* the shares of `count` (1..4) query rows starting at p in the bounds of items i .. i + n, n <= LANES */
AVX512 void items_avx512(const Codes *c, const Query *q, const int8_t *by_bit, int64_t i, int64_t n, int64_t p,
                         int count, float *bounds, int64_t apart) {
  const int64_t stride = (c->groups + 7) / 8 * CHUNK;
  const uint8_t *codes = c->codes + i * c->groups * 8, *items[ITEMS];
  int32_t sums[4][LANES];
  for (int64_t k = 0; k < n; k += ITEMS) {
    for (int j = 0; j < ITEMS; j++) items[j] = codes + (k + j < n ? k + j : n - 1) * c->groups * 8;
    bits_avx512(items, c->groups, by_bit + p * stride, stride, count, (int32_t(*)[LANES])(sums[0] + k));
  }
  const __mmask16 there = (__mmask16)((1u << n) - 1);
  const __m512 scale = _mm512_maskz_loadu_ps(there, c->scales + i);
  for (int j = 0; j < count; j++) {
    __m512i sum = _mm512_maskz_loadu_epi32(there, sums[j]);
    sum = _mm512_add_epi32(_mm512_add_epi32(sum, sum), _mm512_set1_epi32(q->start[p + j]));
    __m512 s = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(q->step[p + j]),
                               _mm512_set1_ps(q->slack[p + j]));
    float *out = bounds + owner_of(q, p + j) * apart + i;
    __m512 before = is_first(q, p + j) ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(there, out);
    __m512 share = probability512(_mm512_mul_ps(s, scale), q);
    _mm512_mask_storeu_ps(out, there, _mm512_fmadd_ps(_mm512_set1_ps(q->weight[p + j]), share, before));
  }
}

AVX512_ENTRY void scan1_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds,
                               int64_t apart) {
  int8_t *by_bit = by_bit_of(q, c->groups, (c->groups + 7) / 8);
  if (!by_bit) { /* no memory: the AVX2 scan needs none */
    scan1_avx2(c, q, first, last, bounds, apart);
    return;
  }
  for (int64_t i = first; i < last; i += LANES) {
    const int64_t n = last - i < LANES ? last - i : LANES;
    int64_t p = 0;
    for (; p + 4 <= q->rows; p += 4) items_avx512(c, q, by_bit, i, n, p, 4, bounds, apart);
    if (q->rows - p == 3) items_avx512(c, q, by_bit, i, n, p, 3, bounds, apart);
    if (q->rows - p == 2) items_avx512(c, q, by_bit, i, n, p, 2, bounds, apart);
    if (q->rows - p == 1) items_avx512(c, q, by_bit, i, n, p, 1, bounds, apart);
  }
  free(by_bit);
}
#endif
