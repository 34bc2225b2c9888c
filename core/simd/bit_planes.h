// Bit planes: bit k of every byte side by side, as the bitshuffle of blosc has them.
//
// Pure kernels on plain pointers: total, noexcept, no alignment needed. Every SIMD target gives the bytes of
// `reference`.
#pragma once

#include <cstddef>

namespace cdd::simd {

// Bit k of byte i goes to bit i % 8 of planes[k * (n / 8) + i / 8]. `n` is a multiple of 8.
void split_bits(const std::byte* bytes, std::size_t n, std::byte* planes) noexcept;

// The inverse.
void join_bits(const std::byte* planes, std::size_t n, std::byte* bytes) noexcept;

namespace reference {
void split_bits(const std::byte* bytes, std::size_t n, std::byte* planes) noexcept;
void join_bits(const std::byte* planes, std::size_t n, std::byte* bytes) noexcept;
}  // namespace reference

}  // namespace cdd::simd
