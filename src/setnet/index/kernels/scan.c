/* One fused pass over quantised vectors: integer dots, upper bound, maximum per item, sigmoid, sum. */
#include "kernels.h"

#include <math.h>
#include <string.h>

scan_function scan8, scan4, scan1;
refine_function refine;

#define PREFETCH 6144 /* bytes ahead: hardware prefetchers stop at the end of a page */

static inline int64_t row_of(const Codes *c, int64_t block) { return c->row_start ? c->row_start[block] : block; }

/* ---- portable ---------------------------------------------------------------------------------------- */

static void row8_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) sum[lane] += row[g * LINE + lane * 4 + j] * q[g * 4 + j];
}

static void row4_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) {
        uint8_t both = row[g * LINE + lane * 4 + j];
        sum[lane] += (both & 15) * q[g * 8 + j] + (both >> 4) * q[g * 8 + 4 + j];
      }
}

static void scan_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds,
                          void (*row)(const Codes *, int64_t, const int8_t *, int32_t *)) {
  for (int64_t block = first; block < last; block++) {
    float *out = bounds + block * LANES;
    for (int lane = 0; lane < LANES; lane++) out[lane] = 0.0f;
    for (int64_t p = 0; p < q->rows; p++) {
      float best[LANES];
      for (int lane = 0; lane < LANES; lane++) best[lane] = -INFINITY;
      for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
        int32_t sum[LANES];
        for (int lane = 0; lane < LANES; lane++) sum[lane] = q->start[p];
        row(c, r, q->codes + p * q->stride, sum);
        for (int lane = 0; lane < LANES; lane++) {
          float s = c->scales[r * LANES + lane] * (q->step[p] * (float)sum[lane] + q->slack[p]);
          if (s > best[lane]) best[lane] = s;
        }
      }
      if (block >= c->first_wide)
        for (int lane = 1; lane < LANES; lane++)
          if (best[lane] > best[0]) best[0] = best[lane];
      for (int lane = 0; lane < LANES; lane++)
        out[lane] += q->weight[p] * probability(best[lane], q->w, q->threshold, q->inflate);
    }
  }
}

static void scan8_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  scan_portable(c, q, first, last, bounds, row8_portable);
}

static void scan4_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  scan_portable(c, q, first, last, bounds, row4_portable);
}

/* One bit: items are rows of 64-bit words; `first` and `last` count items. sum = 2 * sum(set bits) + start. */
static void scan1_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  for (int64_t i = first; i < last; i++) {
    const uint8_t *bits = c->codes + i * c->groups * 8;
    float total = 0.0f;
    for (int64_t p = 0; p < q->rows; p++) {
      const int8_t *code = q->codes + p * q->stride;
      int32_t sum = 0;
      for (int64_t d = 0; d < c->groups * 64; d++) sum += (bits[d >> 3] >> (d & 7) & 1) * code[d];
      float s = c->scales[i] * (q->step[p] * (float)(2 * sum + q->start[p]) + q->slack[p]);
      total += q->weight[p] * probability(s, q->w, q->threshold, q->inflate);
    }
    bounds[i] = total;
  }
}

/* ---- the second look, item by item: everything but the dot is the same at every level -------------------- */

typedef int32_t (*dot_function)(const uint8_t *codes, const int8_t *query, int64_t width);

static int32_t dot_portable(const uint8_t *codes, const int8_t *query, int64_t width) {
  int32_t sum = 0;
  for (int64_t d = 0; d < width; d++) sum += codes[d] * query[d];
  return sum;
}

static void prefetch_rows(const Rows8 *r, int64_t item) {
  const uint8_t *from = r->rows + r->offsets[item] * (r->width + 4), *to = r->rows + r->offsets[item + 1] * (r->width + 4);
  if (to - from > 4096) to = from + 4096;
  for (; from < to; from += LINE) __builtin_prefetch(from);
}

__attribute__((always_inline)) static inline void refine_with(const Rows8 *r, const Query *q, const int64_t *items,
                                                              int64_t n, float *bounds, dot_function dot) {
  enum { AHEAD = 8 };
  for (int64_t i = 0; i < n; i++) {
    if (i + AHEAD < n) prefetch_rows(r, items[i + AHEAD]);
    bounds[i] = 0;
    for (int64_t p = 0; p < q->rows; p++) {
      float best = -INFINITY;
      for (int64_t e = r->offsets[items[i]]; e < r->offsets[items[i] + 1]; e++) {
        const uint8_t *row = r->rows + e * (r->width + 4);
        float scale;
        memcpy(&scale, row, 4);
        int32_t sum = dot(row + 4, q->codes + p * q->stride, r->width) + q->start[p];
        float s = scale * (q->step[p] * (float)sum + q->slack[p]);
        if (s > best) best = s;
      }
      bounds[i] += q->weight[p] * probability(best, q->w, q->threshold, q->inflate);
    }
  }
}

static void refine_portable(const Rows8 *r, const Query *q, const int64_t *items, int64_t n, float *bounds) {
  refine_with(r, q, items, n, bounds, dot_portable);
}

#if HAVE_X86
/* ---- AVX2 -------------------------------------------------------------------------------------------- */
#define AVX2 __attribute__((target("avx2,fma,f16c"), always_inline)) static inline
#define AVX2_ENTRY __attribute__((target("avx2,fma,f16c"))) static

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

/* the bound of up to `people` (1..3) query rows starting at p, added into out[2]; bits is 8 or 4 */
AVX2 void block_avx2(const Codes *c, const Query *q, int64_t block, int64_t p, int people, int bits, __m256 *out) {
  __m256 best[3][2];
  for (int i = 0; i < people; i++) best[i][0] = best[i][1] = _mm256_set1_ps(-INFINITY);
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    const uint8_t *row = c->codes + r * c->groups * LINE;
    const int8_t *code = q->codes + p * q->stride;
    __m256i sum[3][2];
    for (int i = 0; i < people; i++) sum[i][0] = sum[i][1] = _mm256_set1_epi32(q->start[p + i]);
    for (int64_t g = 0; g < c->groups; g++) {
      const uint8_t *line = row + g * LINE;
      _mm_prefetch((const char *)(line + PREFETCH), _MM_HINT_T0);
      if (bits == 8) {
        __m256i x0 = _mm256_loadu_si256((const __m256i *)line);
        __m256i x1 = _mm256_loadu_si256((const __m256i *)(line + 32));
        for (int i = 0; i < people; i++) {
          __m256i y = broadcast4(code + i * q->stride + g * 4);
          sum[i][0] = dot4(sum[i][0], x0, y);
          sum[i][1] = dot4(sum[i][1], x1, y);
        }
      } else {
        const __m256i low = _mm256_set1_epi8(15);
        for (int half = 0; half < 2; half++) {
          __m256i x = _mm256_loadu_si256((const __m256i *)(line + half * 32));
          __m256i a = _mm256_and_si256(x, low), b = _mm256_and_si256(_mm256_srli_epi16(x, 4), low);
          for (int i = 0; i < people; i++) {
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
      for (int i = 0; i < people; i++) {
        __m256 s = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[i][half]), _mm256_set1_ps(q->step[p + i]),
                                   _mm256_set1_ps(q->slack[p + i]));
        best[i][half] = _mm256_max_ps(best[i][half], _mm256_mul_ps(s, scale));
      }
    }
  }
  for (int i = 0; i < people; i++) {
    if (block >= c->first_wide) {
      float lanes[8];
      _mm256_storeu_ps(lanes, _mm256_max_ps(best[i][0], best[i][1]));
      for (int lane = 1; lane < 8; lane++) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
      best[i][0] = best[i][1] = _mm256_set1_ps(lanes[0]);
    }
    __m256 weight = _mm256_set1_ps(q->weight[p + i]);
    for (int half = 0; half < 2; half++) out[half] = _mm256_fmadd_ps(weight, probability256(best[i][half], q), out[half]);
  }
}

AVX2 void scan_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int bits) {
  for (int64_t block = first; block < last; block++) {
    __m256 out[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t p = 0;
    for (; p + 3 <= q->rows; p += 3) block_avx2(c, q, block, p, 3, bits, out);
    if (q->rows - p == 2) block_avx2(c, q, block, p, 2, bits, out);
    if (q->rows - p == 1) block_avx2(c, q, block, p, 1, bits, out);
    _mm256_storeu_ps(bounds + block * LANES, out[0]);
    _mm256_storeu_ps(bounds + block * LANES + 8, out[1]);
  }
}

AVX2_ENTRY void scan8_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  scan_avx2(c, q, first, last, bounds, 8);
}

AVX2_ENTRY void scan4_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  scan_avx2(c, q, first, last, bounds, 4);
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

AVX2_ENTRY void scan1_avx2(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2,
                                          3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201ull);
  for (int64_t i = first; i < last; i++) {
    const int32_t *words = (const int32_t *)(c->codes + i * c->groups * 8);
    float total = 0.0f;
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
      total += q->weight[p] * probability(s, q->w, q->threshold, q->inflate);
    }
    bounds[i] = total;
  }
}

/* ---- AVX-512 with VNNI --------------------------------------------------------------------------------- */
#define TARGET512 "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"
#define AVX512 __attribute__((target(TARGET512), always_inline)) static inline
#define AVX512_ENTRY __attribute__((target(TARGET512))) static

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

/* sums += nibbles . query over all dimensions of a row; two chains per person hide the latency of the dot */
AVX512 void nibbles_avx512(const uint8_t *row, int64_t groups, const int8_t *code, int64_t stride, int people,
                           __m512i *sum) {
  const __m512i low = _mm512_set1_epi8(15);
  __m512i odd[4];
  for (int i = 0; i < people; i++) odd[i] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g++) {
    __m512i x = _mm512_loadu_si512(row + g * LINE);
    _mm_prefetch((const char *)(row + g * LINE + PREFETCH), _MM_HINT_T0);
    __m512i a = _mm512_and_si512(x, low), b = _mm512_and_si512(_mm512_srli_epi16(x, 4), low);
    for (int i = 0; i < people; i++) {
      sum[i] = _mm512_dpbusd_epi32(sum[i], a, broadcast4_512(code + i * stride + g * 8));
      odd[i] = _mm512_dpbusd_epi32(odd[i], b, broadcast4_512(code + i * stride + g * 8 + 4));
    }
  }
  for (int i = 0; i < people; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

AVX512 void bytes_avx512(const uint8_t *row, int64_t groups, const int8_t *code, int64_t stride, int people,
                         __m512i *sum) {
  __m512i odd[4];
  for (int i = 0; i < people; i++) odd[i] = _mm512_setzero_si512();
  int64_t g = 0;
  for (; g + 2 <= groups; g += 2) {
    __m512i x = _mm512_loadu_si512(row + g * LINE), y = _mm512_loadu_si512(row + g * LINE + LINE);
    _mm_prefetch((const char *)(row + g * LINE + PREFETCH), _MM_HINT_T0);
    _mm_prefetch((const char *)(row + g * LINE + PREFETCH + LINE), _MM_HINT_T0);
    for (int i = 0; i < people; i++) {
      sum[i] = _mm512_dpbusd_epi32(sum[i], x, broadcast4_512(code + i * stride + g * 4));
      odd[i] = _mm512_dpbusd_epi32(odd[i], y, broadcast4_512(code + i * stride + g * 4 + 4));
    }
  }
  if (g < groups) {
    __m512i x = _mm512_loadu_si512(row + g * LINE);
    for (int i = 0; i < people; i++) sum[i] = _mm512_dpbusd_epi32(sum[i], x, broadcast4_512(code + i * stride + g * 4));
  }
  for (int i = 0; i < people; i++) sum[i] = _mm512_add_epi32(sum[i], odd[i]);
}

AVX512 void block_avx512(const Codes *c, const Query *q, int64_t block, int64_t p, int people, int bits, __m512 *out) {
  __m512 best[4];
  for (int i = 0; i < people; i++) best[i] = _mm512_set1_ps(-INFINITY);
  const int64_t end = row_of(c, block + 1);
  for (int64_t r = row_of(c, block); r < end; r++) {
    const int64_t at = r * c->groups * LINE;
    const int8_t *code = q->codes + p * q->stride;
    __m512i sum[4];
    for (int i = 0; i < people; i++) sum[i] = _mm512_set1_epi32(q->start[p + i]);
    if (bits == 8) {
      bytes_avx512(c->codes + at, c->groups, code, q->stride, people, sum);
    } else {
      nibbles_avx512(c->codes + at, c->groups, code, q->stride, people, sum);
    }
    __m512 scale = _mm512_loadu_ps(c->scales + r * LANES);
    for (int i = 0; i < people; i++) {
      __m512 s = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[i]), _mm512_set1_ps(q->step[p + i]),
                                 _mm512_set1_ps(q->slack[p + i]));
      best[i] = _mm512_max_ps(best[i], _mm512_mul_ps(s, scale));
    }
  }
  for (int i = 0; i < people; i++) {
    if (block >= c->first_wide) best[i] = _mm512_set1_ps(_mm512_reduce_max_ps(best[i]));
    *out = _mm512_fmadd_ps(_mm512_set1_ps(q->weight[p + i]), probability512(best[i], q), *out);
  }
}

AVX512 void scan_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int bits) {
  for (int64_t block = first; block < last; block++) {
    __m512 out = _mm512_setzero_ps();
    int64_t p = 0;
    for (; p + 4 <= q->rows; p += 4) block_avx512(c, q, block, p, 4, bits, &out);
    if (q->rows - p == 3) block_avx512(c, q, block, p, 3, bits, &out);
    if (q->rows - p == 2) block_avx512(c, q, block, p, 2, bits, &out);
    if (q->rows - p == 1) block_avx512(c, q, block, p, 1, bits, &out);
    _mm512_storeu_ps(bounds + block * LANES, out);
  }
}

AVX512_ENTRY void scan8_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  scan_avx512(c, q, first, last, bounds, 8);
}

AVX512_ENTRY void scan4_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  scan_avx512(c, q, first, last, bounds, 4);
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

/* Four items at a time share each load of the query. */
AVX512_ENTRY void scan1_avx512(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds) {
  const __m512i ones = _mm512_set1_epi8(1);
  for (int64_t i = first; i < last; i += 4) {
    const int items = last - i < 4 ? (int)(last - i) : 4;
    const uint64_t *words[4];
    for (int k = 0; k < 4; k++) words[k] = (const uint64_t *)(c->codes + (i + (k < items ? k : 0)) * c->groups * 8);
    for (int64_t ahead = 0; ahead < c->groups * 32; ahead += LINE)
      _mm_prefetch((const char *)words[0] + PREFETCH + ahead, _MM_HINT_T0);
    float total[4] = {0, 0, 0, 0};
    for (int64_t p = 0; p < q->rows; p++) {
      const int8_t *code = q->codes + p * q->stride;
      __m512i sum[4];
      for (int k = 0; k < 4; k++) sum[k] = _mm512_setzero_si512();
      for (int64_t g = 0; g < c->groups; g++) {
        __m512i y = _mm512_loadu_si512(code + g * 64);
        for (int k = 0; k < 4; k++) sum[k] = _mm512_dpbusd_epi32(sum[k], ones, _mm512_maskz_mov_epi8(words[k][g], y));
      }
      for (int k = 0; k < items; k++) {
        float s = c->scales[i + k] *
                  (q->step[p] * (float)(2 * _mm512_reduce_add_epi32(sum[k]) + q->start[p]) + q->slack[p]);
        total[k] += q->weight[p] * probability(s, q->w, q->threshold, q->inflate);
      }
    }
    for (int k = 0; k < items; k++) bounds[i + k] = total[k];
  }
}
#endif

int best_level(void) {
#if HAVE_X86
  __builtin_cpu_init();
  int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return LEVEL_AVX512;
  if (avx2) return LEVEL_AVX2;
#endif
  return LEVEL_PORTABLE;
}

void use_level(int level) {
  scan8 = scan8_portable;
  scan4 = scan4_portable;
  refine = refine_portable;
  scan1 = scan1_portable;
#if HAVE_X86
  if (level == LEVEL_AVX2) {
    scan8 = scan8_avx2;
    scan4 = scan4_avx2;
    refine = refine_avx2;
    scan1 = scan1_avx2;
  } else if (level == LEVEL_AVX512) {
    scan8 = scan8_avx512;
    scan4 = scan4_avx512;
    refine = refine_avx512;
    scan1 = scan1_avx512;
  }
#endif
}
