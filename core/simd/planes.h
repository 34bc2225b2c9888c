// Byte planes: plane b holds byte b of every item, so that bytes that change alike lie side by side.
//
// Pure kernels on plain pointers: total, noexcept, no alignment needed, nothing read or written beyond the
// items and their planes. Items are little-endian, item_bytes is 1, 2, 4 or 8. Every SIMD target gives the
// bytes of `reference`.
#pragma once

#include <cstddef>

namespace cdd::simd {

// Plane b of the n items goes to planes + b * stride (stride >= n; item_bytes planes).
void split_planes(const std::byte* items, std::size_t n, std::size_t item_bytes, std::byte* planes,
                  std::size_t stride) noexcept;

// The inverse: n items from planes + b * stride.
void join_planes(const std::byte* planes, std::size_t stride, std::size_t n, std::size_t item_bytes,
                 std::byte* items) noexcept;

namespace reference {
void split_planes(const std::byte* items, std::size_t n, std::size_t item_bytes, std::byte* planes,
                  std::size_t stride) noexcept;
void join_planes(const std::byte* planes, std::size_t stride, std::size_t n, std::size_t item_bytes,
                 std::byte* items) noexcept;
}  // namespace reference

}  // namespace cdd::simd
