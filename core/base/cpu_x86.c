// Whether this CPU and its operating system do AVX2, without any instruction of it in this file.
#include "core/base/xxh3_avx2.h"

#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>

int cdd_cpu_has_avx2(void) {
  int leaf[4];
  __cpuid(leaf, 0);
  if (leaf[0] < 7) return 0;
  __cpuid(leaf, 1);
  const int has_xgetbv = (leaf[2] >> 27) & 1;
  if (!has_xgetbv || (_xgetbv(0) & 6) != 6) return 0;  // the system saves XMM and YMM
  __cpuidex(leaf, 7, 0);
  return (leaf[1] >> 5) & 1;
}
#else
int cdd_cpu_has_avx2(void) { return __builtin_cpu_supports("avx2") != 0; }
#endif
