/* Codes of elements, one bit per dimension, as the scan reads them. */
#ifndef SETNET_PACK_H
#define SETNET_PACK_H

#include "match.h"

#define ROUNDS 4 /* of a rotation */

/* Write the one-bit codes (rows x bits / 8 x LANES) and factors of the elements named by slots (-1: empty lane, all
 * zero) around a centre. A rotation is made of ROUNDS times a factor per dimension and mixing the first or the last 2^k
 * of them by turns, and of one factor more: steps has (ROUNDS + 1) x bits. Return 0, or -1 when memory ran out. */
int pack_bits(const Elements *elements, const int64_t *slots, int64_t rows, const float *centre, const float *steps,
              int64_t bits, uint8_t *codes, uint16_t *factors);

#endif
