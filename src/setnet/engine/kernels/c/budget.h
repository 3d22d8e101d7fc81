/* Bounds from budget codes: a byte of a code names an entry of a table, and the sum of entries is a similarity. */
#ifndef SETNET_BUDGET_H
#define SETNET_BUDGET_H

#include "kernels.h"

/* Items with the same number of elements, one lane each. */
typedef struct {
  int64_t lane;     /* of the first item */
  int64_t elements; /* of each */
  int64_t bytes;    /* of each element */
  int64_t code;     /* where the first one's begin */
  int64_t table;    /* where the table of the first byte begins: the tables of all bytes follow each other */
} Run;

typedef struct {
  const uint8_t *codes; /* element after element */
  const Run *runs;
  int64_t count, lanes;
  const float *tables; /* 256 entries a byte, of `stride` rows each */
  int64_t stride;      /* rows of the query, rounded up to a multiple of 4 */
} BudgetCodes;

/* As the scans of `Kernels` do: bounds of n blocks of lanes, or with `least` what their least5 writes. Loads limit it,
 * four rows at a time: every instruction set does the same. Returns 0, or -1 when memory ran out. */
int scan_budget(const BudgetCodes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart,
                int least);

/* The nearest of 256 points to each run of a row's coordinates: byte i has those from starts[i] to before starts[i + 1].
 * For each width w from 1 on, `points` has minus half the squares of the points' lengths and then the first to the last
 * coordinates of all. */
void encode_budget(const float *rows, int64_t n, int64_t dim, const int64_t *starts, int64_t bytes, const float *points,
                   uint8_t *codes);

#endif
