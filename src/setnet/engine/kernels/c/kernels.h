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
#if defined(__aarch64__) && defined(__GNUC__) && !defined(__AARCH64EB__)
#define HAVE_NEON 1
#include <arm_neon.h>
#else
#define HAVE_NEON 0
#endif
/* an older clang knows the dot product only where it may use it everywhere */
#if HAVE_NEON && (!defined(__clang__) || __clang_major__ >= 17 || defined(__ARM_FEATURE_DOTPROD))
#define HAVE_NEON_DOT 1
#else
#define HAVE_NEON_DOT 0
#endif

/* Functions that the compiler makes vectors of, for each instruction set. */
#if HAVE_X86
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2,fma", "arch=x86-64-v4")))
#else
#define VECTOR_CLONES
#endif
#if defined(__APPLE__) || (defined(__clang__) && !defined(__linux__))
#undef VECTOR_CLONES
#define VECTOR_CLONES
#endif

/* Codes of five bits lie in panels of 32 dimensions: a line of fifth bits, then four lines of the lower halves, eight
 * dimensions each, two to a byte. Bit (4 + g) % 8 of byte j in the line of bits is that of dimension 4 g + j. Four bits
 * more for each dimension, four lines to a panel, make codes of nine bits of them. */
#define PANEL 32

/* An upper half of a float32 is stored where 16 bits are enough. Each row of 5-bit codes has these of its lanes: */
enum { SCALE, RESIDUAL, NORM, NORMS }; /* |stored - scale * code| and |scale * code| at most */

typedef struct {
  const uint8_t *codes;       /* rows x groups x LINE; one bit: items x groups */
  const uint8_t *fine;        /* four bits more for codes of five: rows x groups * 4 / 5 x LINE */
  const void *scales;         /* float32, one per lane of each row; of five bits NORMS upper halves per lane */
  const uint16_t *fine_norms; /* residuals of codes of nine bits, upper halves, one per lane of each row */
  const int64_t *row_start;   /* blocks + 1; NULL when every block has one row */
  int64_t first_wide;         /* from this block on all lanes are elements of one item; -1: one bit row by row */
  int64_t items;              /* rows of one-bit codes without blocks */
  int64_t groups;             /* lines per row (8, 5 and 4 bit), or bytes per item (1 bit) */
                              /* a line has 4 dimensions at 8 bits; 8 at 4 bits, two to a byte */
  int64_t ahead;              /* rows from each one to that which is fetched meanwhile; 0 where all follow each other */
} Codes;

typedef struct {
  int64_t rows;         /* query rows: one per query element, or one per example; those of a query follow each other */
  const int8_t *codes;  /* rows x stride; against one bit: tables of sums, see scan1 */
  int64_t stride;       /* bytes per query row */
  const int32_t *start; /* first value of each row's accumulator: minus the codes' offset */
  const float *step;    /* similarity = scale * (step * sum + slack) is an upper bound; of codes of five and nine */
  const float *slack;   /* bits + length * residual + lost * norm */
  const float *shift;   /* added to the similarity, one bit only: the row's similarity to the codes' centre */
  const float *weight;  /* of the row's probability in the bound */
  const float *length;  /* of the row */
  const float *lost;    /* length of what the row's codes leave out */
  const float *least;   /* similarity from which the row is matched */
  const int64_t *owner; /* the query of each row, for scans */
  float w, threshold, inflate; /* see `probability` */
} Query;

/* Upper bounds of all lanes of n blocks: query i's begin at bounds + i * apart. Items stored row by row, one bit each
 * dimension, are taken 16 to a block; of the last block only the items there are get bounds.
 *
 * Codes of one bit are looked up, four bits at a time. Four bytes of a code have 8 tables of 16 sums below 64: those of
 * the low halves of the bytes, then those of the high halves. Where the tables hold estimates, so do the bounds. */
typedef void (*scan_function)(const Codes *, const Query *, const int64_t *blocks, int64_t n, float *bounds,
                              int64_t apart);

/* The same scan, but instead of bounds it writes by how much the least similar element of a lane reaches the least
 * similarity of whatever row of the query it reaches by most: below zero, an element of the item is unmatched. */

/* Indices i with bounds[i] >= low, at most `room` of them; returns how many there are in all. */
typedef int64_t (*collect_function)(const float *bounds, int64_t n, float low, int64_t *out, int64_t room);

typedef struct ListKernels ListKernels; /* see lists.h */

/* The kernels of an instruction set. */
typedef struct {
  const char *name;
  scan_function scan8, scan4, scan5, scan9; /* bytes, halves of bytes, five and nine bits */
  scan_function upper8;                     /* the upper eight of nine bits; 0 where nine are as fast */
  scan_function scan1_rows;                 /* bits row by row */
  scan_function least5;                     /* five bits: whether all elements may be matched */
  collect_function collect;
  const ListKernels *lists;
} Kernels;

extern const Kernels LEVELS[]; /* slowest first */
extern const Kernels *kernels; /* those in use; one of LEVELS */
int count_levels(void);        /* how many of LEVELS this processor has, from the first on */

#define PAGES 64 /* items whose pages are looked up together */
#define TOGETHER 8 /* items whose rows are loaded together */

/* Without offsets an item is one row. */
static inline int64_t first_row(const int64_t *offsets, int64_t item) { return offsets ? offsets[item] : item; }

/* Before item i of n is looked at: bring its rows near, with those of the items that follow it. They are scattered over
 * the file. Loads that nothing waits for run side by side, first one or two per item to find the pages, then all; a
 * prefetch of a page whose address the processor does not know yet is of no use. */
static inline void fetch(const void *rows, int64_t row_bytes, const int64_t *offsets, const int64_t *items, int64_t i,
                         int64_t n) {
  const volatile uint8_t *loaded = rows;
  for (int64_t j = i; i % PAGES == 0 && j < n && j < i + PAGES; j++) {
    int64_t from = first_row(offsets, items[j]) * row_bytes, to = first_row(offsets, items[j] + 1) * row_bytes;
    if (from < to) (void)loaded[from], (void)loaded[to - 1];
  }
  for (int64_t j = i; i % TOGETHER == 0 && j < n && j < i + TOGETHER; j++) {
    int64_t from = first_row(offsets, items[j]) * row_bytes, to = first_row(offsets, items[j] + 1) * row_bytes;
    if (to - from > 8192) to = from + 8192;
    for (; from < to; from += LINE) (void)loaded[from];
  }
}

#define UNBOUNDED 3e38f /* more than any similarity: also that of a NaN, whose bound must not be missed */

/* exp(x) for |x| <= 80, relative error below 3e-7: 2^n times a polynomial on [-ln2/2, ln2/2]. */
static inline float quick_exp(float x) {
  float n = (float)(int32_t)(x * 1.44269504f + (x >= 0 ? 0.5f : -0.5f));
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float y = 1.0f + r * (1.0f + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720))))));
  union {
    float f;
    uint32_t i;
  } u = {y};
  u.i += (uint32_t)(int32_t)n << 23; /* unsigned: the shift of a negative number is undefined */
  return u.f;
}

/* sigmoid(w * (similarity - threshold) + inflate); without a steepness w the similarity itself, where it is above zero:
 * sums of maxima are linear. */
static inline float probability(float similarity, float w, float threshold, float inflate) {
  if (w == 0) return similarity > 0 ? similarity < UNBOUNDED ? similarity : UNBOUNDED : similarity <= 0 ? 0 : UNBOUNDED;
  float z = w * (similarity - threshold) + inflate;
  if (!(z <= 80.0f)) z = 80.0f; /* a NaN too: its bound must not be missed */
  if (z < -80.0f) z = -80.0f;
  return 1.0f / (1.0f + quick_exp(-z));
}

#endif
