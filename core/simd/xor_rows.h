// Rows XORed with the row before and split into byte planes, and back, in one pass.
//
// Every segment_rows-th row, from row 0 on, is a start row: it is kept as it is, so joining can begin there.
// Planes are those of planes.h over all items of all rows, so plane b starts at b * n_rows * row_items. Pure
// kernels: total, noexcept, no alignment needed. Every SIMD target gives the bytes of `reference`.
#pragma once

#include <cstddef>

namespace cdd::simd {

struct XorRows {
  std::size_t n_rows;
  std::size_t row_items;
  std::size_t item_bytes;    // 2, 4 or 8
  std::size_t segment_rows;  // at least 1
};

void split_xor_rows(const XorRows& shape, const std::byte* rows, std::byte* planes) noexcept;

// Writes rows [first, first + count) to `out`; the range is within n_rows.
void join_xor_rows(const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
                   std::byte* out) noexcept;

namespace reference {
void split_xor_rows(const XorRows& shape, const std::byte* rows, std::byte* planes) noexcept;
void join_xor_rows(const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
                   std::byte* out) noexcept;
}  // namespace reference

}  // namespace cdd::simd
