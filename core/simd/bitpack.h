// Arrays of fixed-width unsigned integers <-> a little-endian bit stream: value i occupies bits
// [i * width, (i + 1) * width) of the stream, bit b being bit b % 8 of byte b / 8. No headers, no blocks.
//
// Total and noexcept: any width from 0 to the bits of the type, any n. Every SIMD target gives the same
// values as the scalar functions in `reference`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cdd::simd {

// What unpack may read behind the packed bytes and write behind out[n].
inline constexpr std::size_t kBitpackSlackBytes = 64;

constexpr std::size_t packed_bytes(std::size_t n, unsigned width) noexcept {
  return static_cast<std::size_t>((std::uint64_t{n} * width + 7) / 8);
}

// out[i] = base + value i, modulo 2^32 or 2^64. May read kBitpackSlackBytes behind the packed_bytes(n, width)
// bytes of `in`, and overwrite as many behind out[n].
void unpack32(const std::byte* in, std::size_t n, unsigned width, std::uint32_t base,
              std::uint32_t* out) noexcept;
void unpack64(const std::byte* in, std::size_t n, unsigned width, std::uint64_t base,
              std::uint64_t* out) noexcept;

// Packs the low `width` bits of in[i] - base. Writes exactly packed_bytes(n, width) bytes; unused bits of the
// last one are 0.
void pack32(const std::uint32_t* in, std::size_t n, unsigned width, std::uint32_t base,
            std::byte* out) noexcept;
void pack64(const std::uint64_t* in, std::size_t n, unsigned width, std::uint64_t base,
            std::byte* out) noexcept;

// Value i alone, width 0 to 64. May read 8 bytes behind the one the value starts in.
inline std::uint64_t unpack_one(const std::byte* in, std::size_t i, unsigned width) noexcept {
  if (width == 0) return 0;
  const std::size_t bit = i * width;
  const unsigned shift = static_cast<unsigned>(bit % 8);
  std::uint64_t v;
  std::memcpy(&v, in + bit / 8, sizeof v);
  v >>= shift;
  if (shift + width > 64) v |= std::to_integer<std::uint64_t>(in[bit / 8 + 8]) << (64 - shift);
  return v & ~std::uint64_t{0} >> (64 - width);
}

// Byte by byte, reading only the bytes a value lies in: what the kernels are tested against.
namespace reference {
std::uint64_t unpack_one(const std::byte* in, std::size_t i, unsigned width) noexcept;
void unpack32(const std::byte* in, std::size_t n, unsigned width, std::uint32_t base,
              std::uint32_t* out) noexcept;
void unpack64(const std::byte* in, std::size_t n, unsigned width, std::uint64_t base,
              std::uint64_t* out) noexcept;
}  // namespace reference

}  // namespace cdd::simd
