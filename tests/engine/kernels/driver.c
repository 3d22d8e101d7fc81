/* Runs the kernels over the cases of a file and says where they differ from what the NumPy reference expects.
 *
 * It needs no Python, so that kernels can be tried on any processor that can be emulated. The file is written by
 * cases.py: cases of a kind and a number of arrays, each with its length in bytes before it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "match.h"

enum { SCAN, COLLECT, PACK, PACK_CODES, EVALUATE, SET_SIMILARITIES };
#define MOST_ARRAYS 20

typedef struct {
  int64_t kind, count, bytes[MOST_ARRAYS];
  void *array[MOST_ARRAYS]; /* each allocated on its own, so that a sanitizer sees its end */
} Case;

static int64_t read_number(FILE *file) {
  int64_t number;
  return fread(&number, sizeof number, 1, file) == 1 ? number : -1;
}

static int read_case(FILE *file, Case *c) {
  c->kind = read_number(file);
  c->count = read_number(file);
  if (c->count < 0 || c->count > MOST_ARRAYS) return 0;
  for (int64_t i = 0; i < c->count; i++) {
    c->bytes[i] = read_number(file);
    if (c->bytes[i] < 0) exit(2);
    c->array[i] = malloc((size_t)c->bytes[i]);
    if (fread(c->array[i], 1, (size_t)c->bytes[i], file) != (size_t)c->bytes[i]) exit(2);
  }
  return 1;
}

static void free_case(Case *c) {
  for (int64_t i = 0; i < c->count; i++) free(c->array[i]);
}

static int near(double found, double expected, double tolerance) {
  if (isnan(expected)) return isnan(found); /* not written */
  return fabs(found - expected) <= tolerance * fabs(expected) + tolerance * 1e-2;
}

static int64_t floats_off(const float *found, const float *expected, int64_t n, double tolerance) {
  int64_t off = 0;
  for (int64_t i = 0; i < n; i++) off += !near(found[i], expected[i], tolerance);
  return off;
}

static int64_t doubles_off(const double *found, const double *expected, int64_t n, double tolerance) {
  int64_t off = 0;
  for (int64_t i = 0; i < n; i++) off += !near(found[i], expected[i], tolerance);
  return off;
}

static int64_t scan_off(const Case *c) {
  const int64_t *meta = c->array[0], rows = meta[1];
  const float *terms = c->array[8], *logistic = c->array[11];
  const scan_function scans[] = {kernels->scan8,  kernels->scan4,  kernels->scan5,     kernels->scan9,
                                 kernels->upper8, kernels->least5, kernels->scan1_rows};
  if (!scans[meta[0]]) return 0; /* this level reads all nine bits */
  Codes codes = {c->array[1], c->array[3], c->array[2], c->array[4], c->bytes[5] ? c->array[5] : NULL,
                 meta[3],     meta[4],     meta[2], 0};
  Query query = {rows,         c->array[6],      c->bytes[6] / rows, c->array[7],      terms,
                 terms + rows, terms + 2 * rows, terms + 3 * rows,   terms + 4 * rows, terms + 5 * rows,
                 terms + 6 * rows, c->array[9],  logistic[0],        logistic[1],      logistic[2]};
  float *bounds = malloc((size_t)c->bytes[12]);
  memset(bounds, 0xff, (size_t)c->bytes[12]); /* NaN */
  scans[meta[0]](&codes, &query, c->array[10], c->bytes[10] / 8, bounds, meta[5]);
  int64_t off = floats_off(bounds, c->array[12], c->bytes[12] / 4, scans[meta[0]] == kernels->least5 ? 1e-4 : 3e-6);
  free(bounds);
  return off;
}

static int64_t collect_off(const Case *c) {
  const int64_t *meta = c->array[0], *expected = c->array[3], room = meta[0], total = meta[1];
  int64_t *out = malloc((size_t)(room + 1) * 8), off = 0;
  const int64_t found = kernels->collect(c->array[1], c->bytes[1] / 4, *(float *)c->array[2], out, room);
  for (int64_t i = 0; i < c->bytes[3] / 8; i++) off += out[i] != expected[i];
  free(out);
  return off + (found != total);
}

static int64_t pack_off(const Case *c) {
  const int64_t *meta = c->array[0];
  const Elements elements = {c->array[1], (int)meta[0], meta[1], NULL};
  uint8_t *codes = malloc((size_t)c->bytes[3]), *expected = c->array[3];
  float *scales = malloc((size_t)c->bytes[4]);
  double norms[2] = {0, 0};
  int64_t off = pack(&elements, c->array[2], c->bytes[4] / 64, codes, scales, norms) != 0;
  for (int64_t i = 0; i < c->bytes[3]; i++) off += codes[i] != expected[i];
  off += floats_off(scales, c->array[4], c->bytes[4] / 4, 0) + doubles_off(norms, c->array[5], 2, 1e-5);
  free(codes), free(scales);
  return off;
}

static int64_t pack_codes_off(const Case *c) {
  const int64_t *meta = c->array[0], rows = c->bytes[2] / 8 / LANES;
  const Elements elements = {c->array[1], (int)meta[0], meta[1], NULL};
  uint8_t *codes = malloc((size_t)c->bytes[3]), *expected = c->array[3];
  uint16_t *norms = malloc((size_t)c->bytes[4]), *expected_norms = c->array[4];
  int64_t off = pack_codes(&elements, c->array[2], rows, (int)meta[2], codes, norms) != 0;
  for (int64_t i = 0; i < c->bytes[3]; i++) off += codes[i] != expected[i];
  for (int64_t i = 0; i < c->bytes[4] / 2; i++) off += abs(norms[i] - expected_norms[i]) > 1;
  free(codes), free(norms);
  return off;
}

static int64_t evaluate_off(const Case *c) {
  const int64_t *meta = c->array[0], dim = meta[1], size = meta[2], n = c->bytes[5] / 8;
  const double *logistic = c->array[6]; /* w and b, the shifts, the least similarities */
  const Elements elements = {c->array[1], (int)meta[0], dim, c->array[2]};
  const QuerySet query = {c->array[3], (dim + 7) / 8 * 8, size, c->array[4], (int)meta[3], meta[4],
                          logistic[0], logistic[1], logistic + 2, logistic + 2 + size};
  void *out[7]; /* score, sum of similarities, similarities, elements, matched, unmatched, unwanted */
  for (int i = 0; i < 7; i++) out[i] = malloc((size_t)c->bytes[7 + i]);
  Scores scores = {out[0], out[1], out[2], out[3], out[4], out[5], out[6]};
  int64_t off = evaluate(&elements, &query, c->array[5], n, &scores) != 0;
  for (int i = 0; i < 7; i++) {
    if (i < 3) off += doubles_off(out[i], c->array[7 + i], c->bytes[7 + i] / 8, 1e-10);
    if (i >= 3) off += memcmp(out[i], c->array[7 + i], (size_t)c->bytes[7 + i]) != 0;
    free(out[i]);
  }
  return off;
}

static int64_t set_similarities_off(const Case *c) {
  const int64_t *meta = c->array[0], dim = meta[1];
  const SetRows rows = {c->array[1], c->bytes[2] ? c->array[2] : NULL, (int)meta[0], dim, meta[2]};
  double *out = malloc((size_t)c->bytes[5]);
  int64_t off =
      set_similarities(&rows, c->array[3], meta[3], (dim + 7) / 8 * 8, c->array[4], c->bytes[4] / 8, out) != 0;
  off += doubles_off(out, c->array[5], c->bytes[5] / 8, 1e-10);
  free(out);
  return off;
}

int main(int argc, char **argv) {
  static int64_t (*const off_by[])(const Case *) = {scan_off,       collect_off,  pack_off,
                                                    pack_codes_off, evaluate_off, set_similarities_off};
  static const char *const names[] = {"scan", "collect", "pack", "pack_codes", "evaluate", "set_similarities"};
  int wrong = 0;
  for (int level = 0; level < count_levels(); level++) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) return fprintf(stderr, "usage: %s CASES, a file written by cases.py\n", argv[0]), 2;
    kernels = &LEVELS[level];
    Case c;
    int cases = 0, differ = 0;
    for (; read_case(file, &c); cases++, free_case(&c)) {
      const int64_t off = off_by[c.kind](&c), *meta = c.array[0];
      if (off)
        printf("%s: case %d, %s (%" PRId64 ", %" PRId64 ", %" PRId64 "): %" PRId64 " numbers differ\n", kernels->name,
               cases, names[c.kind], meta[0], meta[1], meta[2], off);
      differ += off != 0;
    }
    fclose(file);
    printf("%s: %d cases, %d differ\n", kernels->name, cases, differ);
    wrong |= differ || !cases;
  }
  return wrong;
}
