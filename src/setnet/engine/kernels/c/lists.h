/* Inverted lists of elements, and the search for the items whose elements are most similar to a query's. */
#ifndef SETNET_LISTS_H
#define SETNET_LISTS_H

#include "scan.h"

/* Codes have four bits a dimension, 0 to 15 for the middles of 16 cells: code - 7.5 times a factor. A row has two
 * dimensions to a byte, the even one in the lower half, in units of four bytes; a block has the units of 16 rows side by
 * side, so that a SIMD lane is an element. */
typedef struct {
  int64_t units;           /* of a row: eight dimensions each */
  int64_t lists;           /* a multiple of LANES */
  const uint8_t *centres;  /* blocks of eight bits a dimension: the upper four bits of 16 centres, then the lower ones */
  const float *half_squares; /* of each centre: half its squared length over the centres' step */
  const int64_t *start;    /* lists + 1: the first block of each */
  const uint8_t *codes;    /* blocks x units x LINE */
  const uint16_t *factors; /* blocks x LANES: upper halves of floats */
  const int32_t *items;    /* blocks x LANES: the item of each element, -1 for none */
  const int64_t *offsets;  /* item i has the rows offsets[i] .. offsets[i + 1] */
  const uint8_t *rows;     /* the codes of all elements item by item */
  const uint16_t *row_factors;
  const uint8_t *is_open;  /* of each item: whether it may be found; NULL when all may */
} Lists;

typedef struct {
  int64_t rows;             /* examples of all query elements, one after another */
  int64_t size;             /* query elements */
  const int64_t *first_row; /* size + 1 */
  int combine;              /* how several examples count, see QuerySet */
  const int8_t *codes;      /* rows x 2 x units x 4: the even dimensions, then the odd ones */
  const int32_t *middle;    /* 15 times the sum of a row's codes: what twice a sum of products is too high by */
  const float *step;        /* similarity = step * factor * (2 * sum - middle) */
  const float *least;       /* of each row: the similarity of a match, in units of its step */
  const float *shift;       /* size: added to a query element's similarities */
  float w, threshold;
} ListQuery;

typedef struct {
  int64_t probes;     /* lists to read for each row */
  int64_t wanted;     /* elements to take from them for each row, at least; and all that match, up to MATCHES */
  int64_t candidates; /* items to return */
} Effort;

#define MATCHES 16384

/* Elements whose similarity, in units of the query's step, reaches a floor. */
typedef struct {
  uint64_t *keys; /* see `key_of` */
  int64_t found, room;
  float floor;
} Nearest;

/* A row of a query. */
typedef struct {
  const int8_t *even, *odd;
  int32_t middle;
} Row;

/* what an instruction set has to do */
#define CENTRE_SUMS(name) void name(const Lists *l, const Row *q, int32_t *sums)
#define NEAR_BLOCKS(name) int64_t name(const Lists *l, const Row *q, int64_t block, int64_t end, Nearest *near)
#define ROW_SUMS(name) \
  void name(const uint8_t *codes, int64_t units, const int8_t *query, int64_t rows, int32_t *sums)

/* Write, for every centre, 2 x the sum of products with codes of eight bits. */
typedef CENTRE_SUMS((*centre_sums_function));
/* Take what is near from the blocks on; return the block to go on with, before the end when the room may not do. */
typedef NEAR_BLOCKS((*near_blocks_function));
/* Write the sum of products of an element's row of codes with each row of the query. */
typedef ROW_SUMS((*row_sums_function));

struct ListKernels {
  centre_sums_function centre_sums;
  near_blocks_function near_blocks;
  row_sums_function row_sums;
};

extern const ListKernels lists_portable, lists_avx2, lists_avx512;

/* A number in the order of floats, and of the lower item first where these are equal. */
static inline uint64_t key_of(float x, int32_t item) {
  union {
    float value;
    uint32_t bits;
  } both = {x + 0.0f}; /* no zero is below another */
  const uint32_t ordered = both.bits & 0x80000000u ? ~both.bits : both.bits | 0x80000000u;
  return (uint64_t)ordered << 32 | (0xffffffffu - (uint32_t)item);
}
static inline int32_t item_of(uint64_t key) { return (int32_t)(0xffffffffu - (uint32_t)key); }

/* Append lane `slot` unless it is empty or closed. */
static inline void take(const Lists *l, int64_t slot, float similarity, Nearest *near) {
  const int32_t item = l->items[slot];
  if (item >= 0 && (!l->is_open || l->is_open[item])) near->keys[near->found++] = key_of(similarity, item);
}

/* Write the candidates and their estimated scores, in no order; return how many, or -1 when memory ran out. `read` become
 * the elements read in the lists and the items whose elements were all looked at. */
int64_t search_lists(const Lists *l, const ListQuery *q, const Effort *effort, const ListKernels *kernels,
                     int64_t *items, float *scores, int64_t *read);

#endif
