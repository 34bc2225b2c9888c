#include "core/codec/numeric_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace cdd::numeric {
namespace {

constexpr std::size_t kMaxGroups = 40;  // runs of sorted values that the search for bins does not split
constexpr double kBinHeaderBits = 24;   // a bin's share of the stream header, roughly

struct Group {
  std::int64_t low;
  std::int64_t high;
  std::size_t count;
};

unsigned range_width(std::int64_t low, std::int64_t high) noexcept {
  return bit_width(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
}

// Splits sorted values into groups of about equal size; equal values stay together.
std::size_t group(std::span<const std::int64_t> sorted, std::array<Group, kMaxGroups>* groups) noexcept {
  std::size_t n = 0;
  const std::size_t target = sorted.size() / (kMaxGroups - 8) + 1;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i;
    while (end < sorted.size() && (end - i < target || n + 1 == kMaxGroups)) {
      const std::int64_t value = sorted[end];
      std::size_t run = end;
      while (run < sorted.size() && sorted[run] == value) ++run;
      if (run - end >= target && end != i && n + 2 < kMaxGroups)
        break;  // a frequent value starts its own group
      end = run;
    }
    (*groups)[n++] = {sorted[i], sorted[end - 1], end - i};
    i = end;
  }
  return n;
}

}  // namespace

double estimate_bits(Sample sample) noexcept {
  if (sample.empty()) return 0;
  const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
  std::nth_element(sample.begin(), middle, sample.end());
  const auto centre = static_cast<std::uint64_t>(*middle);
  std::array<std::uint32_t, 65> counts{};
  for (const std::int64_t v : sample) ++counts[bit_width(zigzag(static_cast<std::uint64_t>(v) - centre))];
  const auto n = static_cast<double>(sample.size());
  double bits = 0;
  for (unsigned w = 0; w < counts.size(); ++w) {
    if (counts[w] == 0) continue;
    bits += counts[w] * ((w == 0 ? 0 : w - 1) + std::log2(n / counts[w]));
  }
  return bits / n;
}

Packing plan_window(Sample sorted) noexcept {
  Packing packing;
  const std::size_t n = sorted.size();
  const unsigned full = range_width(sorted.front(), sorted.back());
  packing.window_base = sorted.front();
  packing.window_width = full;
  double best = static_cast<double>(n) * full;
  for (unsigned width = 0; width < full; ++width) {
    std::size_t most = 0;
    std::size_t most_at = 0;
    for (std::size_t low = 0, high = 0; high < n; ++high) {
      while (range_width(sorted[low], sorted[high]) > width) ++low;
      if (high - low + 1 > most) {
        most = high - low + 1;
        most_at = low;
      }
    }
    const double bits = static_cast<double>(n) * width + static_cast<double>(n - most) * (8 + full);
    if (bits < best) {
      best = bits;
      packing.window_base = sorted[most_at];
      packing.window_width = width;
    }
  }
  return packing;
}

Packing plan_bins(Sample sorted, std::size_t n_values) noexcept {
  std::array<Group, kMaxGroups> groups;
  const std::size_t n = group(sorted, &groups);
  const double scale = static_cast<double>(n_values) / static_cast<double>(sorted.size());

  // best[m][j]: fewest offset bits for groups [0, j] in m + 1 bins; from[m][j]: where the last bin starts.
  std::array<std::array<double, kMaxGroups>, kMaxBins> best;
  std::array<std::array<std::uint8_t, kMaxGroups>, kMaxBins> from;
  std::array<std::array<double, kMaxGroups>, kMaxGroups> cost;
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t count = 0;
    for (std::size_t j = i; j < n; ++j) {
      count += groups[j].count;
      cost[i][j] = static_cast<double>(count) * range_width(groups[i].low, groups[j].high);
    }
  }
  std::size_t chosen = 0;
  double chosen_bits = 0;
  for (std::size_t m = 0; m < std::min(kMaxBins, n); ++m) {
    for (std::size_t j = m; j < n; ++j) {
      best[m][j] = cost[0][j];
      from[m][j] = 0;
      for (std::size_t i = m; m != 0 && i <= j; ++i) {
        const double bits = best[m - 1][i - 1] + cost[i][j];
        if (bits < best[m][j] || i == m) {
          best[m][j] = bits;
          from[m][j] = static_cast<std::uint8_t>(i);
        }
      }
    }
    const unsigned selector_bits = bit_width(m);
    const double bits = scale * best[m][n - 1] + static_cast<double>(n_values) * selector_bits +
                        static_cast<double>(m + 1) * kBinHeaderBits;
    if (m == 0 || bits < chosen_bits) {
      chosen = m;
      chosen_bits = bits;
    }
  }

  std::array<Group, kMaxBins> bins;
  std::size_t end = n - 1;
  for (std::size_t m = chosen + 1; m-- > 0;) {
    const std::size_t start = m == 0 ? 0 : from[m][end];
    bins[m] = {groups[start].low, groups[end].high, 0};
    for (std::size_t i = start; i <= end; ++i) bins[m].count += groups[i].count;
    end = start - 1;
  }
  std::sort(bins.begin(), bins.begin() + static_cast<std::ptrdiff_t>(chosen + 1),
            [](const Group& a, const Group& b) { return a.count > b.count; });
  Packing packing;
  packing.n_bins = static_cast<unsigned>(chosen + 1);
  for (std::size_t b = 0; b < packing.n_bins; ++b) {
    packing.bins.bases[b] = static_cast<std::uint64_t>(bins[b].low);
    packing.bins.widths[b] = static_cast<std::uint8_t>(range_width(bins[b].low, bins[b].high));
  }
  return packing;
}

}  // namespace cdd::numeric
