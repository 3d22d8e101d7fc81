#include "budget.h"

#include <stdlib.h>

#include "scan.h"

typedef float float4 __attribute__((vector_size(16), aligned(4), may_alias));

/* The similarities of an element to all rows of a query. */
static inline void look_up(const uint8_t *code, int64_t bytes, const float *table, int64_t stride, float *sums) {
  for (int64_t r = 0; r < stride; r += 4, table += 4) {
    float4 even = {0}, odd = {0}; /* two sums, so that an addition need not wait for the one before */
    const float *t = table;
    int64_t i = 0;
    for (; i + 2 <= bytes; i += 2, t += 2 * 256 * stride) {
      even += *(const float4 *)(t + code[i] * stride);
      odd += *(const float4 *)(t + (256 + code[i + 1]) * stride);
    }
    if (i < bytes) even += *(const float4 *)(t + code[i] * stride);
    *(float4 *)(sums + r) = even + odd;
  }
}

/* The best similarity of an item's elements to each row. */
static void best_of(const BudgetCodes *c, const Run *run, const uint8_t *code, const Query *q, float *sums, float *best) {
  for (int64_t p = 0; p < q->rows; p++) best[p] = -INFINITY;
  for (int64_t e = 0; e < run->elements; e++, code += run->bytes) {
    look_up(code, run->bytes, c->tables + run->table, c->stride, sums);
    for (int64_t p = 0; p < q->rows; p++)
      if (sums[p] > best[p]) best[p] = sums[p];
  }
}

/* By how much the least similar element reaches the least similarity of some row of each query. */
static void least_of(const BudgetCodes *c, const Run *run, const uint8_t *code, const Query *q, float *sums, float *out,
                     int64_t apart) {
  for (int64_t p = 0; p < q->rows; p = query_end(q, p)) out[owner_of(q, p) * apart] = INFINITY;
  for (int64_t e = 0; e < run->elements; e++, code += run->bytes) {
    look_up(code, run->bytes, c->tables + run->table, c->stride, sums);
    for (int64_t p = 0, end; p < q->rows; p = end) {
      float most = -INFINITY, *least = out + owner_of(q, p) * apart;
      for (end = query_end(q, p); p < end; p++) {
        const float above = sums[p] + q->shift[p] - q->least[p];
        if (above > most) most = above;
      }
      if (most < *least) *least = most;
    }
  }
}

int scan_budget(const BudgetCodes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds, int64_t apart,
                int least) {
  float *sums = malloc(sizeof(float) * (size_t)(2 * c->stride + 1)), *best = sums + c->stride;
  const Run *run = c->runs;
  if (!sums) return -1;
  for (int64_t b = 0; b < n; b++)
    for (int64_t lane = blocks[b] * LANES; lane < (blocks[b] + 1) * LANES && lane < c->lanes; lane++) {
      while (run > c->runs && lane < run->lane) run--;
      while (run + 1 < c->runs + c->count && lane >= run[1].lane) run++;
      const uint8_t *code = c->codes + run->code + (lane - run->lane) * run->elements * run->bytes;
      float *out = bounds + lane;
      if (least) {
        least_of(c, run, code, q, sums, out, apart);
        continue;
      }
      best_of(c, run, code, q, sums, best);
      for (int64_t p = 0; p < q->rows; p++) {
        float *bound = out + owner_of(q, p) * apart;
        const float share = q->weight[p] * probability(best[p] + q->shift[p], q->w, q->threshold, q->inflate);
        *bound = is_first(q, p) ? share : *bound + share;
      }
    }
  free(sums);
  return 0;
}

/* The points of a width follow those of all smaller ones, each with a line for the lengths. */
static const float *points_of(const float *points, int64_t width) { return points + 128 * (width - 1) * (width + 2); }

/* Sixteen points at a time: on x86 a pass with the scores in memory takes twice as long. */
typedef float Scores __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t Numbers __attribute__((vector_size(64)));

VECTOR_CLONES static uint8_t nearest(const float *x, int64_t width, const float *points) {
  const Numbers lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Scores best = (Scores){0} - INFINITY;
  Numbers at = lanes;
  for (int k = 0; k < 256; k += 16) {
    Scores score = *(const Scores *)(points + k);
    for (int64_t d = 0; d < width; d++) score += x[d] * *(const Scores *)(points + 256 * (d + 1) + k);
    const Numbers is_nearer = score > best;
    best = (Scores)((is_nearer & (Numbers)score) | (~is_nearer & (Numbers)best));
    at = (is_nearer & (lanes + k)) | (~is_nearer & at);
  }
  int found = 0;
  for (int j = 1; j < 16; j++)
    if (best[j] > best[found] || (best[j] == best[found] && at[j] < at[found])) found = j;
  return (uint8_t)at[found];
}

void encode_budget(const float *rows, int64_t n, int64_t dim, const int64_t *starts, int64_t bytes, const float *points,
                   uint8_t *codes) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t b = 0; b < bytes; b++) {
      const int64_t width = starts[b + 1] - starts[b];
      codes[i * bytes + b] = nearest(rows + i * dim + starts[b], width, points_of(points, width));
    }
}
