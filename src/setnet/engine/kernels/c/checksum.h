/* CRC-32 of large arrays. */
#ifndef SETNET_CHECKSUM_H
#define SETNET_CHECKSUM_H

#include "kernels.h"

/* Whether this machine computes checksums faster than zlib does. */
int has_checksum(void);

/* Continue zlib's CRC-32 `crc`, 0 at first, with n bytes. */
uint32_t checksum(const uint8_t *data, int64_t n, uint32_t crc);

#endif
