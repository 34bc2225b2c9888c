#include "core/codec/numeric/numeric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"
#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

constexpr std::uint64_t kNoFlags = 0;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  return {as_bytes(values.data()), values.size() * sizeof(T)};
}

// Encodes rows and checks that they come back, whole and in parts; returns the payload's size.
std::size_t round_trip(const RowLayout& layout, Bytes rows, std::uint32_t n_rows) {
  const Encoded encoded = encode(kNumericCodec, layout, rows, n_rows);
  EXPECT_NE(encoded.payload.size(), 0u) << "declined";
  if (encoded.payload.empty()) return 0;
  for (const RowRange range : ranges_of(n_rows)) {
    const Buffer got = decode(kNumericCodec, layout, n_rows, kNoFlags, encoded.payload, range);
    EXPECT_TRUE(same(got, slice(rows, layout, range))) << "rows " << range.first << " + " << range.count;
  }
  return encoded.payload.size();
}

template <class T>
std::size_t round_trip(DType dtype, std::vector<std::uint32_t> dims, const std::vector<T>& values) {
  const RowLayout layout(dtype, dims);
  const Bytes rows = bytes_of(values);
  return round_trip(layout, rows, static_cast<std::uint32_t>(rows.size() / layout.row_bytes()));
}

// Every real array, cut into chunks of several sizes.
void real_arrays(const std::string& folder) {
  CDD_SKIP_WITHOUT_DATA();
  for (const TestArray& array : load_arrays(folder)) {
    SCOPED_TRACE(array.name);
    for (const std::uint32_t chunk_rows : {1u, 7u, 64u, 256u, 1000u, 4096u, 100000u}) {
      // Small chunks are many: look at some of them.
      const std::uint32_t step = chunk_rows * (1 + array.n_rows / chunk_rows / 40);
      for (std::uint32_t first = 0; first < array.n_rows; first += step) {
        const std::uint32_t n = std::min(chunk_rows, array.n_rows - first);
        round_trip(array.layout, array.rows(first, n), n);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// Else a file that another program overwrites while it is mapped, and then restores, may give wrong rows.
TEST(NumericCodec, IsDecodedFromACopyOfWhatOthersMayChange) { EXPECT_FALSE(kNumericCodec.is_light); }

TEST(NumericCodec, RealSeriesSurvive) { real_arrays("series"); }
TEST(NumericCodec, RealBooksSurvive) { real_arrays("lob"); }

constexpr DType kDTypes[] = {Kind::Bool,
                             Kind::Int8,
                             Kind::UInt8,
                             Kind::Int16,
                             Kind::UInt16,
                             Kind::Int32,
                             Kind::UInt32,
                             Kind::Int64,
                             Kind::UInt64,
                             Kind::Float16,
                             Kind::BFloat16,
                             Kind::Float32,
                             Kind::Float64,
                             Kind::Complex64,
                             Kind::Complex128,
                             DType(Kind::Datetime64, 10),
                             DType(Kind::Timedelta64, 9)};

TEST(NumericCodec, RandomBitsOfEveryDTypeAndShapeSurvive) {
  const std::vector<std::vector<std::uint32_t>> shapes = {
      {}, {1}, {2}, {5}, {50, 3}, {3, 300}, {2, 1, 2, 1, 2, 1, 2}, {1, 1, 1, 1, 1, 1, 1}};
  unsigned seed = 0;
  for (const DType dtype : kDTypes) {
    for (const auto& dims : shapes) {
      const RowLayout layout(dtype, dims);
      for (const std::uint32_t n_rows : {1u, 2u, 3u, 64u, 255u, 256u, 257u, 700u}) {
        SCOPED_TRACE(testing::Message()
                     << "dtype " << dtype.code() << " dims " << dims.size() << " rows " << n_rows);
        round_trip(layout, random_bytes(std::size_t{layout.row_bytes()} * n_rows, ++seed), n_rows);
      }
    }
  }
}

// Bytes with few values: runs, constants, alternations at every item size.
TEST(NumericCodec, DegenerateRowsSurviveAndShrink) {
  for (const DType dtype : kDTypes) {
    const RowLayout layout(dtype, std::vector<std::uint32_t>{4});
    const std::size_t size = layout.row_bytes() * 1000u;
    const bool is_complex = dtype.kind() == Kind::Complex64 || dtype.kind() == Kind::Complex128;
    const std::size_t streams = is_complex ? 8 : 4;
    const std::size_t headers = streams * 24;
    const Buffer zeros(size);
    EXPECT_LT(round_trip(layout, zeros, 1000), headers) << dtype.code();
    const Buffer ones(size, std::byte{0xff});
    EXPECT_LT(round_trip(layout, ones, 1000), headers) << dtype.code();
    Buffer alternating(size);
    for (std::size_t i = 0; i < size; ++i)
      alternating[i] = static_cast<std::byte>(i / layout.row_bytes() % 2 * 0x80);
    EXPECT_LT(round_trip(layout, alternating, 1000), streams * 1000 / 8 + 2 * headers) << dtype.code();
    Buffer runs(size);
    for (std::size_t i = 0; i < size; ++i) runs[i] = static_cast<std::byte>(i / 3000);
    round_trip(layout, runs, 1000);
  }
}

TEST(NumericCodec, EveryKindOfFloatSurvivesAmongDecimals) {
  const auto run = [](auto zero, Kind kind) {
    using Float = decltype(zero);
    using Limits = std::numeric_limits<Float>;
    using Bits = std::conditional_t<sizeof(Float) == 8, std::uint64_t, std::uint32_t>;
    const Float odd[] = {
        Limits::quiet_NaN(),
        -Limits::quiet_NaN(),
        Limits::signaling_NaN(),
        std::bit_cast<Float>(static_cast<Bits>(std::bit_cast<Bits>(Limits::quiet_NaN()) | 12345)),
        Limits::infinity(),
        -Limits::infinity(),
        Float{0},
        -Float{0},
        Limits::denorm_min(),
        -Limits::denorm_min(),
        Limits::min(),
        Limits::max(),
        Limits::lowest(),
        Limits::epsilon(),
        static_cast<Float>(1e15),
        static_cast<Float>(-1e15),
        static_cast<Float>(9007199254740993.0)};
    std::mt19937 random(3);
    for (const int every : {1, 3, 20, 400}) {
      std::vector<Float> values;
      for (int i = 0; i < 2000; ++i) {
        const bool is_odd = static_cast<int>(random() % 1000) % every == 0;
        values.push_back(is_odd ? odd[random() % std::size(odd)] : static_cast<Float>(61808.1 + i * 0.01));
      }
      round_trip(kind, {}, values);
      round_trip(kind, {2}, values);
    }
  };
  run(float{}, Kind::Float32);
  run(double{}, Kind::Float64);
}

TEST(NumericCodec, IntegersAtTheirLimitsSurvive) {
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHigh = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> values;
  for (int i = 0; i < 300; ++i) {
    for (const std::int64_t v : {kLow, kHigh, kLow + 1, std::int64_t{0}, std::int64_t{-1}, kHigh - i})
      values.push_back(v);
  }
  round_trip(Kind::Int64, {}, values);
  round_trip(Kind::UInt64, {3}, values);
  round_trip(DType(Kind::Datetime64, 10), {}, std::vector<std::int64_t>(500, kLow));  // NaT
}

TEST(NumericCodec, RegularTimesTakeNoBitsAtAll) {
  for (const std::int64_t step : {60'000LL, 60'000'000LL, 60'000'000'000LL, 1LL, 0LL, -5LL}) {
    std::vector<std::int64_t> times;
    for (std::int64_t i = 0; i < 4096; ++i) times.push_back(1'641'051'660'000'000'000 + i * step);
    EXPECT_LT(round_trip(Kind::Int64, {}, times), 64u) << step;
  }
}

TEST(NumericCodec, AStepThatAllValuesShareIsTakenOut) {
  std::mt19937_64 random(4);
  std::vector<std::int64_t> times;
  for (int i = 0; i < 4096; ++i)
    times.push_back(static_cast<std::int64_t>(random() % 4096) * 1'000'000 + 123);
  EXPECT_LT(round_trip(Kind::Int64, {}, times), 4096 * 12 / 8 + 200u);
  std::vector<double> quarters;
  for (int i = 0; i < 4096; ++i) quarters.push_back(static_cast<double>(random() % 1024) * 0.25);
  EXPECT_LT(round_trip(Kind::Float64, {}, quarters), 4096 * 10 / 8 + 200u);
}

TEST(NumericCodec, AColumnNearAnotherCostsTheirDifference) {
  std::mt19937_64 random(5);
  std::vector<double> rows;
  for (int i = 0; i < 4096; ++i) {
    const double bid = static_cast<double>(600000 + random() % 4096) / 10;
    const double ask = std::round(bid * 10 + 1) / 10;
    rows.insert(rows.end(), {ask, bid});
  }
  EXPECT_LT(round_trip(Kind::Float64, {2}, rows), 4096 * 12 / 8 + 400u);
}

TEST(NumericCodec, BarsThatOpenAtTheLastCloseSurvive) {
  std::mt19937_64 random(6);
  std::vector<double> rows;
  double close = 47000;
  for (int i = 0; i < 3000; ++i) {
    const double open = close;
    close = open + static_cast<double>(random() % 101) - 50;
    rows.insert(rows.end(), {open, std::max(open, close) + static_cast<double>(random() % 9),
                             std::min(open, close) - static_cast<double>(random() % 9), close});
  }
  round_trip(Kind::Float64, {4}, rows);
}

TEST(NumericCodec, DamagedPayloadsDoNoHarm) {
  std::mt19937_64 random(7);
  std::vector<double> prices;
  for (int i = 0; i < 600; ++i)
    prices.push_back(i % 97 == 0 ? NAN : static_cast<double>(1000 + random() % 50) / 100);
  std::vector<std::int64_t> times{1'700'000'000'000};
  for (int i = 1; i < 600; ++i)
    times.push_back(times.back() + (random() % 4 == 0 ? static_cast<int>(random() % 900) : 0));
  std::vector<float> book;
  for (int i = 0; i < 600; ++i) book.push_back(static_cast<float>(i % 10) + static_cast<float>(random() % 3));
  const auto run = [](DType dtype, std::vector<std::uint32_t> dims, Bytes rows) {
    const RowLayout layout(dtype, dims);
    const auto n_rows = static_cast<std::uint32_t>(rows.size() / layout.row_bytes());
    const Encoded encoded = encode(kNumericCodec, layout, rows, n_rows);
    damage_payload(kNumericCodec, layout, n_rows, kNoFlags, encoded.payload);
  };
  run(Kind::Float64, {}, bytes_of(prices));
  run(Kind::Float64, {3}, bytes_of(prices));
  run(Kind::Int64, {}, bytes_of(times));
  run(Kind::Int64, {2}, bytes_of(times));
  run(Kind::Float32, {5, 2}, bytes_of(book));
  run(Kind::Int16, {}, bytes_of(times));
  run(Kind::Bool, {100}, bytes_of(book));
}

TEST(NumericCodec, RandomPayloadsDoNoHarm) {
  const RowLayout layout(Kind::Float32, std::vector<std::uint32_t>{6});
  std::mt19937 random(8);
  for (unsigned i = 0; i < 3000; ++i) {
    Buffer payload = random_bytes(random() % 200 + 4, i);
    payload[0] = std::byte{1};
    payload[1] = static_cast<std::byte>(random() % 10);
    payload[2] = static_cast<std::byte>(std::array{1, 2, 3, 6}[random() % 4]);
    payload[3] &= std::byte{0x1b};
    try {
      decode(kNumericCodec, layout, 1000, kNoFlags, payload, {random() % 500, 300});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Corrupt);
    }
  }
}

}  // namespace
}  // namespace cdd::test
