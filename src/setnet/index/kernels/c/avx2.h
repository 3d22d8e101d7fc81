/* What the AVX2 scans share: the sigmoid of eight similarities. */
#ifndef SETNET_AVX2_H
#define SETNET_AVX2_H

#include "scan.h"

#if HAVE_X86
#define AVX2 __attribute__((target("avx2,fma,f16c"), always_inline)) static inline
#define AVX2_ENTRY __attribute__((target("avx2,fma,f16c")))

/* as quick_exp */
AVX2 __m256 exp256(__m256 x) {
  __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), 8);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 y = _mm256_set1_ps(1.0f / 720);
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 120));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 24));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f / 6));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0.5f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0f));
  __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(y), e));
}

AVX2 __m256 probability256(__m256 s, const Query *q) {
  __m256 z = _mm256_fmadd_ps(_mm256_sub_ps(s, _mm256_set1_ps(q->threshold)), _mm256_set1_ps(q->w),
                             _mm256_set1_ps(q->inflate));
  z = _mm256_max_ps(_mm256_min_ps(z, _mm256_set1_ps(80.0f)), _mm256_set1_ps(-80.0f)); /* a NaN becomes 80 */
  __m256 e = exp256(_mm256_sub_ps(_mm256_setzero_ps(), z));
  return _mm256_div_ps(_mm256_set1_ps(1.0f), _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

AVX2 float largest256(__m256 x) {
  float lanes[8];
  _mm256_storeu_ps(lanes, x);
  for (int lane = 1; lane < 8; lane++) lanes[0] = lanes[lane] > lanes[0] ? lanes[lane] : lanes[0];
  return lanes[0];
}
#endif
#endif
