/* Shared declarations of the hot kernels.
 *
 * Codes are stored in blocks of 16 lanes. A row of a block holds one element (or one set vector) per lane,
 * dimensions in groups of four bytes: line g of a row is 16 lanes x 4 bytes, so that one SIMD lane is one
 * item and no horizontal sum is ever needed.
 */
#ifndef SETNET_KERNELS_H
#define SETNET_KERNELS_H

#include <stdint.h>

#define LANES 16
#define LINE 64 /* bytes: 16 lanes x 4 */

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86 1
#include <immintrin.h>
#else
#define HAVE_X86 0
#endif

enum { LEVEL_PORTABLE = 0, LEVEL_AVX2 = 1, LEVEL_AVX512 = 2 };

typedef struct {
  const uint8_t *codes;     /* rows x groups x LINE, or items x groups x 8 for one bit */
  const float *scales;      /* one per lane of each row */
  const int64_t *row_start; /* blocks + 1; NULL when every block has one row */
  int64_t first_wide;       /* from this block on all lanes are elements of one item */
  int64_t groups;           /* lines per row (8 and 4 bit) or 64-bit words per item (1 bit) */
} Codes;

typedef struct {
  int64_t rows;         /* query rows: one per person, or one per example */
  const int8_t *codes;  /* rows x stride */
  int64_t stride;       /* bytes per query row */
  const int32_t *start; /* first value of each row's accumulator: minus the codes' offset */
  const float *step;    /* similarity = scale * (step * sum + slack) is an upper bound */
  const float *slack;
  const float *weight; /* of the row's probability in the bound */
  float w, threshold, inflate;
} Query;

typedef void (*scan_function)(const Codes *, const Query *, int64_t first, int64_t last, float *bounds);

extern scan_function scan8, scan4, scan1;
int best_level(void);
void use_level(int level);

/* sum of weight * sigmoid(w * (similarity - threshold) + inflate), for one value */
float probability(float similarity, float w, float threshold, float inflate);

#endif
