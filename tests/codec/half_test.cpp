#include "core/simd/half.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> halves(65536);
  for (unsigned i = 0; i < 65536; ++i) halves[i] = static_cast<std::uint16_t>(i);
  return halves;
}

std::vector<float> widened(const std::vector<std::uint16_t>& halves) {
  std::vector<float> floats(halves.size());
  simd::reference::half_to_float(halves.data(), halves.size(), as_bytes(floats.data()));
  return floats;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return same({as_bytes(a.data()), a.size() * 4}, {as_bytes(b.data()), b.size() * 4});
}

// Every float16, its neighbours in float32, the midpoints between float16s and their neighbours, the edges of
// float32, NaNs with payloads, and random bits.
std::vector<float> hard_floats() {
  std::vector<float> floats;
  const std::vector<float> halves = widened(all_halves());
  const auto with_neighbours = [&](float v) {
    const auto bits = std::bit_cast<std::uint32_t>(v);
    for (const int step : {-1, 0, 1})
      floats.push_back(std::bit_cast<float>(bits + static_cast<unsigned>(step)));
  };
  for (std::size_t i = 0; i < halves.size(); ++i) {
    with_neighbours(halves[i]);
    if (i + 1 < halves.size() && std::isfinite(halves[i]) && std::isfinite(halves[i + 1])) {
      with_neighbours((halves[i] + halves[i + 1]) / 2);
    }
  }
  for (const float v :
       {65504.0f, 65519.996f, 65520.0f, 65536.0f, 1e38f, 1e-38f, 1e-45f, 0x1p-25f, 0x1.8p-25f}) {
    with_neighbours(v);
    with_neighbours(-v);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i)
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return floats;
}

TEST(Half, ReferenceGivesPublishedValues) {
  // IEEE 754 binary16: the extremes, ties to even in both directions, and what must survive as such.
  const struct {
    float value;
    std::uint16_t half;
  } kKnown[] = {{0.0f, 0x0000},
                {-0.0f, 0x8000},
                {1.0f, 0x3c00},
                {-2.0f, 0xc000},
                {65504.0f, 0x7bff},
                {65519.0f, 0x7bff},
                {65520.0f, 0x7c00},
                {0x1p-14f, 0x0400},
                {0x1p-24f, 0x0001},
                {0x1p-25f, 0x0000},
                {0x1.8p-24f, 0x0002},
                {1.0f + 0x1p-11f, 0x3c00},
                {1.0f + 0x3p-11f, 0x3c02},
                {0.1f, 0x2e66},
                {0x1.ff8p-15f, 0x03ff},
                {0x1.ffcp-15f, 0x0400},
                {std::numeric_limits<float>::infinity(), 0x7c00}};
  for (const auto& known : kKnown) {
    std::uint16_t half = 0;
    simd::reference::float_to_half(&known.value, 1, &half);
    EXPECT_EQ(half, known.half) << known.value;
  }
}

TEST(Half, ReferenceRoundTripsEveryHalf) {
  const std::vector<std::uint16_t> halves = all_halves();
  std::vector<std::uint16_t> back(halves.size());
  simd::reference::float_to_half(widened(halves).data(), halves.size(), back.data());
  for (unsigned i = 0; i < 65536; ++i) {
    const bool nan = (i & 0x7fff) > 0x7c00;
    ASSERT_EQ(back[i], nan ? i | 0x200 : i);
  }
}

TEST(Half, EveryTargetConvertsAsTheReference) {
  const std::vector<float> floats = hard_floats();
  const std::vector<std::uint16_t> halves = all_halves();
  std::vector<std::uint16_t> expected(floats.size());
  simd::reference::float_to_half(floats.data(), floats.size(), expected.data());
  for_each_target([&] {
    std::vector<std::uint16_t> narrow(floats.size());
    simd::float_to_half(floats.data(), floats.size(), narrow.data());
    ASSERT_EQ(narrow, expected);
    std::vector<float> wide(halves.size());
    simd::half_to_float(halves.data(), halves.size(), as_bytes(wide.data()));
    ASSERT_TRUE(same_bits(wide, widened(halves)));
    for (std::size_t n = 0; n < 40; ++n) {  // the ends of arrays
      std::vector<std::uint16_t> some(n);
      simd::float_to_half(floats.data() + 3000, n, some.data());
      ASSERT_TRUE(std::equal(some.begin(), some.end(), expected.begin() + 3000));
      std::vector<float> back(n);
      simd::half_to_float(some.data(), n, as_bytes(back.data()));
      ASSERT_TRUE(same_bits(back, widened(some)));
    }
  });
}

TEST(Half, EveryTargetScalesRowsAsTheReference) {
  std::mt19937 random(2);
  for (const std::size_t features : {1u, 2u, 3u, 5u}) {
    const std::size_t row_items = 17 * features;
    const std::size_t n_rows = 4000;
    std::vector<std::uint16_t> halves(n_rows * row_items);
    for (auto& h : halves) h = static_cast<std::uint16_t>(random());
    std::vector<std::uint32_t> mask(row_items);
    for (std::size_t i = 0; i < row_items; i += features) mask[i] = ~0u;
    std::vector<float> mids(n_rows);
    for (float& mid : mids)
      mid = std::bit_cast<float>((static_cast<std::uint32_t>(random()) & 0x807fffff) | 0x3a000000 |
                                 (static_cast<std::uint32_t>(random()) & 0x07000000));
    for (const float* row_mids :
         {static_cast<const float*>(mids.data()), static_cast<const float*>(nullptr)}) {
      const simd::HalfRows shape{n_rows, row_items, mask.data(), row_mids, 1234.567f};
      std::vector<float> expected(halves.size());
      simd::reference::scale_half_rows(shape, halves.data(), as_bytes(expected.data()));
      for_each_target([&] {
        std::vector<float> got(halves.size());
        simd::scale_half_rows(shape, halves.data(), as_bytes(got.data()));
        ASSERT_TRUE(same_bits(got, expected)) << features;
      });
    }
  }
}

}  // namespace
}  // namespace cdd::test
