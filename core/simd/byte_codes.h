// Bytes written as codes of unlike lengths, as zstd's literals are: the last byte first, each from its lowest
// bit on, since readers come from the end.
//
// A pure kernel: total, noexcept, no alignment needed. Every SIMD target gives the bytes of `reference`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cdd::simd {

inline constexpr unsigned kMostByteCodeBits = 11;

// A code for each byte; a length of 0 means that it has none.
struct ByteCodes {
  void set(std::size_t byte, unsigned code, unsigned length) noexcept {
    low[byte] = static_cast<std::uint8_t>(code);
    rest[byte] = static_cast<std::uint8_t>(length << 4 | code >> 8);
    whole[byte] = length == 0 ? kNone : std::uint64_t{code} << (64 - length) | length;
  }

  static constexpr std::uint64_t kNone = 0x100;      // more than lengths of a few bytes
  alignas(64) std::array<std::uint8_t, 256> low;     // the lowest eight bits of the code
  alignas(64) std::array<std::uint8_t, 256> rest;    // the others, and its length above them
  alignas(64) std::array<std::uint64_t, 256> whole;  // the code at the top, its length at the bottom; kNone
};

// Bytes of `out` that n bytes may need, some of them for working room.
constexpr std::size_t byte_codes_bound(std::size_t n) noexcept { return n * kMostByteCodeBits / 8 + 16; }

// The codes of n bytes and a last bit 1. Returns the end, null where a byte has no code.
std::byte* pack_byte_codes(const ByteCodes& codes, const std::byte* bytes, std::size_t n,
                           std::byte* out) noexcept;

namespace reference {
std::byte* pack_byte_codes(const ByteCodes& codes, const std::byte* bytes, std::size_t n,
                           std::byte* out) noexcept;
}  // namespace reference

}  // namespace cdd::simd
