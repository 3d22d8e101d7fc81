/* What the scans of all instruction sets share. */
#ifndef SETNET_SCAN_H
#define SETNET_SCAN_H

#include <math.h>
#include <string.h>

#include "kernels.h"

#define PREFETCH 6144 /* bytes ahead: hardware prefetchers stop at the end of a page */

static inline const float *scales_of(const Codes *c, int64_t row) { return (const float *)c->scales + row * LANES; }

/* row r's upper halves of float32 */
static inline const uint16_t *norms_of(const Codes *c, int64_t row, int which) {
  return (const uint16_t *)c->scales + (row * NORMS + which) * LANES;
}

static inline float from_upper(uint16_t upper) {
  union {
    uint32_t bits;
    float value;
  } both = {(uint32_t)upper << 16};
  return both.value;
}

static inline int64_t row_of(const Codes *c, int64_t block) { return c->row_start ? c->row_start[block] : block; }

/* Codes with the distance from block i's rows to those of the second block after it, unless these follow at once. */
static inline Codes ahead_of(const Codes *c, const int64_t *blocks, int64_t i, int64_t n) {
  Codes codes = *c;
  codes.ahead = i + 2 < n && blocks[i + 2] - blocks[i] > 2 ? row_of(c, blocks[i + 2]) - row_of(c, blocks[i]) : 0;
  return codes;
}

/* Bytes from a row of `lines` lines to what is fetched meanwhile. */
static inline int64_t bytes_ahead(const Codes *c, int64_t lines) { return c->ahead ? c->ahead * lines * LINE : PREFETCH; }

static inline void fetch_norms(const Codes *c, int64_t row) {
  const uint16_t *norms = norms_of(c, row + c->ahead, 0);
  __builtin_prefetch(norms), __builtin_prefetch(norms + NORMS * LANES - 1);
}

/* The end of the rows of p's query. */
static inline int64_t query_end(const Query *q, int64_t p) {
  while (++p < q->rows && q->owner[p] == q->owner[p - 1]) {
  }
  return p;
}

/* Where row p's share of a bound goes, and whether it is the first of its query's. */
static inline int64_t owner_of(const Query *q, int64_t p) { return q->owner[p]; }
static inline int is_first(const Query *q, int64_t p) { return p == 0 || q->owner[p] != q->owner[p - 1]; }

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

/* how a scan is declared, and how it hands its arguments on */
#define SCAN(name) \
  void name(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart)
#define ARGS c, q, blocks, n, bounds, apart
#define COLLECT(name) int64_t name(const float *bounds, int64_t n, float low, int64_t *out, int64_t room)

SCAN(scan8_portable);
SCAN(scan4_portable);
SCAN(scan5_portable);
SCAN(scan9_portable);
SCAN(upper8_portable);
SCAN(least5_portable);
SCAN(scan1_rows_portable);
COLLECT(collect_portable);
SCAN(scan8_avx2);
SCAN(scan4_avx2);
SCAN(scan5_avx2);
SCAN(scan9_avx2);
SCAN(least5_avx2);
SCAN(scan1_rows_avx2);
COLLECT(collect_avx2);
SCAN(scan8_avx512);
SCAN(scan4_avx512);
SCAN(scan5_avx512);
SCAN(upper8_avx512);
SCAN(least5_avx512);
COLLECT(collect_avx512);
SCAN(scan8_neon);
SCAN(scan4_neon);
SCAN(scan5_neon);
SCAN(scan9_neon);
SCAN(least5_neon);
SCAN(scan1_rows_neon);
COLLECT(collect_neon);
SCAN(scan8_neon_dot);
SCAN(scan4_neon_dot);
SCAN(scan5_neon_dot);
SCAN(scan9_neon_dot);
SCAN(least5_neon_dot);

#endif
