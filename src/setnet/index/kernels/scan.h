/* What the scans of all instruction sets share. */
#ifndef SETNET_SCAN_H
#define SETNET_SCAN_H

#include <math.h>
#include <string.h>

#include "kernels.h"

#define PREFETCH 6144 /* bytes ahead: hardware prefetchers stop at the end of a page */

static inline int64_t row_of(const Codes *c, int64_t block) { return c->row_start ? c->row_start[block] : block; }

/* ---- the second look, item by item: everything but the dot is the same at every level -------------------- */

typedef int32_t (*dot_function)(const uint8_t *codes, const int8_t *query, int64_t width);

static inline int32_t dot_portable(const uint8_t *codes, const int8_t *query, int64_t width) {
  int32_t sum = 0;
  for (int64_t d = 0; d < width; d++) sum += codes[d] * query[d];
  return sum;
}

static inline void prefetch_rows(const Rows8 *r, int64_t item) {
  const uint8_t *from = r->rows + r->offsets[item] * (r->width + 4), *to = r->rows + r->offsets[item + 1] * (r->width + 4);
  if (to - from > 4096) to = from + 4096;
  for (; from < to; from += LINE) __builtin_prefetch(from);
}

__attribute__((always_inline)) static inline void refine_with(const Rows8 *r, const Query *q, const int64_t *items,
                                                              int64_t n, float *bounds, dot_function dot) {
  enum { AHEAD = 8 };
  for (int64_t i = 0; i < n; i++) {
    if (i + 2 * AHEAD < n) __builtin_prefetch(r->offsets + items[i + 2 * AHEAD]);
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

#define SCANS(level)                                                                                     \
  void scan8_##level(const Codes *, const Query *, int64_t first, int64_t last, float *bounds);          \
  void scan4_##level(const Codes *, const Query *, int64_t first, int64_t last, float *bounds);          \
  void scan1_##level(const Codes *, const Query *, int64_t first, int64_t last, float *bounds);          \
  void refine_##level(const Rows8 *, const Query *, const int64_t *items, int64_t n, float *bounds)

SCANS(avx2);
SCANS(avx512);

#endif
