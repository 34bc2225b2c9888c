// A C file of its own: compiled with AVX2 enabled, it must not hold anything that the linker could hand to
// the rest of the program, as C++ headers would.
#include "core/base/xxh3_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#if !defined(__AVX2__)
#error "this file is to be compiled with AVX2 enabled"
#endif

uint64_t cdd_xxh3_avx2(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}
