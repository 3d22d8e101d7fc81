/* What the scans of all instruction sets share. */
#ifndef SETNET_SCAN_H
#define SETNET_SCAN_H

#include <math.h>
#include <string.h>

#include "kernels.h"

#define PREFETCH 6144 /* bytes ahead: hardware prefetchers stop at the end of a page */

static inline int64_t row_of(const Codes *c, int64_t block) { return c->row_start ? c->row_start[block] : block; }

/* Where row p's share of a bound goes, and whether it is the first of its query's. */
static inline int64_t owner_of(const Query *q, int64_t p) { return q->owner[p]; }
static inline int is_first(const Query *q, int64_t p) { return p == 0 || q->owner[p] != q->owner[p - 1]; }

/* ---- the second look, item by item: everything but the dot is the same at every level -------------------- */

typedef int32_t (*dot_function)(const uint8_t *codes, const int8_t *query, int64_t width);

static inline int32_t dot_portable(const uint8_t *codes, const int8_t *query, int64_t width) {
  int32_t sum = 0;
  for (int64_t d = 0; d < width; d++) sum += codes[d] * query[d];
  return sum;
}

__attribute__((always_inline)) static inline void refine_with(const Rows8 *r, const Query *q, const int64_t *items,
                                                              int64_t n, float *bounds, dot_function dot) {
  for (int64_t i = 0; i < n; i++) {
    fetch(r->rows, r->width + 4, r->offsets, items, i, n);
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

/* Append the indices from + (set bits of mask) to those found. */
static inline int64_t append(uint64_t mask, int64_t from, int64_t *out, int64_t found, int64_t room) {
  for (; mask; mask &= mask - 1, found++)
    if (found < room) out[found] = from + __builtin_ctzll(mask);
  return found;
}

static inline int64_t collect_rest(const float *bounds, int64_t i, int64_t n, float low, int64_t *out, int64_t found,
                                   int64_t room) {
  for (; i < n; i++) found = append(bounds[i] >= low, i, out, found, room);
  return found;
}

#define SCANS(level)                                                                                            \
  void scan8_##level(const Codes *, const Query *, int64_t first, int64_t last, float *bounds, int64_t apart);  \
  void scan4_##level(const Codes *, const Query *, int64_t first, int64_t last, float *bounds, int64_t apart);  \
  void scan1_##level(const Codes *, const Query *, int64_t first, int64_t last, float *bounds, int64_t apart);  \
  int64_t collect_##level(const float *bounds, int64_t n, float low, int64_t *out, int64_t room);               \
  void refine_##level(const Rows8 *, const Query *, const int64_t *items, int64_t n, float *bounds)

SCANS(avx2);
SCANS(avx512);

#endif
