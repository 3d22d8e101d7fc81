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
                            /* a line has 4 dimensions at 8 bits; 8 at 4 bits, two to a byte */
} Codes;

typedef struct {
  int64_t rows;         /* query rows: one per person, or one per example; those of a query follow each other */
  const int8_t *codes;  /* rows x stride */
  int64_t stride;       /* bytes per query row */
  const int32_t *start; /* first value of each row's accumulator: minus the codes' offset */
  const float *step;    /* similarity = scale * (step * sum + slack) is an upper bound */
  const float *slack;
  const float *weight;  /* of the row's probability in the bound */
  const int64_t *owner; /* the query of each row, for scans */
  float w, threshold, inflate;
} Query;

/* Upper bounds of all items in a range of blocks (of items, for one bit): query i's begin at bounds + i * apart. */
typedef void (*scan_function)(const Codes *, const Query *, int64_t first, int64_t last, float *bounds, int64_t apart);

extern scan_function scan8, scan4, scan1;
int best_level(void);
void use_level(int level);

/* All eight bits of every element, row by row: a float32 scale, then `width` bytes. */
typedef struct {
  const uint8_t *rows;
  int64_t width;
  const int64_t *offsets; /* item i has rows offsets[i] .. offsets[i + 1] */
} Rows8;

typedef void (*refine_function)(const Rows8 *, const Query *, const int64_t *items, int64_t n, float *bounds);

/* bounds[i] becomes the bound of items[i], tighter than that of a scan over fewer bits */
extern refine_function refine;

/* Indices i with bounds[i] >= low, at most `room` of them; returns how many there are in all. */
typedef int64_t (*collect_function)(const float *bounds, int64_t n, float low, int64_t *out, int64_t room);

extern collect_function collect;

#define TOUCHED 64 /* items whose pages are looked up together */

/* Load from the first and last row of items. They lie in pages whose addresses the processor does not know yet: plain
 * loads let it look up several at once, while a prefetch of such a page is of no use. */
static inline void touch(const uint8_t *rows, int64_t row_bytes, const int64_t *offsets, const int64_t *items, int64_t n) {
  const volatile uint8_t *loaded = rows;
  for (int64_t i = 0; i < n && i < TOUCHED; i++) {
    int64_t from = offsets[items[i]] * row_bytes, to = offsets[items[i] + 1] * row_bytes;
    if (from < to) (void)loaded[from], (void)loaded[to - 1];
  }
}

/* exp(x) for |x| <= 80, relative error below 3e-7: 2^n times a polynomial on [-ln2/2, ln2/2]. */
static inline float quick_exp(float x) {
  float n = (float)(int32_t)(x * 1.44269504f + (x >= 0 ? 0.5f : -0.5f));
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float y = 1.0f + r * (1.0f + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720))))));
  union {
    float f;
    int32_t i;
  } u = {y};
  u.i += (int32_t)n << 23;
  return u.f;
}

/* sigmoid(w * (similarity - threshold) + inflate) */
static inline float probability(float similarity, float w, float threshold, float inflate) {
  float z = w * (similarity - threshold) + inflate;
  if (z > 80.0f) z = 80.0f;
  if (z < -80.0f) z = -80.0f;
  return 1.0f / (1.0f + quick_exp(-z));
}

#endif
