#include "core/base/hash.h"

#include <blake3.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined(CDD_XXH3_AVX2)
#include "core/base/xxh3_avx2.h"
#endif

namespace cdd {
namespace {

std::uint64_t xxh3(Bytes bytes, std::uint64_t seed) noexcept {
#if defined(CDD_XXH3_AVX2)
  constexpr std::size_t kVectorBytes = 241;  // shorter inputs take XXH3's scalar paths whatever the CPU
  static const bool has_avx2 = cdd_cpu_has_avx2() != 0;
  if (bytes.size() >= kVectorBytes && has_avx2) return cdd_xxh3_avx2(bytes.data(), bytes.size(), seed);
#endif
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

std::uint32_t check32(CheckDomain domain, std::uint64_t salt, std::uint64_t key, Bytes bytes) noexcept {
  const std::uint64_t seed = salt ^ static_cast<std::uint64_t>(domain) << 56 ^ key;
  return static_cast<std::uint32_t>(xxh3(bytes, seed));
}

Hash128 hash128(Bytes bytes) noexcept {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  std::byte digest[16];
  blake3_hasher_finalize(&hasher, reinterpret_cast<std::uint8_t*>(digest), sizeof digest);
  return {load<std::uint64_t>(digest), load<std::uint64_t>(digest + 8)};
}

}  // namespace cdd
