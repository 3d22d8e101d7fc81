/* One fused pass over quantised vectors: integer dots, upper bound, maximum per item, sigmoid, sum.
 * Here in portable C; the same for each instruction set beside it. */
#include "scan.h"

enum { UPPER8 = 98 }; /* the upper eight of nine bits, beside numbers of bits */

typedef void (*row_function)(const Codes *, int64_t, const int8_t *, int32_t *);

static void row8_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) sum[lane] += row[g * LINE + lane * 4 + j] * q[g * 4 + j];
}

/* a line of halves of bytes: eight dimensions */
static void add_halves(const uint8_t *line, const int8_t *q, int32_t *sum) {
  for (int lane = 0; lane < LANES; lane++)
    for (int j = 0; j < 4; j++) {
      const uint8_t both = line[lane * 4 + j];
      sum[lane] += (both & 15) * q[j] + (both >> 4) * q[4 + j];
    }
}

static void row4_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  for (int64_t g = 0; g < c->groups; g++) add_halves(c->codes + (r * c->groups + g) * LINE, q + g * 8, sum);
}

static void row5_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *line = c->codes + r * c->groups * LINE;
  for (int64_t panel = 0; panel < c->groups / 5; panel++, line += 5 * LINE, q += PANEL) {
    for (int g = 0; g < 8; g++)
      for (int lane = 0; lane < LANES; lane++)
        for (int j = 0; j < 4; j++) sum[lane] += (line[lane * 4 + j] >> (4 + g) % 8 & 1) * 16 * q[g * 4 + j];
    for (int g = 0; g < 4; g++) add_halves(line + (1 + g) * LINE, q + g * 8, sum);
  }
}

static void row9_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const int64_t lines = c->groups / 5 * 4;
  int32_t upper[LANES] = {0};
  row5_portable(c, r, q, upper);
  for (int lane = 0; lane < LANES; lane++) sum[lane] += upper[lane] * 16;
  for (int64_t g = 0; g < lines; g++) add_halves(c->fine + (r * lines + g) * LINE, q + g * 8, sum);
}

static void row_upper8_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *line = c->codes + r * c->groups * LINE, *fine = c->fine + r * (c->groups / 5 * 4) * LINE;
  for (int64_t panel = 0; panel < c->groups / 5; panel++, line += 5 * LINE, fine += 4 * LINE, q += PANEL)
    for (int g = 0; g < 8; g++)
      for (int i = 0; i < LINE; i++) {
        const int half = g % 2 * 4, fifth = line[i] >> (4 + g) % 8 & 1;
        const int code = fifth << 7 | (line[(1 + g / 2) * LINE + i] >> half & 15) << 3 | (fine[g / 2 * LINE + i] >> half & 15) >> 1;
        sum[i / 4] += code * q[g * 4 + i % 4];
      }
}

/* Similarities, or their upper bounds, of row r's lanes to query row p. */
static void similarities(const Codes *c, const Query *q, int64_t r, int64_t p, int bits, float *s) {
  const row_function row = bits == 8 ? row8_portable : bits == 4 ? row4_portable : bits == 5 ? row5_portable
                           : bits == UPPER8 ? row_upper8_portable : row9_portable;
  const uint16_t *residual = bits == 9 || bits == UPPER8 ? c->fine_norms + r * LANES : norms_of(c, r, RESIDUAL);
  int32_t sum[LANES];
  for (int lane = 0; lane < LANES; lane++) sum[lane] = q->start[p];
  row(c, r, q->codes + p * q->stride, sum);
  for (int lane = 0; lane < LANES; lane++) {
    const float x = q->step[p] * (float)sum[lane] + q->slack[p];
    if (bits == 8 || bits == 4)
      s[lane] = scales_of(c, r)[lane] * x;
    else
      s[lane] = from_upper(norms_of(c, r, SCALE)[lane]) * x + q->length[p] * from_upper(residual[lane]) +
                q->lost[p] * from_upper(norms_of(c, r, NORM)[lane]);
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
                          int64_t apart, int bits) {
  for (int64_t b = 0; b < n; b++) {
    const int64_t block = blocks[b];
    for (int64_t p = 0; p < q->rows; p++) {
      float *out = bounds + owner_of(q, p) * apart + block * LANES;
      float best[LANES], s[LANES];
      for (int lane = 0; lane < LANES; lane++) best[lane] = -INFINITY;
      for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
        similarities(c, q, r, p, bits, s);
        for (int lane = 0; lane < LANES; lane++)
          if (s[lane] > best[lane]) best[lane] = s[lane];
      }
      if (block >= c->first_wide) spread_best(best);
      for (int lane = 0; lane < LANES; lane++) add_share(q, p, best[lane], out + lane);
    }
  }
}

SCAN(scan8_portable) { scan_portable(ARGS, 8); }
SCAN(scan4_portable) { scan_portable(ARGS, 4); }
SCAN(scan5_portable) { scan_portable(ARGS, 5); }
SCAN(scan9_portable) { scan_portable(ARGS, 9); }
SCAN(upper8_portable) { scan_portable(ARGS, UPPER8); }

SCAN(least5_portable) {
  for (int64_t b = 0; b < n; b++)
    for (int64_t p = 0, end; p < q->rows; p = end) {
      end = query_end(q, p);
      float *least = bounds + owner_of(q, p) * apart + blocks[b] * LANES, s[LANES];
      for (int lane = 0; lane < LANES; lane++) least[lane] = INFINITY;
      for (int64_t r = row_of(c, blocks[b]); r < row_of(c, blocks[b] + 1); r++) {
        float most[LANES];
        for (int lane = 0; lane < LANES; lane++) most[lane] = -INFINITY;
        for (int64_t i = p; i < end; i++) {
          similarities(c, q, r, i, 5, s);
          for (int lane = 0; lane < LANES; lane++)
            if (s[lane] - q->least[i] > most[lane]) most[lane] = s[lane] - q->least[i];
        }
        for (int lane = 0; lane < LANES; lane++)
          if (most[lane] < least[lane]) least[lane] = most[lane];
      }
      for (int lane = 1; lane < LANES && blocks[b] >= c->first_wide; lane++)
        if (least[lane] < least[0]) least[0] = least[lane];
      for (int lane = 1; lane < LANES && blocks[b] >= c->first_wide; lane++) least[lane] = least[0];
    }
}

/* The sum that tables give for a code whose bytes lie `apart`. */
static int32_t looked_up(const uint8_t *code, int64_t bytes, int64_t apart, const uint8_t *tables) {
  int32_t sum = 0;
  for (int64_t j = 0; j < bytes; j++) {
    const uint8_t byte = code[j * apart], *table = tables + j / 4 * 128 + j % 4 * 16;
    sum += table[byte & 15] + table[64 + (byte >> 4)];
  }
  return sum;
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
