// Every SIMD target of the NUMERIC kernels against their scalar reference, on segments of random bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "core/simd/bitpack.h"
#include "core/simd/numeric/numeric.h"
#include "core/simd/numeric/plan.h"
#include "tests/rig/simd_targets.h"

namespace cdd::simd {
namespace {

template <class T>
struct Api;
template <>
struct Api<std::uint32_t> {
  static constexpr auto decode = decode_numeric32;
  static constexpr auto convert = convert_numeric32;
  static constexpr auto reference_decode = reference::decode_numeric32;
  static constexpr auto reference_convert = reference::convert_numeric32;
  static constexpr NumericItem kItems[] = {NumericItem::Bits8,         NumericItem::Bits16,
                                           NumericItem::Bits32,        NumericItem::Ordered16,
                                           NumericItem::Ordered32,     NumericItem::Float32Quotient,
                                           NumericItem::Float32Product};
};
template <>
struct Api<std::uint64_t> {
  static constexpr auto decode = decode_numeric64;
  static constexpr auto convert = convert_numeric64;
  static constexpr auto reference_decode = reference::decode_numeric64;
  static constexpr auto reference_convert = reference::convert_numeric64;
  static constexpr NumericItem kItems[] = {NumericItem::Bits64, NumericItem::Ordered64,
                                           NumericItem::Float64Quotient, NumericItem::Float64Product};
};

template <class T>
class NumericKernels : public ::testing::Test {};
using Words = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(NumericKernels, Words);

// A segment of up to three blocks whose bits are random, with the memory it points to.
template <class T>
struct RandomSegment {
  std::vector<std::byte> bytes;
  std::vector<NumericBlock> blocks;
  std::vector<T> other;  // the stream it refers to
  NumericBins bins{};
  NumericSegment<T> segment{};

  explicit RandomSegment(std::mt19937_64& random) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    bytes.resize(3 * 4096 + kBitpackSlackBytes);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    const unsigned widest = below(4) == 0 ? 64 : 8 * sizeof(T) - 3;
    for (std::size_t b = 0; b < kNumericMaxBins; ++b) {
      bins.bases[b] = random();
      bins.widths[b] = static_cast<std::uint8_t>(below(widest + 1));
    }
    const std::size_t n_blocks = 1 + below(3);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      NumericBlock block{};
      block.data = bytes.data() + b * 4096;
      block.bytes = below(8) == 0 ? below(600) : 4096;
      block.base = random();
      block.n_values = static_cast<std::uint16_t>(b + 1 == n_blocks ? 1 + below(256) : 256);
      block.n_exceptions = static_cast<std::uint16_t>(below(2) == 0 ? 0 : below(257));
      block.selector_bits = static_cast<std::uint8_t>(below(5));
      block.width = static_cast<std::uint8_t>(below(sizeof(T) * 8 + 1));
      blocks.push_back(block);
    }
    other.resize(n_blocks * kNumericBlockValues + kBitpackSlackBytes / sizeof(T));
    for (T& v : other) v = static_cast<T>(random());
    segment.blocks = blocks.data();
    segment.n_blocks = n_blocks;
    segment.bins = &bins;
    segment.predictor = static_cast<NumericPredictor>(below(5));
    segment.exception_width = static_cast<std::uint8_t>(below(65));
    segment.exception_base = static_cast<T>(random());
    segment.distance = 1 + below(200);
    segment.difference = static_cast<T>(random());
    segment.reference = other.data();
    segment.end = below(4) == 0 ? n_values() : 1 + below(n_values());
    segment.first = below(4) == 0 ? 0 : below(segment.end);
  }
  std::size_t n_values() const { return (blocks.size() - 1) * kNumericBlockValues + blocks.back().n_values; }
};

TYPED_TEST(NumericKernels, SegmentsOfAnyBitsDecodeAsTheReferenceDoes) {
  using T = TypeParam;
  constexpr std::size_t kBefore = 256;
  test::for_each_target([] {
    std::mt19937_64 random(1);
    int decoded = 0;
    for (int i = 0; i < 600; ++i) {
      const RandomSegment<T> r(random);
      std::vector<T> got(kBefore + r.blocks.size() * kNumericBlockValues + kBitpackSlackBytes / sizeof(T));
      for (std::size_t k = 0; k < kBefore; ++k) got[k] = static_cast<T>(random());
      std::vector<T> expected = got;
      const bool ok = Api<T>::reference_decode(r.segment, expected.data() + kBefore);
      ASSERT_EQ(Api<T>::decode(r.segment, got.data() + kBefore), ok) << "segment " << i;
      if (!ok) continue;
      ++decoded;
      const NumericSegment<T>& s = r.segment;
      ASSERT_EQ(std::memcmp(got.data() + kBefore + s.first, expected.data() + kBefore + s.first,
                            (s.end - s.first) * sizeof(T)),
                0)
          << "segment " << i << ", values " << s.first << " to " << s.end;
    }
    EXPECT_GT(decoded, 300);
  });
}

TYPED_TEST(NumericKernels, ItemsConvertAsTheReferenceDoesAndNothingElseIsWritten) {
  using T = TypeParam;
  test::for_each_target([] {
    std::mt19937_64 random(2);
    for (const NumericItem item : Api<T>::kItems) {
      for (const std::size_t stride : {1, 2, 5}) {
        for (const std::size_t n : {0, 1, 7, 8, 16, 31, 64, 255, 256, 257, 700}) {
          std::vector<T> values(n);
          // Magnitudes a double holds exactly, as every encoder writes.
          for (T& v : values)
            v = static_cast<T>(static_cast<std::int64_t>(random()) >> (sizeof(T) == 8 ? 11 : 32));
          NumericConversion c{item};
          if (random() % 2 == 0) {
            c.step = 1 + random() % 7;
            c.offset = random() % 100;
          }
          c.scale = item == NumericItem::Float32Product || item == NumericItem::Float64Product ? 1e-3 : 1e3;
          std::vector<std::byte> got(n * stride * sizeof(T) + 64, std::byte{0x5a});
          std::vector<std::byte> expected = got;
          Api<T>::reference_convert(c, values.data(), n, expected.data(), stride);
          Api<T>::convert(c, values.data(), n, got.data(), stride);
          ASSERT_EQ(got, expected) << "item " << static_cast<int>(item) << " stride " << stride << " n " << n;
        }
      }
    }
  });
}

template <class T>
void value_range(bool plain, const std::vector<T>& values, std::int64_t* low, std::int64_t* high) {
  if constexpr (sizeof(T) == 8) {
    (plain ? simd::reference::value_range64 : simd::value_range64)(values.data(), values.size(), low, high);
  } else {
    (plain ? simd::reference::value_range32 : simd::value_range32)(values.data(), values.size(), low, high);
  }
}

template <class T>
void find_intervals(bool plain, const simd::NumericIntervals& intervals, const std::vector<T>& values,
                    std::vector<std::uint8_t>* ids) {
  if constexpr (sizeof(T) == 8) {
    (plain ? simd::reference::find_intervals64 : simd::find_intervals64)(intervals, values.data(),
                                                                         values.size(), ids->data());
  } else {
    (plain ? simd::reference::find_intervals32 : simd::find_intervals32)(intervals, values.data(),
                                                                         values.size(), ids->data());
  }
}

// Numbers of all magnitudes and both signs.
template <class T>
std::vector<T> numbers(std::mt19937_64& random, std::size_t n) {
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(static_cast<T>(random()) >> random() % (sizeof(T) * 8));
    if (random() % 2 == 0) v = static_cast<T>(T{0} - v);
  }
  return values;
}

TYPED_TEST(NumericKernels, RangesAndIntervalsAreTheReferences) {
  using T = TypeParam;
  using S = std::make_signed_t<T>;
  test::for_each_target([] {
    std::mt19937_64 random(5);
    for (std::size_t n = 1; n < 700; n += 1 + n / 40) {
      const std::vector<T> values = numbers<T>(random, n);
      std::int64_t range[2][2];
      for (const bool plain : {false, true}) value_range(plain, values, &range[plain][0], &range[plain][1]);
      EXPECT_EQ(range[0][0], range[1][0]);
      EXPECT_EQ(range[0][1], range[1][1]);

      simd::NumericIntervals intervals;
      intervals.n = 1 + random() % simd::kMaxIntervals;
      std::vector<T> lows = numbers<T>(random, intervals.n);
      std::sort(lows.begin(), lows.end(), [](T a, T b) { return static_cast<S>(a) < static_cast<S>(b); });
      for (std::size_t k = 0; k < intervals.n; ++k) {
        intervals.lows[k] = static_cast<S>(lows[k]);
        intervals.spans[k] = static_cast<T>(~T{0} >> random() % (sizeof(T) * 8));
        intervals.ids[k] = static_cast<std::uint8_t>((k * 5 + 3) % simd::kMaxIntervals);
      }
      std::vector<std::uint8_t> ids[2] = {std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n)};
      for (const bool plain : {false, true}) find_intervals(plain, intervals, values, &ids[plain]);
      EXPECT_EQ(ids[0], ids[1]);
    }
  });
}

TEST(NumericKernelsPlan, CheapestCutsAreTheReferences) {
  test::for_each_target([] {
    std::mt19937 random(6);
    for (int round = 0; round < 50; ++round) {
      std::int32_t before[simd::kMaxGroups];
      std::int32_t cost[simd::kMaxGroups][simd::kMaxGroups];
      const auto any = [&] { return static_cast<std::int32_t>(random() % (1u << (1 + round % 29))); };
      for (auto& b : before) b = any();
      for (auto& row : cost) {
        for (auto& c : row) c = any();
      }
      std::int32_t got[simd::kMaxGroups];
      std::int32_t expected[simd::kMaxGroups];
      simd::cheapest_cut(before, cost, got);
      simd::reference::cheapest_cut(before, cost, expected);
      EXPECT_TRUE(std::equal(got, got + simd::kMaxGroups, expected));
    }
  });
}

}  // namespace
}  // namespace cdd::simd
