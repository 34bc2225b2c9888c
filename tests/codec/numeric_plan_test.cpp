// Bins that NUMERIC plans from a sample: each value of the sample has one, no two share a value, and what a
// stream then takes comes near to what it must.
#include "core/codec/numeric/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace cdd::numeric {
namespace {

using Values = std::vector<std::int64_t>;

struct Interval {
  std::int64_t low;
  std::uint64_t span;

  bool has(std::int64_t v) const {
    return v >= low && static_cast<std::uint64_t>(v) - static_cast<std::uint64_t>(low) <= span;
  }
};

std::vector<Interval> bins_of(const Packing& packing) {
  std::vector<Interval> bins;
  for (unsigned b = 0; b < packing.n_bins; ++b) {
    const unsigned width = packing.bins.widths[b];
    EXPECT_LE(width, 64u);
    bins.push_back({static_cast<std::int64_t>(packing.bins.bases[b]),
                    width == 0 ? 0 : ~std::uint64_t{0} >> (64 - width)});
  }
  std::sort(bins.begin(), bins.end(), [](const auto& a, const auto& b) { return a.low < b.low; });
  return bins;
}

// The value `v` belongs to the last bin that begins at or below it, which is where encoders look.
bool is_binned(const std::vector<Interval>& bins, std::int64_t v) {
  const auto behind =
      std::upper_bound(bins.begin(), bins.end(), v, [](auto x, const Interval& bin) { return x < bin.low; });
  return behind != bins.begin() && (behind - 1)->has(v);
}

std::vector<Values> streams() {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::mt19937_64 random(11);
  std::vector<Values> all = {Values(300, 7), {kLeast, kMost, 0, -1, 1}, {kMost, kMost - 1, kMost}, {3}};
  for (int round = 0; round < 60; ++round) {
    Values values(1 + static_cast<std::size_t>(random() % 3000));
    const auto kind = static_cast<unsigned>(random() % 5);
    const auto shift = static_cast<unsigned>(1 + random() % 62);
    for (std::int64_t& v : values) {
      const std::uint64_t bits = random();
      if (kind == 0) v = static_cast<std::int64_t>(bits);
      if (kind == 1) v = static_cast<std::int64_t>(bits) >> shift;
      if (kind == 2) v = static_cast<std::int64_t>(bits) >> (bits % 64);
      if (kind == 3) v = static_cast<std::int64_t>(bits % 5 == 0 ? bits >> shift : bits % 3);
      if (kind == 4)
        v = (bits % 2 == 0 ? kLeast : kMost) -
            static_cast<std::int64_t>(bits >> 40) * (bits % 2 == 0 ? -1 : 1);
    }
    all.push_back(std::move(values));
  }
  return all;
}

Packing plan_of(const Values& values, Values* sample) {
  const std::size_t step = values.size() / 400 + 1;
  for (std::size_t i = 0; i < values.size(); i += step) sample->push_back(values[i]);
  sort_sample(*sample);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return plan_bins(*sample, {*low, *high, values.size()});
}

TEST(NumericPlan, BinsHoldTheSampleAndDoNotOverlap) {
  for (const Values& values : streams()) {
    Values sample;
    const std::vector<Interval> bins = bins_of(plan_of(values, &sample));
    ASSERT_FALSE(bins.empty());
    for (const std::int64_t v : sample) EXPECT_TRUE(is_binned(bins, v)) << v;
    for (std::size_t b = 1; b < bins.size(); ++b) EXPECT_LT(bins[b - 1].low, bins[b].low);
  }
}

// Times between independent events: the bins leave out few, and take little more than the entropy.
TEST(NumericPlan, BinsComeNearToTheEntropy) {
  std::mt19937_64 random(12);
  for (const double scale : {1e4, 1e6, 1e8}) {
    Values values(8000);
    for (std::int64_t& v : values) {
      const double even = static_cast<double>(random() >> 11) * 0x1p-53;
      v = static_cast<std::int64_t>(-std::log(1 - even) * scale);
    }
    Values sample;
    const Packing packing = plan_of(values, &sample);
    const std::vector<Interval> bins = bins_of(packing);
    double bits = 0;
    for (const std::int64_t v : values) {
      const double selector = bit_width(packing.n_bins - 1);
      double offset = 60;  // about what an exception takes
      for (const Interval& bin : bins) {
        if (bin.has(v)) offset = bit_width(bin.span);
      }
      bits += selector + offset;
    }
    EXPECT_LT(bits / static_cast<double>(values.size()), std::log2(std::exp(1.0) * scale) + 0.7);
  }
}

}  // namespace
}  // namespace cdd::numeric
