// XXH3 for CPUs with AVX2, and the question whether this is one. C, only on x86-64 (CDD_XXH3_AVX2 is defined
// there). The value is that of XXH3_64bits_withSeed everywhere else.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t cdd_xxh3_avx2(const void* bytes, size_t size, uint64_t seed);
int cdd_cpu_has_avx2(void);

#ifdef __cplusplus
}
#endif
