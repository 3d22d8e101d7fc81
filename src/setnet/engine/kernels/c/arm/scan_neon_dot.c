/* The scans in NEON with the dot product of four bytes as one instruction. */
#include "neon.h"

#if HAVE_NEON_DOT
#if defined(__clang__)
#define TARGET __attribute__((target("dotprod")))
#else
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

NEON TARGET int32x4_t dot(int32x4_t sum, int8x16_t codes, int8x16_t query) { return vdotq_s32(sum, codes, query); }

NEON TARGET int32x4_t dot_halves(int32x4_t sum, int8x16_t a, int8x16_t b, int8x16_t query_a, int8x16_t query_b) {
  return dot(dot(sum, a, query_a), b, query_b);
}

#define NAME(function) function##_neon_dot
#include "scan_neon.h"
#endif
