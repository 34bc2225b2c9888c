// The mean of blocks of 2x2 items: what most levels of pyramids are made by.
//
// Pure kernels on plain pointers: total, noexcept, no alignment needed. Every SIMD target gives the bytes of
// `reference`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// out[i] is the mean of items 2 i and 2 i + 1 of both rows, for n of them. Integers are rounded half up;
// floats are summed in double, each row first, and rounded to the nearest.
void mean_2x2(const std::uint8_t* row0, const std::uint8_t* row1, std::size_t n, std::uint8_t* out) noexcept;
void mean_2x2(const std::uint16_t* row0, const std::uint16_t* row1, std::size_t n,
              std::uint16_t* out) noexcept;
void mean_2x2(const float* row0, const float* row1, std::size_t n, float* out) noexcept;

namespace reference {
void mean_2x2(const std::uint8_t* row0, const std::uint8_t* row1, std::size_t n, std::uint8_t* out) noexcept;
void mean_2x2(const std::uint16_t* row0, const std::uint16_t* row1, std::size_t n,
              std::uint16_t* out) noexcept;
void mean_2x2(const float* row0, const float* row1, std::size_t n, float* out) noexcept;
}  // namespace reference

}  // namespace cdd::simd
