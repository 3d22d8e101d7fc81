/* CRC-32 of blocks of arrays. */
#ifndef SETNET_CHECKSUM_H
#define SETNET_CHECKSUM_H

#include "kernels.h"

/* An array in a file, the checksum of each of its blocks, the last of which may be short, and which were verified. */
typedef struct {
  const uint8_t *data;
  int64_t bytes, block;
  const uint32_t *sums;
  uint8_t *seen;
} Checked;

/* Call it once before the others. */
void prepare_checksums(void);

/* Write zlib's CRC-32 of each block that n bytes complete, and return that of the last block so far. The first block
 * has `held` bytes already, whose checksum is `crc`. */
uint32_t checksum_blocks(const uint8_t *data, int64_t n, int64_t block, int64_t held, uint32_t crc, uint32_t *sums);

/* Verify the blocks with the bytes from start to before end that were not; return the first that is damaged, or -1. */
int64_t damaged_block(const Checked *array, int64_t start, int64_t end);

#endif
