// Rows of a frame into a row of its next smaller scale: blocks of two along some dimensions become their
// mean, least, greatest or first item.
//
// What rows have come to so far is *held*: one number for each item that comes out. Kernels are pure, total,
// noexcept; memory may lie anywhere. Every SIMD target gives the bytes of `reference`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"

namespace cdd::simd {

enum class Reduction : std::uint8_t {
  Mean,   // integers rounded half up, exactly; floats summed in double
  Min,    // NaN where there is one, as NumPy has it
  Max,    // likewise
  First,  // the item with the lowest indexes
};

// Means of at most so many halvings: sums of 2^8 items of 8 bits fit 16.
inline constexpr unsigned kMostHalvings = 8;

struct RowKernels {
  // From one row, for n items that come out. [1] takes items 2 i and 2 i + 1 for item i, [0] item i.
  using Take = void (*)(const std::byte* row, std::size_t n, std::byte* held) noexcept;
  Take begin[2] = {};
  Take add[2] = {};  // null where what was begun stays
  // What is held, of 2^shift items each, as items. Null where it is those already.
  void (*end)(const std::byte* held, std::size_t n, unsigned shift, std::byte* out) noexcept = nullptr;
  // The same as begin[1], add[1] and end for two rows. Null where there is none.
  void (*two_rows)(const std::byte* row0, const std::byte* row1, std::size_t n,
                   std::byte* out) noexcept = nullptr;
  std::size_t held_bytes = 0;  // of one number; 0: these items cannot be reduced so
};

// bfloat16 and times cannot be reduced, complex items have no least and no greatest.
RowKernels row_kernels(Kind kind, Reduction reduction) noexcept;

namespace reference {
RowKernels row_kernels(Kind kind, Reduction reduction) noexcept;
}  // namespace reference

}  // namespace cdd::simd
