// Kernels of NUMERIC's encoder: what planning a stream's packing does to every value.
//
// They choose nothing. Residuals are compared as signed numbers. All functions are noexcept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// The smallest and the largest of n > 0 values.
void value_range32(const std::uint32_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept;
void value_range64(const std::uint64_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept;

// Intervals [lows[k], lows[k] + spans[k]], lows ascending, at least one. A value belongs to the last that
// begins at or below it, if that reaches so far.
inline constexpr std::size_t kMaxIntervals = 16;
inline constexpr std::uint8_t kNoInterval = kMaxIntervals;
struct NumericIntervals {
  std::size_t n = 0;
  std::int64_t lows[kMaxIntervals];
  std::uint64_t spans[kMaxIntervals];
  std::uint8_t ids[kMaxIntervals];
};

// ids[i] = the id of the interval that values[i] belongs to, kNoInterval for none. Lows and spans of 32-bit
// values fit 32 bits.
void find_intervals32(const NumericIntervals& intervals, const std::uint32_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept;
void find_intervals64(const NumericIntervals& intervals, const std::uint64_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept;

// One step of finding the cheapest cut of groups into bins: after[j] = the smallest of before[i] + cost[i][j]
// over all i. Costs that must not be chosen are large, no sum exceeds 31 bits.
inline constexpr std::size_t kMaxGroups = 32;
void cheapest_cut(const std::int32_t (&before)[kMaxGroups],
                  const std::int32_t (&cost)[kMaxGroups][kMaxGroups],
                  std::int32_t (&after)[kMaxGroups]) noexcept;

namespace reference {
void value_range32(const std::uint32_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept;
void value_range64(const std::uint64_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept;
void find_intervals32(const NumericIntervals& intervals, const std::uint32_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept;
void find_intervals64(const NumericIntervals& intervals, const std::uint64_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept;
void cheapest_cut(const std::int32_t (&before)[kMaxGroups],
                  const std::int32_t (&cost)[kMaxGroups][kMaxGroups],
                  std::int32_t (&after)[kMaxGroups]) noexcept;
}  // namespace reference

}  // namespace cdd::simd
