// float32 <-> float16 (as uint16), the only lossy step of the core.
//
// To float16: nearest, ties to even, subnormals kept, overflow to infinity, NaN quieted with the upper
// payload bits. To float32: exact, NaN quieted. Pure kernels: total, noexcept, `std::byte` memory may be
// unaligned. Every SIMD target gives the bits of `reference`, whatever the thread's flush-to-zero mode does
// to subnormal float32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

void float_to_half(const float* in, std::size_t n, std::uint16_t* out) noexcept;
void half_to_float(const std::uint16_t* in, std::size_t n, std::byte* out) noexcept;

// How rows of float16 become float32: item i of row r is, rounded once,
//   in[i] * mids[r] + mids[r]   where price_mask[i] is all ones and mids is not null
//   in[i]                       where price_mask[i] is all ones and mids is null
//   in[i] * size_scale          where price_mask[i] is 0
// NaN stays what half_to_float makes of it.
struct HalfRows {
  std::size_t n_rows;
  std::size_t row_items;
  const std::uint32_t* price_mask;  // row_items
  const float* mids;                // n_rows, or null
  float size_scale;
};
void scale_half_rows(const HalfRows& shape, const std::uint16_t* in, std::byte* out) noexcept;

namespace reference {
void float_to_half(const float* in, std::size_t n, std::uint16_t* out) noexcept;
void half_to_float(const std::uint16_t* in, std::size_t n, std::byte* out) noexcept;
void scale_half_rows(const HalfRows& shape, const std::uint16_t* in, std::byte* out) noexcept;
}  // namespace reference

}  // namespace cdd::simd
