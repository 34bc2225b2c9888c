#include "core/codec/numeric/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/simd/numeric/plan.h"

namespace cdd::numeric {
namespace {

using simd::kMaxGroups;                // runs of sorted values that the search for bins does not split
constexpr double kBinHeaderBits = 24;  // a bin's share of the stream header, roughly

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

std::uint64_t mask_of(unsigned width) noexcept { return width == 0 ? 0 : ~std::uint64_t{0} >> (64 - width); }

std::uint64_t distance(std::int64_t from, std::int64_t to) noexcept {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

// Values [first, end) of the sorted sample.
struct Bin {
  std::size_t first;
  std::size_t end;
};

// Moves the border between two neighbours to where they take fewest bits: the groups are too coarse for bins
// to fill the powers of two that they span.
void settle(std::span<const std::int64_t> sorted, Bin* low, Bin* high) noexcept {
  const std::size_t first = low->first;
  const std::size_t end = high->end;
  const auto bits = [&](std::size_t border) {
    return (border - first) * range_width(sorted[first], sorted[border - 1]) +
           (end - border) * range_width(sorted[border], sorted[end - 1]);
  };
  std::size_t best = low->end;
  std::size_t best_bits = bits(best);
  const auto consider = [&](std::size_t border) {
    if (bits(border) >= best_bits) return;
    best = border;
    best_bits = bits(border);
  };
  // Where one of them fills what it spans; the other one may then be narrower.
  const std::uint64_t low_span = mask_of(range_width(sorted[first], sorted[best - 1]));
  const std::uint64_t high_span = mask_of(range_width(sorted[best], sorted[end - 1]));
  std::size_t border = best;
  while (border < end - 1 && distance(sorted[first], sorted[border]) <= low_span) ++border;
  consider(border);
  border = high->first;
  while (border > first + 1 && distance(sorted[border - 1], sorted[end - 1]) <= high_span) --border;
  consider(border);
  low->end = high->first = best;
}

// Where each bin begins and how far it reaches. What it spans beyond its values in the sample goes to where
// others are likely, and it becomes wider where that takes fewer bits than the exceptions to be expected
// there: as many as values of the sample, were it all of the stream.
Packing packing_of(std::span<const std::int64_t> sorted, std::span<const Bin> bins,
                   const Spread& spread) noexcept {
  struct Placed {
    std::int64_t base;
    unsigned width;
    std::size_t count;
  };
  std::array<Placed, kMaxBins> placed;
  const double unseen = 1 - static_cast<double>(sorted.size()) / static_cast<double>(spread.values);
  const double exception_bits = unseen * (8 + range_width(sorted.front(), sorted.back()));
  const auto added_bits = [](const Placed& bin, unsigned width) {
    return width <= bin.width ? 0.0 : static_cast<double>((width - bin.width) * bin.count);
  };
  for (std::size_t m = 0; m < bins.size(); ++m) {
    const std::int64_t low = sorted[bins[m].first];
    const std::int64_t high = sorted[bins[m].end - 1];
    Placed& bin = placed[m];
    bin = {low, range_width(low, high), bins[m].end - bins[m].first};
    Placed* const before = m == 0 ? nullptr : &placed[m - 1];
    const auto gap_to = [&] {  // values between the bin before and `low`
      if (before == nullptr) return distance(spread.low, low);
      const std::uint64_t all = distance(before->base, low) - 1;
      return all - std::min(all, mask_of(before->width));
    };
    const std::uint64_t slack = mask_of(bin.width) - distance(low, high);
    if (gap_to() > slack) {
      const unsigned down = bit_width(distance(low, high) + gap_to());
      const unsigned up = before == nullptr ? down : bit_width(distance(before->base, low) - 1 - slack);
      const double down_bits = added_bits(bin, down);
      const double up_bits = before == nullptr ? down_bits : added_bits(*before, up);
      if (std::min(down_bits, up_bits) < exception_bits) {
        (down_bits <= up_bits ? bin.width : before->width) = down_bits <= up_bits ? down : up;
      }
    }
    const std::uint64_t room = mask_of(bin.width) - distance(low, high);
    bin.base = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) - std::min(room, gap_to()));
  }
  Placed& last = placed[bins.size() - 1];
  const unsigned whole = bit_width(distance(last.base, spread.high));
  if (added_bits(last, whole) < exception_bits) last.width = std::max(last.width, whole);

  const auto used = placed.begin() + static_cast<std::ptrdiff_t>(bins.size());
  std::sort(placed.begin(), used, [](const Placed& a, const Placed& b) { return a.count > b.count; });
  Packing packing;
  packing.n_bins = static_cast<unsigned>(bins.size());
  for (std::size_t b = 0; b < bins.size(); ++b) {
    packing.bins.bases[b] = static_cast<std::uint64_t>(placed[b].base);
    packing.bins.widths[b] = static_cast<std::uint8_t>(placed[b].width);
  }
  return packing;
}

std::int64_t middle(std::int64_t a, std::int64_t b, std::int64_t c) noexcept {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// About the middle one of the values: of a few of them, the middle one of the middle ones of each three.
// Without branches, which would be taken at random.
std::uint64_t rough_median(std::span<const std::int64_t> sample) noexcept {
  std::array<std::int64_t, 5> m;
  const auto at = [&](std::size_t i) { return sample[i * sample.size() / 15]; };
  for (std::size_t i = 0; i < m.size(); ++i) m[i] = middle(at(i), at(i + 5), at(i + 10));
  // Of five, the least and the most of the first four cannot be the middle one.
  const std::int64_t low = std::max(std::min(m[0], m[1]), std::min(m[2], m[3]));
  const std::int64_t high = std::min(std::max(m[0], m[1]), std::max(m[2], m[3]));
  return static_cast<std::uint64_t>(middle(low, high, m[4]));
}

}  // namespace

double estimate_bits(std::span<const std::int64_t> sample) noexcept {
  if (sample.empty()) return 0;
  static const auto kCountLog2 = [] {
    std::array<float, kMostEstimated + 1> table{};
    for (std::size_t i = 1; i < table.size(); ++i) table[i] = std::log2(static_cast<float>(i));
    return table;
  }();
  const std::uint64_t centre = rough_median(sample);
  std::array<std::uint16_t, 65> counts{};
  unsigned widest = 0;
  for (const std::int64_t v : sample) {
    const unsigned width = bit_width(zigzag(static_cast<std::uint64_t>(v) - centre));
    ++counts[width];
    widest = std::max(widest, width);
  }
  const float all = kCountLog2[sample.size()];
  float bits = 0;
  for (unsigned w = 0; w <= widest; ++w) {
    const auto count = static_cast<float>(counts[w]);
    bits += count * (static_cast<float>(w == 0 ? 0 : w - 1) + all - kCountLog2[counts[w]]);
  }
  return static_cast<double>(bits) / static_cast<double>(sample.size());
}

void sort_sample(std::span<std::int64_t> sample) noexcept {
  constexpr std::size_t kRadix = 256;
  constexpr unsigned kMostPasses = 8;
  const auto [low, high] = std::minmax_element(sample.begin(), sample.end());
  const auto base = static_cast<std::uint64_t>(*low);
  const unsigned passes = (range_width(*low, *high) + 7) / 8;
  if (passes > kMostPasses || sample.size() > kMostSampled) return std::sort(sample.begin(), sample.end());
  std::array<std::int64_t, kMostSampled> other;
  std::span<std::int64_t> from = sample;
  std::span<std::int64_t> to(other.data(), sample.size());
  for (unsigned pass = 0; pass < passes; ++pass) {
    const auto digit = [&](std::int64_t v) {
      return static_cast<std::size_t>((static_cast<std::uint64_t>(v) - base) >> 8 * pass & (kRadix - 1));
    };
    std::array<std::uint16_t, kRadix> next{};
    for (const std::int64_t v : from) ++next[digit(v)];
    std::uint16_t sum = 0;
    for (std::uint16_t& n : next) sum = static_cast<std::uint16_t>(sum + std::exchange(n, sum));
    for (const std::int64_t v : from) to[next[digit(v)]++] = v;
    std::swap(from, to);
  }
  if (passes % 2 != 0) std::copy(from.begin(), from.end(), sample.begin());
}

Packing plan_window(std::span<const std::int64_t> sorted) noexcept {
  Packing packing;
  const std::size_t n = sorted.size();
  const unsigned full = range_width(sorted.front(), sorted.back());
  double best = 0;
  for (std::size_t below = 0; below < n / 4; below = below * 2 + 1) {
    for (std::size_t above = 0; above < n / 4; above = above * 2 + 1) {
      const unsigned width = range_width(sorted[below], sorted[n - 1 - above]);
      const double bits = static_cast<double>(n * width + (below + above) * (8 + full));
      if (below + above != 0 && bits >= best) continue;
      best = bits;
      packing.window_base = sorted[below];
      packing.window_width = width;
    }
  }
  return packing;
}

Packing plan_bins(std::span<const std::int64_t> sorted, const Spread& spread) noexcept {
  std::array<Group, kMaxGroups> groups;
  const std::size_t n = group(sorted, &groups);
  const double scale = static_cast<double>(spread.values) / static_cast<double>(sorted.size());

  // best[m][j]: fewest offset bits for groups [0, j] in m + 1 bins, and modulo kPlace where the last of
  // these bins starts: one minimum finds both. At most 512 values of 64 bits, so 32 bits are plenty.
  constexpr std::int32_t kPlace = kMaxGroups;
  constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max() / 4;
  static_assert(kMostSampled * 64 * kPlace < kNever);
  std::int32_t best[kMaxBins][kMaxGroups];
  std::int32_t cost[kMaxGroups][kMaxGroups];
  for (std::size_t i = 0; i < kMaxGroups; ++i) {
    std::fill(cost[i], cost[i] + kMaxGroups, kNever);
    std::size_t count = 0;
    for (std::size_t j = i; j < n; ++j) {
      count += groups[j].count;
      cost[i][j] = static_cast<std::int32_t>(count * range_width(groups[i].low, groups[j].high)) * kPlace;
    }
  }
  std::size_t chosen = 0;
  double chosen_bits = 0;
  for (std::size_t m = 0; m < std::min(kMaxBins, n); ++m) {
    std::int32_t before[kMaxGroups];
    std::fill(before, before + kMaxGroups, kNever);
    if (m == 0) before[0] = 0;
    for (std::size_t i = m; m > 0 && i < n; ++i)
      before[i] = best[m - 1][i - 1] / kPlace * kPlace + static_cast<std::int32_t>(i);
    simd::cheapest_cut(before, cost, best[m]);
    const double bits = scale * (best[m][n - 1] / kPlace) +
                        static_cast<double>(spread.values) * bit_width(m) +
                        static_cast<double>(m + 1) * kBinHeaderBits;
    if (m == 0 || bits < chosen_bits) {
      chosen = m;
      chosen_bits = bits;
    } else if (m > 2 * chosen + 3) {
      break;  // more selector bits did not pay twice
    }
  }

  std::array<std::size_t, kMaxGroups + 1> starts{};  // of groups, in `sorted`
  for (std::size_t i = 0; i < n; ++i) starts[i + 1] = starts[i] + groups[i].count;
  std::array<Bin, kMaxBins> bins;
  std::size_t end = n;
  for (std::size_t m = chosen + 1; m-- > 0;) {
    const auto start = static_cast<std::size_t>(best[m][end - 1] % kPlace);
    bins[m] = {starts[start], starts[end]};
    end = start;
  }
  const std::span<Bin> used(bins.data(), chosen + 1);
  for (std::size_t m = 0; m < chosen; ++m) settle(sorted, &used[m], &used[m + 1]);
  return packing_of(sorted, used, spread);
}

}  // namespace cdd::numeric
