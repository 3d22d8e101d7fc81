/* CRC-32 as zlib computes it, by products of polynomials (V. Gopal and others, "Fast CRC computation for generic
 * polynomials using PCLMULQDQ", Intel 2009): four times 16 bytes are moved by 64 at a time. */
#include "checksum.h"

#include "mapped.h"

#if HAVE_X86

typedef long long pair __attribute__((vector_size(16)));

/* x^n modulo the checksum's polynomial, bits in reverse as in zlib's checksum and moved up by one, for n = 544 and 480,
 * 160 and 96, and 64: what moves the halves of 16 bytes by 64 and by 16 bytes, and 4 bytes by 8. */
#define BY_64 (pair){0x154442bd4, 0x1c6e41596}
#define BY_16 (pair){0x1751997d0, 0x0ccaa009e}
#define BY_8 0x163cd6124
#define POLYNOMIAL (pair){0x1db710641, 0x1f7011641} /* and x^64 divided by it */

#define PRODUCTS __attribute__((target("pclmul,sse4.1")))

PRODUCTS static inline __m128i moved(__m128i x, pair by) {
  const __m128i k = (__m128i)by;
  return _mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11));
}

/* The checksum goes in and comes out without the inversion that zlib ends with. */
PRODUCTS static uint32_t folded(const uint8_t *data, int64_t n, uint32_t crc) {
  const __m128i *at = (const __m128i *)data;
  __m128i x[4];
  for (int i = 0; i < 4; i++) x[i] = _mm_loadu_si128(at + i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)crc));
  for (at += 4, n -= 64; n >= 64; at += 4, n -= 64)
    for (int i = 0; i < 4; i++) x[i] = _mm_xor_si128(moved(x[i], BY_64), _mm_loadu_si128(at + i));
  for (int i = 1; i < 4; i++) x[0] = _mm_xor_si128(moved(x[0], BY_16), x[i]);
  for (; n >= 16; at++, n -= 16) x[0] = _mm_xor_si128(moved(x[0], BY_16), _mm_loadu_si128(at));

  const __m128i low = _mm_setr_epi32(-1, 0, 0, 0), by_16 = (__m128i)BY_16, poly = (__m128i)POLYNOMIAL;
  __m128i y = _mm_xor_si128(_mm_srli_si128(x[0], 8), _mm_clmulepi64_si128(x[0], by_16, 0x10)); /* to 96 bits */
  y = _mm_xor_si128(_mm_srli_si128(y, 4), _mm_clmulepi64_si128(_mm_and_si128(y, low), _mm_cvtsi64_si128(BY_8), 0));
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(y, low), poly, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low), poly, 0x00);
  return (uint32_t)_mm_extract_epi32(_mm_xor_si128(y, quotient), 1);
}

#endif

/* What each value of a byte adds to a checksum when as many bytes follow it as the table's number says. */
static uint32_t tables[8][256];
static int has_products;

void prepare_checksums(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    tables[0][byte] = crc;
  }
  for (int t = 1; t < 8; t++)
    for (int byte = 0; byte < 256; byte++) tables[t][byte] = tables[t - 1][byte] >> 8 ^ tables[0][tables[t - 1][byte] & 255];
#if HAVE_X86
  has_products = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

static uint32_t checksum(const uint8_t *data, int64_t n, uint32_t crc) {
  int64_t at = 0;
  crc = ~crc;
#if HAVE_X86
  if (has_products && n >= 64) crc = folded(data, at = n / 16 * 16, crc);
#endif
  for (; at + 8 <= n; at += 8) {
    uint8_t x[8];
    for (int i = 0; i < 8; i++) x[i] = data[at + i] ^ (i < 4 ? crc >> 8 * i & 255 : 0);
    crc = 0;
    for (int i = 0; i < 8; i++) crc ^= tables[7 - i][x[i]];
  }
  for (; at < n; at++) crc = crc >> 8 ^ tables[0][(crc ^ data[at]) & 255];
  return ~crc;
}

uint32_t checksum_blocks(const uint8_t *data, int64_t n, int64_t block, int64_t held, uint32_t crc, uint32_t *sums) {
  while (n) {
    const int64_t size = n < block - held ? n : block - held;
    crc = checksum(data, size, crc);
    data += size, n -= size, held += size;
    if (held == block) *sums++ = crc, held = 0, crc = 0;
  }
  return crc;
}

#define READ_AHEAD (1 << 21) /* bytes that the system is asked to map in one go */

int64_t damaged_block(const Checked *c, int64_t start, int64_t end) {
  int64_t mapped = end - start < READ_AHEAD / 8 ? end : 0;
  for (int64_t i = start / c->block; i * c->block < end; i++) {
    if (c->seen[i]) continue;
    const int64_t at = i * c->block, rest = c->bytes - at;
    for (; mapped <= at; mapped = at + READ_AHEAD) map_ahead(c->data + at, rest < READ_AHEAD ? rest : READ_AHEAD);
    if (checksum(c->data + at, rest < c->block ? rest : c->block, 0) != c->sums[i]) return i;
    c->seen[i] = 1;
  }
  return -1;
}
