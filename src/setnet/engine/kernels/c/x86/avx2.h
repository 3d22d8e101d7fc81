/* What the AVX2 scans share: from similarities to bounds. */
#ifndef SETNET_AVX2_H
#define SETNET_AVX2_H

#include "../scan.h"

#if HAVE_X86
#define AVX2 __attribute__((target("avx2,fma,f16c"), always_inline)) static inline
#define AVX2_ENTRY __attribute__((target("avx2,fma,f16c")))

#define AT_ONCE 3 /* query rows whose sums fit the registers */
#define TILE 4    /* blocks between two turns of the sigmoid: it takes long, but many can be under way together */

/* Keeps a running sum running: the compiler would rather add up all terms at the end, and run out of registers. */
#define KEEP_SUM(x) __asm__("" : "+x"(x))

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
  if (q->w == 0) return _mm256_max_ps(_mm256_min_ps(s, _mm256_set1_ps(UNBOUNDED)), _mm256_setzero_ps());
  __m256 minus_z = _mm256_fnmsub_ps(_mm256_sub_ps(s, _mm256_set1_ps(q->threshold)), _mm256_set1_ps(q->w),
                                    _mm256_set1_ps(q->inflate));
  minus_z = _mm256_max_ps(minus_z, _mm256_set1_ps(-80.0f)); /* of a NaN and another, the other: its bound is high */
  minus_z = _mm256_min_ps(minus_z, _mm256_set1_ps(80.0f));
  return _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_add_ps(_mm256_set1_ps(1.0f), exp256(minus_z)));
}

/* scale * (step * sum + slack) */
AVX2 __m256 similarity256(__m256i sum, __m256 scale, const Query *q, int64_t p) {
  return _mm256_mul_ps(scale, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), _mm256_set1_ps(q->step[p]),
                                              _mm256_set1_ps(q->slack[p])));
}

AVX2 float largest256(__m256 x) {
  float lanes[8];
  _mm256_storeu_ps(lanes, x);
  for (int lane = 1; lane < 8; lane++) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
  return lanes[0];
}

/* store the best similarities of lanes 0..7 and 8..15; all lanes of a wide item get the best of them */
AVX2 void store_best(__m256 a, __m256 b, int wide, float *best) {
  if (wide) a = b = _mm256_set1_ps(largest256(_mm256_max_ps(a, b)));
  _mm256_storeu_ps(best, a);
  _mm256_storeu_ps(best + 8, b);
}

/* add row p's share in the bounds of 16 lanes */
AVX2 void add_share(const float *best, const Query *q, int64_t p, float *out) {
  for (int half = 0; half < 2; half++, best += 8, out += 8) {
    __m256 before = is_first(q, p) ? _mm256_setzero_ps() : _mm256_loadu_ps(out);
    __m256 share = probability256(_mm256_loadu_ps(best), q);
    _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_set1_ps(q->weight[p]), share, before));
  }
}

/* the same for a tile of n blocks; of rows of items, the last block may have fewer */
AVX2 void add_shares(const float *best, const Codes *c, const Query *q, int64_t p, const int64_t *blocks, int64_t n,
                     float *bounds, int64_t apart) {
  for (int64_t b = 0; b < n; b++, best += LANES) {
    const int64_t item = blocks[b] * LANES;
    float *out = bounds + owner_of(q, p) * apart + item, kept[LANES];
    if (!c->items || item + LANES <= c->items) {
      add_share(best, q, p, out);
    } else {
      const size_t bytes = (size_t)(c->items - item) * sizeof(float);
      add_share(best, q, p, memcpy(kept, out, bytes));
      memcpy(out, kept, bytes);
    }
  }
}

/* write the best similarities of a block's lanes to query rows p .. p + count; those of a row begin a tile apart */
#define SIMILARITIES(name) void name(const Codes *c, const Query *q, int64_t block, int64_t p, int count, float *best)

AVX2 void scan_tiles(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart,
                     SIMILARITIES((*similarities))) {
  for (int64_t b = 0; b < n; b += TILE) {
    const int64_t tile = n - b < TILE ? n - b : TILE;
    for (int64_t p = 0; p < q->rows; p += AT_ONCE) {
      const int64_t count = q->rows - p < AT_ONCE ? q->rows - p : AT_ONCE;
      float best[AT_ONCE][TILE * LANES];
      for (int64_t i = 0; i < tile; i++) { /* each call is compiled for its number of rows */
        const Codes near = ahead_of(c, blocks, b + i, n);
        if (count == 1) similarities(&near, q, blocks[b + i], p, 1, best[0] + i * LANES);
        if (count == 2) similarities(&near, q, blocks[b + i], p, 2, best[0] + i * LANES);
        if (count == 3) similarities(&near, q, blocks[b + i], p, 3, best[0] + i * LANES);
      }
      for (int64_t i = 0; i < count; i++) add_shares(best[i], c, q, p + i, blocks + b, tile, bounds, apart);
    }
  }
}
#endif
#endif
