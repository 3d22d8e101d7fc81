#include "match.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if HAVE_NEON
static float half_to_float(uint16_t h) { /* one instruction, of which the compiler makes vectors */
  __fp16 x;
  memcpy(&x, &h, sizeof x);
  return (float)x;
}
#else
static float half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023, bits;
  if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
  bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
#endif

typedef double double8 __attribute__((vector_size(64)));

/* Dot products of a row, widened before, with `count` query rows. Two sums of eight lanes each, in a fixed order: the
 * same pair of vectors gives the same bits wherever it is stored and however many are taken together. */
__attribute__((always_inline)) static inline void some_dots(const double *row, int64_t whole, int64_t dim,
                                                            const double *query, int count, int64_t padded, double *out,
                                                            int64_t stride) {
  double8 s[4] = {{0}}, t[4] = {{0}}, x, y, q;
  int64_t d = 0;
  for (; d + 16 <= whole; d += 16) {
    memcpy(&x, row + d, sizeof x), memcpy(&y, row + d + 8, sizeof y);
#pragma GCC unroll 4
    for (int p = 0; p < count; p++) {
      memcpy(&q, query + p * padded + d, sizeof q);
      s[p] += x * q;
      memcpy(&q, query + p * padded + d + 8, sizeof q);
      t[p] += y * q;
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < count; p++) {
    const double *rest = query + p * padded;
    if (d < whole) {
      memcpy(&x, row + d, sizeof x), memcpy(&q, rest + d, sizeof q);
      s[p] += x * q;
    }
    s[p] += t[p];
    for (int64_t e = whole; e < dim; e++) s[p][e - whole] += row[e] * rest[e];
    const double8 a = s[p];
    out[p * stride] = ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7]));
  }
}

/* Numbers that begin where a line of the cache does: loads that lie in two lines take twice as long. */
static double *aligned(int64_t n) { return aligned_alloc(LINE, ((size_t)n * sizeof(double) + LINE - 1) / LINE * LINE); }

/* Dot products of a row with all query rows; `wide` has room for the row in float64. */
VECTOR_CLONES static void dots(const float *row, int64_t dim, const double *query, int64_t count, int64_t padded,
                               double *restrict wide, double *out, int64_t stride) {
  const int64_t whole = dim / 8 * 8;
  int64_t p = 0;
  for (int64_t d = 0; d < dim; d++) wide[d] = (double)row[d];
  for (; p + 4 <= count; p += 4) some_dots(wide, whole, dim, query + p * padded, 4, padded, out + p * stride, stride);
  for (; p + 2 <= count; p += 2) some_dots(wide, whole, dim, query + p * padded, 2, padded, out + p * stride, stride);
  if (p < count) some_dots(wide, whole, dim, query + p * padded, 1, padded, out + p * stride, stride);
}

/* The row as float32: in place, or decoded into `space`. */
static const float *row_of(const Elements *e, int64_t row, float *space) {
  if (!e->half) return (const float *)e->rows + row * e->dim;
  const uint16_t *from = (const uint16_t *)e->rows + row * e->dim;
  for (int64_t d = 0; d < e->dim; d++) space[d] = half_to_float(from[d]);
  return space;
}

static double sigmoid(double z) {
  if (z >= 0) return 1.0 / (1.0 + exp(-z));
  double e = exp(z);
  return e / (1.0 + e);
}

static double share_of(const QuerySet *q, int64_t p, double s) {
  s += q->shift[p];
  return q->w == 0 ? s : sigmoid(q->w * s + q->b);
}

/* Fold the example similarities of query element p into one pair: `key` orders the greedy matching. */
static void combine(const QuerySet *q, int64_t p, const double *sims, int64_t elements, double *key, double *similarity) {
  int64_t from = q->first_row[p], to = q->first_row[p + 1];
  int mean = q->combine == COMBINE_MEAN;
  for (int64_t f = 0; f < elements; f++) {
    double total = 0, prob = 0, top = -INFINITY;
    for (int64_t r = from; r < to; r++) {
      double s = sims[r * elements + f];
      total += s;
      if (mean) prob += share_of(q, p, s);
      if (s > top) top = s;
    }
    key[p * elements + f] = mean ? prob / (double)(to - from) : top + q->shift[p];
    similarity[p * elements + f] = mean ? total / (double)(to - from) : top;
  }
}

static int shifted(const QuerySet *q) {
  for (int64_t p = 0; p < q->size; p++)
    if (q->shift[p] != 0) return 1;
  return 0;
}

/* The most similar free element, the first of equals; -1 when none is left. */
static int64_t best_free(const double *key, int64_t elements, const uint8_t *taken) {
  int64_t best = -1;
  for (int64_t f = 0; f < elements; f++)
    if (!taken[f] && (best < 0 || key[f] > key[best])) best = f;
  return best;
}

/* Room for the matching of one item: which elements are taken, each query element's best, who was accepted when. */
typedef struct {
  uint8_t *taken;
  int64_t *best, *order;
} Matching;

static int make_matching(Matching *m, int64_t size, int64_t elements) {
  m->taken = malloc((size_t)elements + 1);
  m->best = malloc(sizeof(int64_t) * (size_t)(2 * size + 1));
  m->order = m->best + size;
  return !m->taken || !m->best;
}

static void free_matching(Matching *m) { free(m->taken), free(m->best); }

/* Accept pairs in decreasing order of key (ties: first query element, first element) while both sides are free.
 * Returns their number; m->order holds the query elements as they were accepted. */
static int64_t greedy_pairs(const double *key, int64_t size, int64_t elements, Matching *m, int32_t *element) {
  memset(m->taken, 0, (size_t)elements);
  for (int64_t p = 0; p < size; p++) {
    element[p] = -1;
    m->best[p] = best_free(key + p * elements, elements, m->taken);
  }
  int64_t rounds = size < elements ? size : elements;
  for (int64_t round = 0; round < rounds; round++) {
    int64_t who = -1;
    for (int64_t p = 0; p < size; p++)
      if (element[p] < 0 && (who < 0 || key[p * elements + m->best[p]] > key[who * elements + m->best[who]])) who = p;
    int64_t f = m->best[who];
    m->order[round] = who;
    element[who] = (int32_t)f;
    m->taken[f] = 1;
    if (round + 1 < rounds)
      for (int64_t p = 0; p < size; p++)
        if (element[p] < 0 && m->best[p] == f) m->best[p] = best_free(key + p * elements, elements, m->taken);
  }
  return rounds;
}

/* Give each query element its most similar element, whoever else has it; in falling order of key, as `greedy_pairs`. */
static int64_t maxima(const double *key, int64_t size, int64_t elements, Matching *m, int32_t *element) {
  memset(m->taken, 0, (size_t)elements);
  for (int64_t p = 0; p < size; p++) {
    int64_t at = p;
    const int64_t best = best_free(key + p * elements, elements, m->taken);
    element[p] = (int32_t)best;
    for (; at > 0 && key[m->order[at - 1] * elements + element[m->order[at - 1]]] < key[p * elements + best]; at--)
      m->order[at] = m->order[at - 1];
    m->order[at] = p;
  }
  return size;
}

int greedy(const double *similarity, int64_t n, int64_t size, int64_t elements, int32_t *element) {
  Matching m;
  int failed = make_matching(&m, size, elements);
  for (int64_t i = 0; i < n && !failed; i++)
    greedy_pairs(similarity + i * size * elements, size, elements, &m, element + i * size);
  free_matching(&m);
  return failed ? -1 : 0;
}

/* Score item i by its pairs; sums run in the order of acceptance, whatever the order of the query. */
static void match(const QuerySet *q, const double *key, const double *similarity, int64_t elements, Matching *m,
                  int64_t i, Scores *out) {
  double *sims = out->similarity + i * q->size, score = 0, sum = 0;
  int32_t *element = out->element + i * q->size, matched = 0;
  int64_t pairs = (q->w == 0 ? maxima : greedy_pairs)(key, q->size, elements, m, element);
  memset(sims, 0, sizeof(double) * (size_t)q->size);
  for (int64_t at = 0; at < pairs; at++) {
    int64_t who = m->order[at], pair = who * elements + element[who];
    double s = sims[who] = similarity[pair];
    score += q->combine == COMBINE_MEAN ? key[pair] : share_of(q, who, s);
    sum += s;
    matched += s >= q->least[who];
  }
  out->score[i] = score;
  out->similarity_sum[i] = sum;
  out->matched[i] = matched;
}

static void conditions(const QuerySet *q, const double *similarity, const double *sims, int64_t rows, int64_t elements,
                       int64_t i, Scores *out) {
  const double *least = q->least, *unwanted = q->least + q->size;
  out->unmatched[i] = out->unwanted[i] = 0;
  for (int64_t f = 0; f < elements; f++) {
    int known = 0;
    for (int64_t p = 0; p < q->size && !known; p++) known = similarity[p * elements + f] >= least[p];
    if (!known) out->unmatched[i] = 1;
    for (int64_t r = rows; r < rows + q->without; r++)
      if (sims[r * elements + f] >= unwanted[r - rows]) out->unwanted[i] = 1;
  }
}

int evaluate(const Elements *e, const QuerySet *q, const int64_t *items, int64_t n, Scores *out) {
  int64_t most = 1, rows = q->first_row[q->size], all = rows + q->without;
  for (int64_t i = 0; i < n; i++) {
    int64_t elements = e->offsets[items[i] + 1] - e->offsets[items[i]];
    if (elements > most) most = elements;
  }
  float *row = malloc(sizeof(float) * (size_t)e->dim);
  double *wide = aligned(e->dim), *query = aligned(all * q->padded);
  double *sims = malloc(sizeof(double) * (size_t)(most * all));
  double *key = malloc(sizeof(double) * (size_t)(most * q->size * 2));
  Matching m;
  int failed = make_matching(&m, q->size, most) || !row || !wide || !query || !sims || !key;
  if (!failed) memcpy(query, q->rows, sizeof(double) * (size_t)(all * q->padded));
  const int folds = q->combine != COMBINE_NONE || shifted(q);
  for (int64_t i = 0; i < n && !failed; i++) {
    fetch(e->rows, e->dim * (e->half ? 2 : 4), e->offsets, items, i, n);
    int64_t first = e->offsets[items[i]], elements = e->offsets[items[i] + 1] - first;
    for (int64_t f = 0; f < elements; f++)
      dots(row_of(e, first + f, row), e->dim, query, all, q->padded, wide, sims + f, elements);
    const double *pair_key = sims, *pair_similarity = sims;
    if (folds) {
      double *similarity = key + most * q->size;
      for (int64_t p = 0; p < q->size; p++) combine(q, p, sims, elements, key, similarity);
      pair_key = key;
      pair_similarity = similarity;
    }
    match(q, pair_key, pair_similarity, elements, &m, i, out);
    conditions(q, pair_similarity, sims, rows, elements, i, out);
  }
  free(row), free(wide), free(query), free(sims), free(key), free_matching(&m);
  return failed ? -1 : 0;
}

/* ---- codes for the scan -------------------------------------------------------------------------------- */

VECTOR_CLONES static float peak_of(const float *x, int64_t dim) {
  float peak[16] = {0};
  int64_t d = 0;
  for (; d + 16 <= dim; d += 16)
    for (int j = 0; j < 16; j++) peak[j] = fabsf(x[d + j]) > peak[j] ? fabsf(x[d + j]) : peak[j];
  for (; d < dim; d++) peak[0] = fabsf(x[d]) > peak[0] ? fabsf(x[d]) : peak[0];
  for (int j = 1; j < 16; j++) peak[0] = peak[j] > peak[0] ? peak[j] : peak[0];
  return peak[0];
}

/* Codes of up to 16 entries; adds the squares of residual and code. */
__attribute__((always_inline)) static inline void quantise16(const float *x, int n, float scale, uint8_t *code,
                                                             float *lost, float *kept) {
  for (int j = 0; j < n; j++) {
    float y = x[j] / scale, level = nearbyintf(y);
    code[j] = (uint8_t)(int)(level + 128.0f);
    lost[j] += (y - level) * (y - level);
    kept[j] += level * level;
  }
}

/* Codes of a row, scaled by its largest entry; returns the scale. */
VECTOR_CLONES static float quantise(const float *x, int64_t dim, uint8_t *code, double *norms) {
  float lost[16] = {0}, kept[16] = {0}, peak = peak_of(x, dim), scale = (peak > 1e-30f ? peak : 1e-30f) / 127.0f;
  int64_t d = 0;
  for (; d + 16 <= dim; d += 16) quantise16(x + d, 16, scale, code + d, lost, kept);
  quantise16(x + d, (int)(dim - d), scale, code + d, lost, kept);
  double residual = 0, norm = 0;
  for (int j = 0; j < 16; j++) residual += lost[j], norm += kept[j];
  if (residual > norms[0]) norms[0] = residual;
  if (norm > norms[1]) norms[1] = norm;
  return scale;
}

int pack(const Elements *e, const int64_t *slots, int64_t rows, uint8_t *codes, float *scales, double *norms) {
  int64_t groups = (e->dim + 3) / 4;
  float *x = malloc(sizeof(float) * (size_t)e->dim);
  uint8_t *code = malloc((size_t)groups * 4);
  int failed = !x || !code;
  for (int64_t i = 0; i < rows * LANES && !failed; i++) {
    memset(code, 128, (size_t)groups * 4);
    scales[i] = slots[i] < 0 ? 0 : quantise(row_of(e, slots[i], x), e->dim, code, norms);
    uint8_t *out = codes + i / LANES * groups * LINE + i % LANES * 4;
    for (int64_t g = 0; g < groups; g++) memcpy(out + g * LINE, code + g * 4, 4);
  }
  free(x), free(code);
  return failed ? -1 : 0;
}

/* The upper half of the least float32 that has one and is not below x. */
static uint16_t upper_half(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return (uint16_t)((bits + 0xffff) >> 16);
}

/* Sums of squares of a row's residuals and codes, of five bits and of nine, in units of its scale. */
typedef struct {
  float lost[2], kept[2];
} Squares;

/* Codes of nine bits, 0 to 511: a code of five is its upper part, and each stands for the middle of its cell. */
VECTOR_CLONES static void cut(const float *x, int64_t dim, float scale, uint16_t *code, Squares *squares) {
  float sums[4][16] = {{0}};
  for (int64_t d = 0; d < dim; d += 16) {
    const int n = dim - d < 16 ? (int)(dim - d) : 16;
    for (int j = 0; j < n; j++) {
      const float y = x[d + j] / scale, floor = floorf(y), cell = floor > 255.0f ? 255.0f : floor;
      const float fine = cell + 0.5f, coarse = floorf(cell * 0.0625f) * 16.0f + 8.0f;
      code[d + j] = (uint16_t)(int)(cell + 256.0f);
      sums[0][j] += (y - coarse) * (y - coarse), sums[1][j] += (y - fine) * (y - fine);
      sums[2][j] += coarse * coarse, sums[3][j] += fine * fine;
    }
  }
  float totals[4] = {0};
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 16; j++) totals[i] += sums[i][j];
  *squares = (Squares){{totals[0], totals[1]}, {totals[2], totals[3]}};
}

/* Halves of bytes of eight dimensions in four bytes. */
static uint32_t halves_of(const uint16_t *code, int shift) {
  uint32_t both = 0;
  for (int j = 0; j < 4; j++)
    both |= ((uint32_t)(code[j] >> shift & 15) | (uint32_t)(code[4 + j] >> shift & 15) << 4) << 8 * j;
  return both;
}

static void store_panel(const uint16_t *code, uint8_t *out) {
  uint32_t bits = 0;
  for (int d = 0; d < PANEL; d++) bits |= (uint32_t)(code[d] >> 8) << (d % 4 * 8 + (4 + d / 4) % 8);
  memcpy(out, &bits, 4);
  for (int k = 0; k < 4; k++) {
    const uint32_t both = halves_of(code + k * 8, 4);
    memcpy(out + (1 + k) * LINE, &both, 4);
  }
}

static float norm_of(float squares, float scale) { return scale * (sqrtf(squares) * 1.0001f + 2e-3f); }

int pack_codes(const Elements *e, const int64_t *slots, int64_t rows, int fine, uint8_t *codes, uint16_t *norms) {
  const int64_t panels = (e->dim + PANEL - 1) / PANEL, lines = panels * (fine ? 4 : 5);
  const int each = fine ? 1 : NORMS;
  float *x = malloc(sizeof(float) * (size_t)e->dim);
  uint16_t *code = malloc(sizeof(uint16_t) * (size_t)(panels * PANEL));
  const int failed = !x || !code;
  for (int64_t i = 0; i < rows * LANES && !failed; i++) {
    const int64_t row = i / LANES, lane = i % LANES;
    uint8_t *out = codes + row * lines * LINE + lane * 4;
    uint16_t *to = norms + row * each * LANES + lane;
    memset(code, 0, sizeof(uint16_t) * (size_t)(panels * PANEL));
    for (int k = 0; k < each; k++) to[k * LANES] = 0;
    if (slots[i] >= 0) {
      const float *stored = row_of(e, slots[i], x), peak = peak_of(stored, e->dim);
      const uint16_t upper = upper_half((peak > 1e-30f ? peak : 1e-30f) / 256.0f);
      const uint32_t bits = (uint32_t)upper << 16;
      float scale;
      Squares squares;
      memcpy(&scale, &bits, 4);
      cut(stored, e->dim, scale, code, &squares);
      if (fine) {
        to[0] = upper_half(norm_of(squares.lost[1], scale));
      } else {
        to[SCALE * LANES] = upper;
        to[RESIDUAL * LANES] = upper_half(norm_of(squares.lost[0], scale));
        to[NORM * LANES] = upper_half(norm_of(squares.kept[0] > squares.kept[1] ? squares.kept[0] : squares.kept[1], scale));
      }
    }
    for (int64_t panel = 0; panel < panels; panel++) {
      if (!fine) store_panel(code + panel * PANEL, out + panel * 5 * LINE);
      for (int k = 0; k < 4 && fine; k++) {
        const uint32_t both = halves_of(code + panel * PANEL + k * 8, 0);
        memcpy(out + (panel * 4 + k) * LINE, &both, 4);
      }
    }
  }
  free(x), free(code);
  return failed ? -1 : 0;
}

/* ---- set vectors --------------------------------------------------------------------------------------- */

/* The eight signs of a byte as floats; filled by set_similarities' first caller, all of whom write the same. */
static float SIGNS[256][8];

static void fill_signs(void) {
  if (SIGNS[255][7] == 1.0f) return;
  for (int byte = 0; byte < 256; byte++)
    for (int bit = 0; bit < 8; bit++) SIGNS[byte][bit] = byte >> bit & 1 ? 1.0f : -1.0f;
}

VECTOR_CLONES static void widen(const uint8_t *bytes, int64_t n, float *restrict out) {
  for (int64_t d = 0; d < n; d++) out[d] = (float)(bytes[d] - 128);
}

/* The levels of a coded row, or the floats of a plain one. `space` has room for whole bytes and groups. */
static const float *set_row_of(const SetRows *rows, int64_t i, float *space) {
  const uint8_t *row = rows->codes + i * rows->width;
  if (rows->bits >= 16) {
    Elements plain = {rows->codes, rows->bits == 16, rows->dim, NULL};
    return row_of(&plain, i, space);
  }
  if (rows->bits == 8) widen(row, rows->width, space);
  for (int64_t at = 0; at < rows->width && rows->bits == 4; at += 4)
    for (int j = 0; j < 4; j++) {
      space[at * 2 + j] = (float)(row[at + j] & 15) - 7.5f;
      space[at * 2 + 4 + j] = (float)(row[at + j] >> 4) - 7.5f;
    }
  for (int64_t at = 0; at < rows->width && rows->bits == 1; at++) memcpy(space + at * 8, SIGNS[row[at]], 32);
  return space;
}

int set_similarities(const SetRows *rows, const double *query, int64_t count, int64_t padded, const int64_t *items,
                     int64_t n, double *out) {
  float *row = malloc(sizeof(float) * (size_t)(rows->dim + 64));
  double *wide = aligned(rows->dim);
  const int failed = !row || !wide;
  fill_signs();
  for (int64_t i = 0; i < n && !failed; i++) {
    fetch(rows->codes, rows->width, NULL, items, i, n);
    dots(set_row_of(rows, items[i], row), rows->dim, query, count, padded, wide, out + i * count, 1);
    for (int64_t p = 0; p < count && rows->bits < 16; p++) out[i * count + p] *= rows->scales[items[i]];
  }
  free(row), free(wide);
  return failed ? -1 : 0;
}
