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

std::uint64_t hash64(Bytes bytes) noexcept { return xxh3(bytes, 0); }

Hash128 hash128(Bytes bytes) noexcept {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, bytes.data(), bytes.size());
  std::byte digest[16];
  blake3_hasher_finalize(&hasher, reinterpret_cast<std::uint8_t*>(digest), sizeof digest);
  return {load<std::uint64_t>(digest), load<std::uint64_t>(digest + 8)};
}

std::string hex(Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

bool parse_hex(std::string_view text, MutableBytes out) noexcept {
  if (text.size() != 2 * out.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return false;
    const auto value = static_cast<std::byte>(is_digit ? c - '0' : c - 'a' + 10);
    out[i / 2] = i % 2 == 0 ? value << 4 : out[i / 2] | value;
  }
  return true;
}

}  // namespace cdd
