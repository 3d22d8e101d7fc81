/* One fused pass over quantised vectors: integer dots, upper bound, maximum per item, sigmoid, sum.
 * Here in portable C; the same for each instruction set beside it. */
#include "scan.h"

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

static void row44_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const int64_t start = r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) {
        const int64_t at = start + g * LINE + lane * 4 + j;
        const uint8_t high = c->codes[at], low = c->low[at];
        sum[lane] += ((high & 15) << 4 | (low & 15)) * q[g * 8 + j];
        sum[lane] += ((high & 0xf0) | low >> 4) * q[g * 8 + 4 + j];
      }
}

/* All lanes of a wide item get the best of them. */
static void spread_best(float *best) {
  for (int lane = 1; lane < LANES; lane++)
    if (best[lane] > best[0]) best[0] = best[lane];
  for (int lane = 1; lane < LANES; lane++) best[lane] = best[0];
}

/* Add row p's share in a bound. */
static void add_share(const Query *q, int64_t p, float similarity, float *out) {
  *out = (is_first(q, p) ? 0.0f : *out) + q->weight[p] * probability(similarity, q->w, q->threshold, q->inflate);
}

static void scan_portable(const Codes *c, const Query *q, const int64_t *blocks, int64_t n, float *bounds,
                          int64_t apart, void (*row)(const Codes *, int64_t, const int8_t *, int32_t *)) {
  for (int64_t b = 0; b < n; b++) {
    const int64_t block = blocks[b];
    for (int64_t p = 0; p < q->rows; p++) {
      float *out = bounds + owner_of(q, p) * apart + block * LANES;
      float best[LANES];
      for (int lane = 0; lane < LANES; lane++) best[lane] = -INFINITY;
      for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
        int32_t sum[LANES];
        for (int lane = 0; lane < LANES; lane++) sum[lane] = q->start[p];
        row(c, r, q->codes + p * q->stride, sum);
        for (int lane = 0; lane < LANES; lane++) {
          float s = scales_of(c, r)[lane] * (q->step[p] * (float)sum[lane] + q->slack[p]);
          if (s > best[lane]) best[lane] = s;
        }
      }
      if (block >= c->first_wide) spread_best(best);
      for (int lane = 0; lane < LANES; lane++) add_share(q, p, best[lane], out + lane);
    }
  }
}

SCAN(scan8_portable) { scan_portable(ARGS, row8_portable); }
SCAN(scan4_portable) { scan_portable(ARGS, row4_portable); }
SCAN(scan44_portable) { scan_portable(ARGS, row44_portable); }

/* The sum that tables give for a code whose bytes lie `apart`. */
static int32_t looked_up(const uint8_t *code, int64_t bytes, int64_t apart, const uint8_t *tables) {
  int32_t sum = 0;
  for (int64_t j = 0; j < bytes; j++) {
    const uint8_t byte = code[j * apart], *table = tables + j / 4 * 128 + j % 4 * 16;
    sum += table[byte & 15] + table[64 + (byte >> 4)];
  }
  return sum;
}

/* One bit in lane order. */
SCAN(scan1_portable) {
  for (int64_t b = 0; b < n; b++)
    for (int64_t p = 0; p < q->rows; p++) {
      const int64_t block = blocks[b];
      const uint8_t *tables = (const uint8_t *)q->codes + p * q->stride;
      float best[LANES];
      for (int lane = 0; lane < LANES; lane++) best[lane] = -INFINITY;
      for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++)
        for (int lane = 0; lane < LANES; lane++) {
          union {
            uint32_t bits;
            float value;
          } factor = {(uint32_t)((const uint16_t *)c->scales)[r * LANES + lane] << 16};
          int32_t sum = looked_up(c->codes + r * c->groups * LANES + lane, c->groups, LANES, tables);
          float s = factor.value * (q->step[p] * (float)sum + q->slack[p]);
          if (s > best[lane]) best[lane] = s;
        }
      if (block >= c->first_wide) spread_best(best);
      for (int lane = 0; lane < LANES; lane++)
        add_share(q, p, best[lane] + q->shift[p], bounds + owner_of(q, p) * apart + block * LANES + lane);
    }
}

/* One bit row by row. */
SCAN(scan1_rows_portable) {
  for (int64_t b = 0; b < n; b++)
    for (int64_t i = blocks[b] * LANES; i < c->items && i < (blocks[b] + 1) * LANES; i++)
      for (int64_t p = 0; p < q->rows; p++) {
        int32_t sum = looked_up(c->codes + i * c->groups, c->groups, 1, (const uint8_t *)q->codes + p * q->stride);
        float s = ((const float *)c->scales)[i] * (q->step[p] * (float)sum + q->slack[p]);
        add_share(q, p, s + q->shift[p], bounds + owner_of(q, p) * apart + i);
      }
}

COLLECT(collect_portable) { return collect_rest(bounds, 0, n, low, out, 0, room); }
