/* Exact scores of chosen items: float64 dots of the stored vectors, greedy one-to-one matching or the sum of maxima. */
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
  const double *rows;       /* (first_row[size] + without) x padded dimension */
  int64_t padded;           /* dimension rounded up to a multiple of 8 */
  int64_t size;             /* number of query elements */
  const int64_t *first_row; /* size + 1: rows of each query element's examples */
  int combine;              /* how several examples give one score */
  int64_t without;          /* rows after the query elements': no element of an item may match these */
  double w, b; /* of the logistic; without a steepness w the score is the sum of maxima, of similarities themselves */
  const double *shift; /* size: added to a query element's similarities where they are scored and ordered */
  const double *least; /* size + without: the similarity from which each is matched */
} QuerySet;

typedef struct {
  double *score, *similarity_sum; /* n */
  double *similarity;             /* n x size, 0 where unmatched */
  int32_t *element;               /* n x size, -1 where unmatched */
  int32_t *matched;               /* n: pairs from their query element's least similarity on */
  uint8_t *unmatched, *unwanted;  /* n: an element matches no query element; one matches a row of without */
} Scores;

/* Return 0, or -1 when memory ran out. */
int evaluate(const Elements *elements, const QuerySet *query, const int64_t *items, int64_t n, Scores *out);

/* Greedy one-to-one matching of n tables of size x elements similarities: the element of each query element,
 * -1 where there are fewer elements. Return 0, or -1 when memory ran out. */
int greedy(const double *similarity, int64_t n, int64_t size, int64_t elements, int32_t *element);

/* Quantise the rows named by slots (-1: empty lane) to 8 bits and interleave them as the scan reads them. norms become
 * the largest squared norm of a residual and of a code. */
int pack(const Elements *elements, const int64_t *slots, int64_t rows, uint8_t *codes, float *scales, double *norms);

/* The same to five bits, with the NORMS of each, or to the four bits below them, with the residuals of all nine. */
int pack_codes(const Elements *elements, const int64_t *slots, int64_t rows, int fine, uint8_t *codes, uint16_t *norms);

/* Rows of set vectors, one after another: stored floats, or codes of 8, 4 and 1 bit that mean level * scale. */
typedef struct {
  const uint8_t *codes;
  const float *scales; /* NULL for floats */
  int bits;
  int64_t dim, width; /* bytes per row */
} SetRows;

/* out[i * count + p] = rows[items[i]] . query[p]; queries are padded like QuerySet.rows. */
int set_similarities(const SetRows *rows, const double *query, int64_t count, int64_t padded, const int64_t *items,
                     int64_t n, double *out);

#endif
