/* From lists to candidates; what instruction sets differ in is called through ListKernels, portable here. */
#include "lists.h"

#include <stdlib.h>
#include <string.h>

#include "match.h"

static void block_sums(const uint8_t *line, int64_t units, const int8_t *even, const int8_t *odd, int32_t *sums) {
  memset(sums, 0, LANES * sizeof *sums);
  for (int64_t u = 0; u < units; u++, line += LINE)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) {
        const uint8_t both = line[lane * 4 + j];
        sums[lane] += (both & 15) * even[u * 4 + j] + (both >> 4) * odd[u * 4 + j];
      }
}

static CENTRE_SUMS(centre_sums) {
  for (int64_t b = 0; b < l->lists / LANES; b++, sums += LANES) {
    const uint8_t *upper = l->centres + b * 2 * l->units * LINE;
    int32_t lower[LANES];
    block_sums(upper, l->units, q->even, q->odd, sums);
    block_sums(upper + l->units * LINE, l->units, q->even, q->odd, lower);
    for (int lane = 0; lane < LANES; lane++) sums[lane] = 2 * (16 * sums[lane] + lower[lane]);
  }
}

static NEAR_BLOCKS(near_blocks) {
  for (; block < end && near->found + LANES <= near->room; block++) {
    int32_t sums[LANES];
    block_sums(l->codes + block * l->units * LINE, l->units, q->even, q->odd, sums);
    for (int lane = 0; lane < LANES; lane++) {
      const float x = (float)(2 * sums[lane] - q->middle) * from_upper(l->factors[block * LANES + lane]);
      if (x >= near->floor) take(l, block * LANES + lane, x, near);
    }
  }
  return block;
}

static ROW_SUMS(row_sums) {
  const int64_t width = units * 4;
  for (int64_t p = 0; p < rows; p++, query += 2 * width) {
    int32_t sum = 0;
    for (int64_t j = 0; j < width; j++) sum += (codes[j] & 15) * query[j] + (codes[j] >> 4) * query[width + j];
    sums[p] = sum;
  }
}

const ListKernels lists_portable = {centre_sums, near_blocks, row_sums};

/* Bring the largest `wanted` of n keys to the front. */
static void largest_first(uint64_t *key, int64_t n, int64_t wanted) {
  int64_t from = 0, to = n - 1;
  while (from < to && wanted > from && wanted <= to) {
    const uint64_t a = key[from], b = key[from + (to - from) / 2], c = key[to];
    const uint64_t pivot = a > b ? (b > c ? b : a > c ? c : a) : (a > c ? a : b > c ? c : b);
    int64_t i = from, j = to;
    while (i <= j) {
      while (key[i] > pivot) i++;
      while (key[j] < pivot) j--;
      if (i <= j) {
        const uint64_t swapped = key[i];
        key[i++] = key[j], key[j--] = swapped;
      }
    }
    if (wanted <= j + 1)
      to = j;
    else if (wanted > i)
      from = i;
    else
      return;
  }
}

static int falling(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x > y ? -1 : x < y;
}

/* Write the lists whose centres are nearest to a row, nearest first. */
static int64_t nearest_lists(const Lists *l, const Row *q, float step, int64_t probes, const ListKernels *kernels,
                             int32_t *sums, uint64_t *keys) {
  const float per_step = 1.0f / step;
  const int64_t n = probes < l->lists ? probes : l->lists;
  kernels->centre_sums(l, q, sums);
  for (int64_t c = 0; c < l->lists; c++) {
    const int32_t less = (int32_t)(l->half_squares[c] * per_step); /* a whole number: all processors agree */
    keys[c] = key_of((float)(sums[c] - less), (int32_t)c);
  }
  largest_first(keys, l->lists, n);
  qsort(keys, (size_t)n, sizeof *keys, falling);
  return n;
}

/* The number of a key. */
static float number_of(uint64_t key) {
  const uint32_t ordered = (uint32_t)(key >> 32);
  const uint32_t bits = ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered;
  float number;
  memcpy(&number, &bits, sizeof bits);
  return number;
}

/* Keep the best `wanted` of what was found and raise the floor to the least of them; to `least` at most, unless there
 * are too many matches. */
static void raise_floor(Nearest *near, int64_t wanted, float least) {
  if (near->found <= wanted) return;
  largest_first(near->keys, near->found, wanted);
  uint64_t last = near->keys[0];
  for (int64_t i = 1; i < wanted; i++)
    if (near->keys[i] < last) last = near->keys[i];
  int64_t kept = wanted;
  near->floor = number_of(last);
  if (near->floor >= least) { /* others match as well */
    near->floor = least;
    for (int64_t i = wanted; i < near->found; i++)
      if (number_of(near->keys[i]) >= least) near->keys[kept++] = near->keys[i];
    if (kept > wanted + MATCHES) {
      near->found = kept;
      raise_floor(near, wanted + MATCHES, INFINITY);
      return;
    }
  }
  near->found = kept;
}

#define AHEAD 2048 /* bytes of the next list that are fetched while one is read */

static int64_t read_lists(const Lists *l, const Row *q, const uint64_t *lists, int64_t n, int64_t wanted,
                          float least, const ListKernels *kernels, Nearest *near) {
  int64_t blocks = 0;
  near->found = 0, near->room = 2 * wanted + LANES, near->floor = -INFINITY;
  for (int64_t i = 0; i < n; i++) {
    const int32_t list = item_of(lists[i]);
    const int64_t end = l->start[list + 1];
    if (i + 1 < n) {
      const uint8_t *next = l->codes + l->start[item_of(lists[i + 1])] * l->units * LINE;
      for (int64_t at = 0; at < AHEAD; at += LINE) __builtin_prefetch(next + at);
    }
    blocks += end - l->start[list];
    for (int64_t block = l->start[list]; block < end;) {
      block = kernels->near_blocks(l, q, block, end, near);
      if (near->found + LANES > near->room) {
        raise_floor(near, wanted, least);
        near->room = near->found + wanted + LANES;
      }
    }
  }
  raise_floor(near, wanted, least);
  return blocks;
}

/* Leave each item once; return how many there are, or -1 when memory ran out. */
static int64_t distinct(int32_t *items, int64_t n) {
  uint32_t places = 64;
  while (places < 2 * (uint64_t)n) places *= 2;
  int32_t *place = malloc(sizeof *place * places); /* a table of the items seen so far, -1 where free */
  int64_t kept = 0;
  if (!place) return -1;
  memset(place, -1, sizeof *place * places);
  for (int64_t i = 0; i < n; i++) {
    uint32_t at = (uint32_t)items[i] * 2654435769u;
    for (at = (at ^ at >> 15) & (places - 1); place[at] >= 0 && place[at] != items[i];) at = (at + 1) & (places - 1);
    if (place[at] < 0) place[at] = items[kept++] = items[i];
  }
  free(place);
  return kept;
}

/* The score of a query whose rows are so similar to the most similar elements of an item. */
static float score_of(const ListQuery *q, const float *best) {
  float score = 0;
  for (int64_t p = 0; p < q->size; p++) {
    const int64_t from = q->first_row[p], to = q->first_row[p + 1];
    float most = best[from], sum = 0;
    for (int64_t r = from; r < to; r++) {
      if (best[r] > most) most = best[r];
      if (q->combine == COMBINE_MEAN) sum += probability(best[r] + q->shift[p], q->w, q->threshold, 0);
    }
    score += q->combine == COMBINE_MEAN ? sum / (float)(to - from)
                                        : probability(most + q->shift[p], q->w, q->threshold, 0);
  }
  return score;
}

/* Look at all elements of the items, and make keys of their scores. */
static void look_again(const Lists *l, const ListQuery *q, const int32_t *items, int64_t n, const ListKernels *kernels,
                       int32_t *sums, float *best, uint64_t *keys) {
  const int64_t width = l->units * 4;
  for (int64_t i = 0; i < n; i++) {
    if (i + 32 < n) __builtin_prefetch(l->offsets + items[i + 32]);
    if (i + 12 < n) {
      const int64_t from = l->offsets[items[i + 12]], to = l->offsets[items[i + 12] + 1];
      __builtin_prefetch(l->row_factors + from);
      for (int64_t at = from * width; at < to * width && at < from * width + 1024; at += LINE)
        __builtin_prefetch(l->rows + at);
    }
    for (int64_t p = 0; p < q->rows; p++) best[p] = -INFINITY;
    for (int64_t e = l->offsets[items[i]]; e < l->offsets[items[i] + 1]; e++) {
      const float factor = from_upper(l->row_factors[e]);
      kernels->row_sums(l->rows + e * width, l->units, q->codes, q->rows, sums);
      for (int64_t p = 0; p < q->rows; p++) {
        const float x = (float)(2 * sums[p] - q->middle[p]) * factor * q->step[p];
        if (x > best[p]) best[p] = x;
      }
    }
    keys[i] = key_of(score_of(q, best), items[i]);
  }
}

int64_t search_lists(const Lists *l, const ListQuery *q, const Effort *effort, const ListKernels *kernels,
                     int64_t *items, float *scores, int64_t *read) {
  const int64_t width = l->units * 4, most = effort->wanted + MATCHES; /* of a row */
  const int64_t numbers = l->lists > q->rows ? l->lists : q->rows;
  Nearest near = {malloc(sizeof(uint64_t) * (size_t)(2 * most + LANES)), 0, 0, 0};
  int32_t *sums = malloc(sizeof *sums * (size_t)numbers), *found = malloc(sizeof *found * (size_t)(q->rows * most));
  uint64_t *lists = malloc(sizeof *lists * (size_t)l->lists), *keys = NULL;
  float *best = malloc(sizeof *best * (size_t)q->rows);
  int64_t n = -1;
  if (near.keys && sums && found && lists && best) {
    read[0] = n = 0;
    for (int64_t p = 0; p < q->rows; p++) {
      const Row row = {q->codes + p * 2 * width, q->codes + p * 2 * width + width, q->middle[p]};
      const int64_t probes = nearest_lists(l, &row, q->step[p], effort->probes, kernels, sums, lists);
      read[0] += read_lists(l, &row, lists, probes, effort->wanted, q->least[p], kernels, &near) * LANES;
      for (int64_t i = 0; i < near.found; i++) found[n++] = item_of(near.keys[i]);
    }
    read[1] = n = distinct(found, n);
    keys = malloc(sizeof *keys * (size_t)(n > 0 ? n : 1));
    if (!keys) n = -1;
  }
  if (n > 0) {
    look_again(l, q, found, n, kernels, sums, best, keys);
    if (n > effort->candidates) {
      largest_first(keys, n, effort->candidates);
      n = effort->candidates;
    }
    for (int64_t i = 0; i < n; i++) items[i] = item_of(keys[i]), scores[i] = number_of(keys[i]);
  }
  free(near.keys), free(sums), free(found), free(lists), free(best), free(keys);
  return n;
}
