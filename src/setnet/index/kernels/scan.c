/* One fused pass over quantised vectors: integer dots, upper bound, maximum per item, sigmoid, sum.
 * Here in portable C; the same in AVX2 and AVX-512 beside it, chosen at run time. */
#include "scan.h"

scan_function scan8, scan4, scan1;
refine_function refine;
collect_function collect;

/* ---- portable ---------------------------------------------------------------------------------------- */

static void row8_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) sum[lane] += row[g * LINE + lane * 4 + j] * q[g * 4 + j];
}

static void row4_portable(const Codes *c, int64_t r, const int8_t *q, int32_t *sum) {
  const uint8_t *row = c->codes + r * c->groups * LINE;
  for (int64_t g = 0; g < c->groups; g++)
    for (int lane = 0; lane < LANES; lane++)
      for (int j = 0; j < 4; j++) {
        uint8_t both = row[g * LINE + lane * 4 + j];
        sum[lane] += (both & 15) * q[g * 8 + j] + (both >> 4) * q[g * 8 + 4 + j];
      }
}

static void scan_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart,
                          void (*row)(const Codes *, int64_t, const int8_t *, int32_t *)) {
  for (int64_t block = first; block < last; block++) {
    for (int64_t p = 0; p < q->rows; p++) {
      float *out = bounds + owner_of(q, p) * apart + block * LANES;
      float best[LANES];
      for (int lane = 0; lane < LANES; lane++) best[lane] = -INFINITY;
      for (int64_t r = row_of(c, block); r < row_of(c, block + 1); r++) {
        int32_t sum[LANES];
        for (int lane = 0; lane < LANES; lane++) sum[lane] = q->start[p];
        row(c, r, q->codes + p * q->stride, sum);
        for (int lane = 0; lane < LANES; lane++) {
          float s = c->scales[r * LANES + lane] * (q->step[p] * (float)sum[lane] + q->slack[p]);
          if (s > best[lane]) best[lane] = s;
        }
      }
      if (block >= c->first_wide)
        for (int lane = 1; lane < LANES; lane++)
          if (best[lane] > best[0]) best[0] = best[lane];
      for (int lane = 0; lane < LANES; lane++)
        out[lane] = (is_first(q, p) ? 0.0f : out[lane]) +
                    q->weight[p] * probability(best[lane], q->w, q->threshold, q->inflate);
    }
  }
}

static void scan8_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart) {
  scan_portable(c, q, first, last, bounds, apart, row8_portable);
}

static void scan4_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart) {
  scan_portable(c, q, first, last, bounds, apart, row4_portable);
}

/* One bit: items are rows of 64-bit words; `first` and `last` count items. sum = 2 * sum(set bits) + start. */
static void scan1_portable(const Codes *c, const Query *q, int64_t first, int64_t last, float *bounds, int64_t apart) {
  for (int64_t i = first; i < last; i++) {
    const uint8_t *bits = c->codes + i * c->groups * 8;
    for (int64_t p = 0; p < q->rows; p++) {
      const int8_t *code = q->codes + p * q->stride;
      int32_t sum = 0;
      for (int64_t d = 0; d < c->groups * 64; d++) sum += (bits[d >> 3] >> (d & 7) & 1) * code[d];
      float s = c->scales[i] * (q->step[p] * (float)(2 * sum + q->start[p]) + q->slack[p]);
      float *out = bounds + owner_of(q, p) * apart + i;
      *out = (is_first(q, p) ? 0.0f : *out) + q->weight[p] * probability(s, q->w, q->threshold, q->inflate);
    }
  }
}

static void refine_portable(const Rows8 *r, const Query *q, const int64_t *items, int64_t n, float *bounds) {
  refine_with(r, q, items, n, bounds, dot_portable);
}

static int64_t collect_portable(const float *bounds, int64_t n, float low, int64_t *out, int64_t room) {
  return collect_rest(bounds, 0, n, low, out, 0, room);
}

int best_level(void) {
#if HAVE_X86
  __builtin_cpu_init();
  int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return LEVEL_AVX512;
  if (avx2) return LEVEL_AVX2;
#endif
  return LEVEL_PORTABLE;
}

void use_level(int level) {
  scan8 = scan8_portable;
  scan4 = scan4_portable;
  refine = refine_portable;
  collect = collect_portable;
  scan1 = scan1_portable;
#if HAVE_X86
  if (level == LEVEL_AVX2) {
    scan8 = scan8_avx2;
    scan4 = scan4_avx2;
    refine = refine_avx2;
    collect = collect_avx2;
    scan1 = scan1_avx2;
  } else if (level == LEVEL_AVX512) {
    scan8 = scan8_avx512;
    scan4 = scan4_avx512;
    refine = refine_avx512;
    collect = collect_avx512;
    scan1 = scan1_avx512;
  }
#endif
}
