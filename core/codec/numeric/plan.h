// NUMERIC, choosing: how many bits a sample would take, and which packing residuals get. Knows integers only,
// neither items nor payload bytes. Residuals are compared as signed numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/codec/numeric/format.h"

namespace cdd::numeric {

// Index of the i-th of `count` probes into n values: all of them in turn if there are no more, else spread
// with a jitter, so that values that alternate do not hide from a regular stride.
inline std::size_t probe(std::size_t i, std::size_t count, std::size_t n) noexcept {
  if (n <= count) return i;
  const std::size_t stride = n / count;
  return i * stride + static_cast<std::uint32_t>(i * 2654435761u) % stride;
}

inline unsigned bit_width(std::uint64_t v) noexcept { return static_cast<unsigned>(std::bit_width(v)); }

// Bits a value of a sample takes when magnitudes are coded ideally: entropy of its bit length around the
// median, and those bits. Good for comparing predictors, blind to repeated values. At most kMostEstimated
// values.
inline constexpr std::size_t kMostEstimated = 128;
double estimate_bits(std::span<const std::int64_t> sample) noexcept;

// How one stream's residuals are packed.
struct Packing {
  unsigned n_bins = 0;           // 0: a base and a width for each block
  simd::NumericBins bins{};      // most frequent first
  std::int64_t window_base = 0;  // without bins: what a block with outliers falls back to
  unsigned window_width = 64;
};

// Residuals that a packing is planned from, at most.
inline constexpr std::size_t kMostSampled = 512;
void sort_sample(std::span<std::int64_t> sample) noexcept;

// The residuals of a stream.
struct Spread {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::size_t values = 0;

  unsigned width() const noexcept {
    return bit_width(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  }
};

// The window and the bins that suit a stream, from a sorted sample of its residuals.
Packing plan_window(std::span<const std::int64_t> sorted) noexcept;
Packing plan_bins(std::span<const std::int64_t> sorted, const Spread& spread) noexcept;

}  // namespace cdd::numeric
