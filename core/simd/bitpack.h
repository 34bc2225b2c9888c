// Arrays of fixed-width unsigned integers <-> a little-endian bit stream: value i occupies bits
// [i * width, (i + 1) * width) of the stream, bit b being bit b % 8 of byte b / 8. No headers, no blocks.
//
// Total and noexcept: any width from 0 to the bits of the type, any n. Every SIMD target gives the same values
// as the scalar functions in `reference`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// What unpack may read behind the packed bytes and write behind out[n].
inline constexpr std::size_t kBitpackSlackBytes = 64;

constexpr std::size_t packed_bytes(std::size_t n, unsigned width) noexcept { return (n * width + 7) / 8; }

// out[i] = base + value i, modulo 2^32 or 2^64. May read kBitpackSlackBytes behind the packed_bytes(n, width)
// bytes of `in`, and overwrite as many behind out[n].
void unpack32(const std::byte* in, std::size_t n, unsigned width, std::uint32_t base, std::uint32_t* out) noexcept;
void unpack64(const std::byte* in, std::size_t n, unsigned width, std::uint64_t base, std::uint64_t* out) noexcept;

// Packs the low `width` bits of in[i] - base. Writes exactly packed_bytes(n, width) bytes; unused bits of the
// last one are 0.
void pack32(const std::uint32_t* in, std::size_t n, unsigned width, std::uint32_t base, std::byte* out) noexcept;
void pack64(const std::uint64_t* in, std::size_t n, unsigned width, std::uint64_t base, std::byte* out) noexcept;

// Value i alone. Reads only the bytes the value lies in.
std::uint64_t unpack_one(const std::byte* in, std::size_t i, unsigned width) noexcept;

namespace reference {
void unpack32(const std::byte* in, std::size_t n, unsigned width, std::uint32_t base, std::uint32_t* out) noexcept;
void unpack64(const std::byte* in, std::size_t n, unsigned width, std::uint64_t base, std::uint64_t* out) noexcept;
}  // namespace reference

}  // namespace cdd::simd
