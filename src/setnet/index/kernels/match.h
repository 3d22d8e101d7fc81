/* Exact scores of chosen items: float64 dots of the stored vectors, greedy one-to-one matching. */
#ifndef SETNET_MATCH_H
#define SETNET_MATCH_H

#include "kernels.h"

typedef struct {
  const void *rows; /* float32, or float16 when half */
  int half;
  int64_t dim;
  const int64_t *offsets; /* item i has rows offsets[i] .. offsets[i + 1] */
} Elements;

enum { COMBINE_NONE = 0, COMBINE_MEAN = 1, COMBINE_MAX = 2 };

typedef struct {
  const double *rows;   /* (person_start[people] + without) x padded dimension */
  int64_t padded;       /* dimension rounded up to a multiple of 8 */
  int64_t people;
  const int64_t *person_start; /* people + 1: rows of each person's examples */
  int combine;                 /* how a person's examples give one score */
  int64_t without;             /* rows after the people's: nobody may match these */
  double w, b;
} People;

typedef struct {
  double *score, *similarity_sum; /* n */
  double *similarity;             /* n x people, 0 where unmatched */
  int32_t *element;               /* n x people, -1 where unmatched */
  int32_t *matched;               /* n: pairs at or above the threshold */
  uint8_t *strangers, *unwanted;  /* n: an element matches nobody asked for; someone unwanted is there */
} Scores;

/* Return 0, or -1 when memory ran out. */
int evaluate(const Elements *elements, const People *people, const int64_t *items, int64_t n, Scores *out);

/* Quantise the elements named by slots (-1: empty lane) to 8 bits and interleave them as the scan reads them:
 * whole bytes, or the high nibbles only. norms become the largest squared norm of a residual and of a code. */
int pack(const Elements *elements, const int64_t *slots, int64_t rows, int high, uint8_t *codes, float *scales,
         double *norms);

/* The same codes row by row, each after its scale, for elements first .. first + n. */
int pack_rows(const Elements *elements, int64_t first, int64_t n, uint8_t *out, double *norms);

/* Rows of set vectors, one after another: stored floats, or codes of 8, 4 and 1 bit that mean level * scale. */
typedef struct {
  const uint8_t *codes;
  const float *scales; /* NULL for floats */
  int bits;
  int64_t dim, width; /* bytes per row */
} SetRows;

/* out[i * people + p] = rows[items[i]] . query[p]; queries are padded like People.rows. */
int set_similarities(const SetRows *rows, const double *query, int64_t people, int64_t padded, const int64_t *items,
                     int64_t n, double *out);

#endif
