/* The scans in NEON as every 64-bit ARM processor has it. */
#include "neon.h"

#if HAVE_NEON
/* sum += codes . query over four dimensions of four lanes; two products of at most 128 x 127 fit 16 bits */
NEON int32x4_t dot(int32x4_t sum, int8x16_t codes, int8x16_t query) {
  int16x8_t first = vmull_s8(vget_low_s8(codes), vget_low_s8(query)), second = vmull_high_s8(codes, query);
  return vpadalq_s16(sum, vpaddq_s16(first, second));
}

/* four products of at most 31 x 127 fit them too */
NEON int32x4_t dot_halves(int32x4_t sum, int8x16_t a, int8x16_t b, int8x16_t query_a, int8x16_t query_b) {
  int16x8_t first = vmull_s8(vget_low_s8(a), vget_low_s8(query_a)), second = vmull_high_s8(a, query_a);
  first = vmlal_s8(first, vget_low_s8(b), vget_low_s8(query_b));
  return vpadalq_s16(sum, vpaddq_s16(first, vmlal_high_s8(second, b, query_b)));
}

#define NAME(function) function##_neon
#define TARGET
#include "scan_neon.h"

COLLECT(collect_neon) {
  const float32x4_t floor = vdupq_n_f32(low);
  int64_t found = 0, i = 0;
  for (; i + 16 <= n; i += 16) {
    uint32x4_t any = vcgeq_f32(vld1q_f32(bounds + i), floor);
    for (int k = 1; k < 4; k++) any = vorrq_u32(any, vcgeq_f32(vld1q_f32(bounds + i + 4 * k), floor));
    if (vmaxvq_u32(any)) found = collect_rest(bounds, i, i + 16, low, out, found, room);
  }
  return collect_rest(bounds, i, n, low, out, found, room);
}
#endif
