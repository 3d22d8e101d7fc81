/* The one table of kernels, slowest first, and which of them this processor can run. */
#include "lists.h"

#if HAVE_NEON_DOT && defined(__linux__)
#include <sys/auxv.h>
#ifndef HWCAP_ASIMDDP /* not in the headers of old systems */
#define HWCAP_ASIMDDP (1 << 20)
#endif
#elif HAVE_NEON_DOT && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

const Kernels LEVELS[] = {
    {"portable", scan8_portable, scan4_portable, scan5_portable, scan9_portable, upper8_portable, scan1_rows_portable,
     least5_portable, collect_portable, &lists_portable},
#if HAVE_X86
    {"avx2", scan8_avx2, scan4_avx2, scan5_avx2, scan9_avx2, 0, scan1_rows_avx2, least5_avx2, collect_avx2,
     &lists_avx2},
    /* registers of 512 bits look up single bits no faster */
    {"avx512", scan8_avx512, scan4_avx512, scan5_avx512, scan9_avx2, upper8_avx512, scan1_rows_avx2,
     least5_avx512, collect_avx512, &lists_avx512},
#elif HAVE_NEON
    {"neon", scan8_neon, scan4_neon, scan5_neon, scan9_neon, 0, scan1_rows_neon, least5_neon, collect_neon,
     &lists_portable},
#if HAVE_NEON_DOT
    {"neon_dot", scan8_neon_dot, scan4_neon_dot, scan5_neon_dot, scan9_neon_dot, 0, scan1_rows_neon,
     least5_neon_dot, collect_neon, &lists_portable},
#endif
#endif
};

const Kernels *kernels = LEVELS;

#if HAVE_NEON
/* the dot product of four bytes, which some of the processors have */
static int has_dot(void) {
#if HAVE_NEON_DOT && defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif HAVE_NEON_DOT && defined(__APPLE__)
  int has = 0;
  size_t size = sizeof has;
  return !sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, NULL, 0) && has;
#else
  return 0;
#endif
}
#endif

int count_levels(void) {
#if HAVE_X86
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")
             ? 3
             : 2;
#elif HAVE_NEON
  return has_dot() ? 3 : 2;
#else
  return 1;
#endif
}
