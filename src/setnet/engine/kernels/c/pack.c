/* One bit per dimension of 16 elements at a time: dimension by dimension, so that a SIMD lane is an element. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#if HAVE_X86 && defined(__linux__)
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2,fma", "arch=x86-64-v4")))
#else
#define VECTOR_CLONES
#endif

/* A finite half without branches: its exponent is 112 less than a float's, and so are those of the smallest ones. */
static inline float widened(uint16_t half) {
  const uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
  float f;
  memcpy(&f, &magnitude, 4);
  f *= 0x1p112f;
  uint32_t whole;
  memcpy(&whole, &f, 4);
  whole |= sign;
  memcpy(&f, &whole, 4);
  return f;
}

/* A dimension of all lanes takes two of these: a compiler that has to split vectors does so through memory. */
typedef float Lanes __attribute__((vector_size(2 * LANES), aligned(4)));
typedef int32_t Signs __attribute__((vector_size(2 * LANES), aligned(4)));

/* Lane by lane into a tile of dimensions x lanes, relative to the centre. */
VECTOR_CLONES static void load(const Elements *e, const int64_t *slots, const float *centre, float *row, Lanes *tile) {
  for (int lane = 0; lane < LANES; lane++) {
    float *to = (float *)tile + lane;
    const float *plain = (const float *)e->rows + slots[lane] * e->dim;
    const uint16_t *half = (const uint16_t *)e->rows + slots[lane] * e->dim;
    if (slots[lane] < 0)
      for (int64_t d = 0; d < e->dim; d++) row[d] = 0;
    else if (e->half)
      for (int64_t d = 0; d < e->dim; d++) row[d] = widened(half[d]) - centre[d];
    else
      for (int64_t d = 0; d < e->dim; d++) row[d] = plain[d] - centre[d];
    for (int64_t d = 0; d < e->dim; d++) to[d * LANES] = row[d];
  }
}

/* Sums and differences of pairs of dimensions: a Hadamard matrix of 2^k, not yet scaled. Two levels at a time, as the
 * tile goes through the registers once for both. */
VECTOR_CLONES static void mix(Lanes *tile, int64_t window) {
  int64_t apart = 2;
  for (; apart * 4 <= window; apart *= 4)
    for (int64_t first = 0; first < window; first += 4 * apart)
      for (int64_t i = first; i < first + apart; i++) {
        Lanes *a = tile + i, *b = a + apart, *c = b + apart, *d = c + apart;
        const Lanes ab = *a + *b, a_b = *a - *b, cd = *c + *d, c_d = *c - *d;
        *a = ab + cd, *b = a_b + c_d, *c = ab - cd, *d = a_b - c_d;
      }
  for (int64_t i = 0; apart < window && i < apart; i++) {
    const Lanes a = tile[i], b = tile[i + apart];
    tile[i] = a + b, tile[i + apart] = a - b;
  }
}

VECTOR_CLONES static void multiply(Lanes *tile, const float *by, int64_t n) {
  for (int64_t i = 0; i < 2 * n; i++) tile[i] *= by[i / 2];
}

/* Signs, and |v|^2 / (sum of |v_d|), kept as the upper half of a float. */
VECTOR_CLONES static void store(const Lanes *tile, int64_t bits, uint8_t *codes, uint16_t *factors) {
  for (int side = 0; side < 2; side++, tile++, codes += LANES / 2, factors += LANES / 2) {
    Lanes length = {0}, squared = {0};
    for (int64_t byte = 0; byte < bits / 8; byte++) {
      Signs code = {0};
      for (int bit = 0; bit < 8; bit++) {
        const Lanes v = tile[(byte * 8 + bit) * 2];
        code |= (v > 0) & (1 << bit);
        length += (Lanes)((Signs)v & 0x7fffffff);
        squared += v * v;
      }
      for (int lane = 0; lane < LANES / 2; lane++) codes[byte * LANES + lane] = (uint8_t)code[lane];
    }
    for (int lane = 0; lane < LANES / 2; lane++) {
      const float factor = length[lane] > 0 ? squared[lane] / length[lane] : 0;
      uint32_t whole;
      memcpy(&whole, &factor, 4);
      factors[lane] = (uint16_t)((whole + 0x8000) >> 16);
    }
  }
}

int pack_bits(const Elements *e, const int64_t *slots, int64_t rows, const float *centre, const float *steps,
              int64_t bits, uint8_t *codes, uint16_t *factors) {
  int64_t window = 1;
  while (window * 2 <= bits) window *= 2;
  Lanes *tile = malloc(sizeof(Lanes) * (size_t)bits * 2);
  float *row = malloc(sizeof(float) * (size_t)e->dim);
  const int failed = !tile || !row;
  for (int64_t i = 0; i < rows && !failed; i++) {
    load(e, slots + i * LANES, centre, row, tile);
    memset(tile + 2 * e->dim, 0, sizeof(Lanes) * 2 * (size_t)(bits - e->dim));
    for (int round = 0; round < ROUNDS; round++) {
      multiply(tile, steps + round * bits, bits);
      mix(round % 2 ? tile + 2 * (bits - window) : tile, 2 * window);
    }
    multiply(tile, steps + ROUNDS * bits, bits);
    store(tile, bits, codes + i * bits / 8 * LANES, factors + i * LANES);
  }
  free(tile), free(row);
  return failed ? -1 : 0;
}
