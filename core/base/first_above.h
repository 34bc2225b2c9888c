// Looking for a number among ends that do not decrease, from a guess on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cdd {

// Where among evenly spaced ones `value` stands, of which there are so many in 1: a guess. Signed numbers
// take an instruction each to convert.
inline std::size_t proportional(std::uint64_t value, double in_one) noexcept {
  const double guess = static_cast<double>(static_cast<std::int64_t>(value)) * in_one;
  return static_cast<std::size_t>(static_cast<std::int64_t>(guess));
}

// Number of the first of `ends` that is above `value`; how many there are where none is. What is about evenly
// spaced is guessed right, or nearly: then no more is touched than what lies there.
inline std::size_t first_above(std::span<const std::uint64_t> ends, std::uint64_t value,
                               std::size_t guess) noexcept {
  constexpr int kNear = 4;
  std::size_t at = std::min(guess, ends.size());
  for (int looks = 0; looks < kNear; ++looks) {
    if (at < ends.size() && ends[at] <= value) {
      ++at;
    } else if (at > 0 && ends[at - 1] > value) {
      --at;
    } else {
      return at;
    }
  }
  return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), value) - ends.begin());
}

}  // namespace cdd
