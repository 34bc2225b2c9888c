#include "core/codec/levels/levels.h"

#include "core/simd/levels/levels.h"
#include "tests/rig/levels_rig.h"
#include "tests/rig/simd_targets.h"
#include "tests/rig/test_data.h"

namespace cdd {
namespace {

using namespace levels_rig;
using test::for_each_target;

TEST(Levels, AcceptsBooksOnly) {
  EXPECT_TRUE(kLevelsCodec.accepts(layout_of(Kind::Float32, 50, 3)));
  EXPECT_TRUE(kLevelsCodec.accepts(layout_of(Kind::Float64, 4096, 64)));
  EXPECT_TRUE(kLevelsCodec.accepts(layout_of(Kind::Int64, 1, 1)));
  EXPECT_FALSE(kLevelsCodec.accepts(layout_of(Kind::Float32, 4097, 1)));
  EXPECT_FALSE(kLevelsCodec.accepts(layout_of(Kind::Float32, 1, 65)));
  EXPECT_FALSE(kLevelsCodec.accepts(layout_of(Kind::Float16, 50, 3)));
  const std::uint32_t one[] = {50}, three[] = {50, 3, 1};
  EXPECT_FALSE(kLevelsCodec.accepts(RowLayout(Kind::Float32, one)));
  EXPECT_FALSE(kLevelsCodec.accepts(RowLayout(Kind::Float32, three)));
}

TEST(Levels, RealBooks) {
  CDD_SKIP_WITHOUT_DATA();
  for (const test::TestArray& a : test::load_arrays("lob")) {
    for (const std::uint32_t chunk_rows : {1u, 7u, 64u, 256u, 700u}) {
      SCOPED_TRACE(a.name + " in chunks of " + std::to_string(chunk_rows));
      // Every chunk of the larger sizes, a sample of the small ones.
      const std::uint32_t step = chunk_rows < 64 ? 97 * chunk_rows : chunk_rows;
      for (std::uint32_t row = 0; row < a.n_rows; row += step) {
        const std::uint32_t n = std::min(chunk_rows, a.n_rows - row);
        const Buffer payload = encode(a.layout, a.rows(row, n), n);
        ASSERT_FALSE(payload.empty() && n > 1);
        if (!payload.empty()) expect_round_trip(a.layout, a.rows(row, n), n, payload);
        for (const How how : {How::Smallest, How::Coded}) {
          const Buffer small = encode(a.layout, a.rows(row, n), n, how);
          ASSERT_EQ(small.empty(), payload.empty());
          if (!small.empty()) expect_round_trip(a.layout, a.rows(row, n), n, small);
        }
      }
    }
  }
}

TEST(Levels, RealBooksAsFloat64) {
  CDD_SKIP_WITHOUT_DATA();
  for (const char* name : {"okx_elon_tick", "okx_agg_ethusd", "es_1s"}) {
    const test::TestArray a = test::load_array(std::string("lob/") + name + ".npz", "ob");
    const auto slots = a.layout.dims()[0], features = a.layout.dims()[1];
    // As doubles of the same decimals where they have any, so that both representations are met.
    const Book b =
        make_book<double>(200, slots, features, [&](std::uint32_t r, std::uint32_t j, std::uint32_t f) {
          const double v = load<float>(a.data.data() + ((std::size_t{r} * slots + j) * features + f) * 4);
          const double decimal = std::round(v * 1e4) / 1e4;
          return static_cast<float>(decimal) == static_cast<float>(v) ? decimal : v;
        });
    const Buffer payload = expect_round_trip(b);
    EXPECT_LT(payload.size() * 4, b.data.size()) << name;
  }
}

TEST(Levels, EveryTargetDecodesTheSame) {
  const Book books[] = {random_book(150, 50, 3, 1), random_book(150, 50, 2, 2), random_book(100, 7, 5, 3),
                        random_book(40, 300, 4, 4), random_book(70, 33, 1, 5)};
  for (const Book& b : books) {
    const Buffer payload = encode(b.layout, b.data, b.n_rows);
    ASSERT_FALSE(payload.empty());
    for_each_target([&] { expect_round_trip(b.layout, b.data, b.n_rows, payload); });
  }
  CDD_SKIP_WITHOUT_DATA();
  for (const test::TestArray& a : test::load_arrays("lob")) {
    const std::uint32_t n = std::min(a.n_rows, 90u);
    const Buffer payload = encode(a.layout, a.rows(0, n), n);
    for_each_target([&] { expect_round_trip(a.layout, a.rows(0, n), n, payload); });
  }
}

TEST(Levels, EveryTargetUnpacksLikeTheDefinition) {
  Random32 random(1);
  Buffer in(1000);
  for (std::byte& b : in) b = static_cast<std::byte>(random());
  for_each_target([&] {
    const simd::LevelsKernels& kernels = simd::levels_kernels();
    for (unsigned width = 0; width <= 24; ++width) {
      for (const std::size_t n : {1u, 15u, 16u, 17u, 200u}) {
        // At the very end of the buffer: what may be read behind it is exactly the padding.
        const std::size_t bytes = (n * width + 7) / 8;
        Buffer tight(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(bytes));
        tight.resize(bytes + kScratchPadding);
        std::vector<std::uint32_t> out(n + 16);
        kernels.unpack(tight.data(), width, n, 5, out.data());
        for (std::size_t i = 0; i < n; ++i) {
          std::uint32_t expected = 0;
          for (unsigned b = 0; b < width; ++b) {
            const std::size_t bit = i * width + b;
            expected |= (static_cast<std::uint32_t>(in[bit / 8]) >> bit % 8 & 1) << b;
          }
          ASSERT_EQ(out[i], expected + 5) << "width " << width << ", value " << i << " of " << n;
        }
      }
    }
  });
}

// What stands behind the last sum may be other values: it is left alone.
TEST(Levels, EveryTargetSumsAsFarAsTold) {
  Random32 random(2);
  for_each_target([&] {
    for (std::size_t n = 0; n < 70; ++n) {
      std::vector<std::uint32_t> values(n + 16);
      for (std::uint32_t& v : values) v = static_cast<std::uint32_t>(random());
      std::vector<std::uint32_t> expected = values;
      for (std::size_t i = 1; i < n; ++i) expected[i] += expected[i - 1];
      simd::levels_kernels().prefix_sum(values.data(), n);
      ASSERT_EQ(values, expected) << n << " values";
    }
  });
}

TEST(Levels, AllRowsEqualCostNothing) {
  const Book b =
      make_book<float>(200, 50, 3, [](auto, auto j, auto f) { return static_cast<float>(j * 7 + f * 3); });
  EXPECT_LT(expect_round_trip(b).size(), b.layout.row_bytes() / 3);
}

TEST(Levels, OneFlickeringLevel) {
  const Book b = make_book<float>(200, 50, 3, [](auto r, auto j, auto f) {
    return static_cast<float>(j == 20 && f == 1 ? 10.5 + r % 2 : j * 7 + f * 3);
  });
  EXPECT_LT(expect_round_trip(b).size(), 600u);
}

TEST(Levels, LevelsPutInAtBothEnds) {
  for (const int step : {-1, 1, 2, -3}) {
    const Book b = make_book<float>(120, 50, 3, [&](auto r, auto j, auto f) {
      const int price = 10000 + static_cast<int>(j) + step * static_cast<int>(r);
      return static_cast<float>(f == 0 ? price : price % 13 + static_cast<int>(f));
    });
    EXPECT_LT(expect_round_trip(b).size(), 1200u);
  }
}

TEST(Levels, AnyOrderOfSides) {
  // Bids downwards then asks upwards, and both sides interleaved: only the size may suffer.
  const Book up = random_book(100, 50, 3, 9);
  Book reversed = up, interleaved = up;
  const std::size_t entry = 12;
  for (std::uint32_t r = 0; r < up.n_rows; ++r) {
    for (std::size_t j = 0; j < 50; ++j) {
      const std::size_t row = r * up.layout.row_bytes();
      const auto from = up.data.begin() + static_cast<std::ptrdiff_t>(row + j * entry);
      std::copy_n(from, entry,
                  reversed.data.begin() + static_cast<std::ptrdiff_t>(row + (j < 25 ? 24 - j : j) * entry));
      std::copy_n(from, entry,
                  interleaved.data.begin() +
                      static_cast<std::ptrdiff_t>(row + (j < 25 ? 2 * j : 2 * (j - 25) + 1) * entry));
    }
  }
  expect_round_trip(reversed);
  expect_round_trip(interleaved);
}

// One segment while its ids fit into 16 bits, and events where they take less than a ladder.
TEST(Levels, SmallestOfSortedBooks) {
  bool has_events = false;
  for (const Order order : {Order::Rising, Order::Falling, Order::BestFirst, Order::OneSide}) {
    for (const std::uint32_t n_rows : {40u, 900u, 4000u}) {
      const Book b = sorted_book(n_rows, 12, order, n_rows);
      const Buffer quick = encode(b.layout, b.data, n_rows),
                   smallest = encode(b.layout, b.data, n_rows, How::Smallest);
      ASSERT_FALSE(quick.empty() || smallest.empty());
      EXPECT_LE(smallest.size(), quick.size());
      const bool is_one = n_rows * std::size_t{b.layout.dims()[0]} <= 65536;
      EXPECT_EQ(smallest[0], is_one ? std::byte{1} : std::byte{2});
      if (is_one) has_events |= smallest[1] == std::byte{0};
      expect_round_trip(b.layout, b.data, n_rows, smallest);
    }
  }
  EXPECT_TRUE(has_events);
}

// Sorted books of which so many sizes change from row to row.
Book busy_book(std::uint32_t changes) {
  Random32 random(changes);
  std::vector<std::uint32_t> sizes(50);
  for (std::uint32_t& size : sizes) size = random() % 4096;
  std::uint32_t row = 0;
  return make_book<float>(40, 50, 2, [&](std::uint32_t r, std::uint32_t j, std::uint32_t f) {
    for (std::uint32_t i = 0; r != row && i < changes; ++i) sizes[random() % 50] = random() % 4096;
    row = r;
    return f == 0 ? 100 + 0.5f * static_cast<float>(j) : static_cast<float>(sizes[j]);
  });
}

// Ids for all levels are the quicker to read where many change, and never taken for that by the smallest.
TEST(Levels, BusyBooksAreFull) {
  constexpr std::byte kFull{1}, kLadder{2};
  for (const std::uint32_t changes : {1u, 5u, 12u, 20u, 40u}) {
    const Book b = busy_book(changes);
    const Buffer quick = expect_round_trip(b), smallest = encode(b.layout, b.data, b.n_rows, How::Smallest);
    EXPECT_EQ(quick[1], changes > 15 ? kFull : kLadder) << changes << " changes a row";
    EXPECT_LE(smallest.size(), quick.size());
    EXPECT_LE(static_cast<double>(quick.size()), 1.5 * static_cast<double>(smallest.size()));
  }
}

// What is stored in more bytes for the sake of time must not become more than the rows themselves.
TEST(Levels, QuickIsDeclinedWhereSmallestIs) {
  Random32 random(5);
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t n_rows = 2 + random() % 40, slots = 1 + random() % 12, bits = 2 + random() % 23;
    const std::uint32_t calm = 1 + random() % 4, features = 1 + random() % 2;
    std::vector<std::uint32_t> sizes(slots);
    const Book b =
        make_book<float>(n_rows, slots, features, [&](std::uint32_t, std::uint32_t j, std::uint32_t f) {
          if (f + 1 < features) return static_cast<float>(100 + j);
          if (random() % calm == 0) sizes[j] = static_cast<std::uint32_t>(random()) >> (32 - bits);
          return static_cast<float>(sizes[j]);
        });
    const bool has_smallest = !encode(b.layout, b.data, n_rows, How::Smallest).empty();
    EXPECT_EQ(!encode(b.layout, b.data, n_rows).empty(), has_smallest)
        << n_rows << " rows of " << slots << " levels, sizes of " << bits << " bits, " << calm;
  }
}

TEST(Levels, SmallestShapes) {
  for (const std::uint32_t rows : {1u, 2u, 300u}) {
    expect_round_trip_or_declined(
        make_book<float>(rows, 1, 1, [](auto r, auto, auto) { return static_cast<float>(r % 5); }));
    expect_round_trip_or_declined(
        make_book<double>(rows, 1, 2, [](auto r, auto, auto f) { return r / 10.0 + f; }));
    expect_round_trip_or_declined(
        make_book<float>(rows, 2, 1, [](auto r, auto j, auto) { return static_cast<float>(r + j); }));
    expect_round_trip_or_declined(random_book(rows, 3, 3, rows));
  }
}

TEST(Levels, LargestShapes) {
  expect_round_trip(random_book(40, 4096, 3, 1));
  const Book wide = make_book<double>(
      20, 300, 64, [](auto r, auto j, auto f) { return (j + (j % 50 == 0 ? r : 0)) * 0.25 + f * 1000.0; });
  expect_round_trip(wide);
  const Book floats = make_book<float>(30, 100, 64, [](auto r, auto j, auto f) {
    return static_cast<float>((j + (j % 9 == 0 ? r : 0)) * 0.25 + f * 1000.0);
  });
  expect_round_trip(floats);
}

TEST(Levels, MoreDistinctLevelsThanIdsInOneSegment) {
  Random32 random(4);
  const Book b = make_book<float>(
      3000, 50, 2, [&](auto, auto, auto) { return static_cast<float>(random() % 100000) / 4; });
  expect_round_trip(b);
  const Book many_slots =
      make_book<float>(40, 4096, 1, [&](auto, auto, auto) { return static_cast<float>(random() % 1000000); });
  expect_round_trip(many_slots);
}

template <class T, class Bits>
Book bit_patterns(std::uint32_t n_rows, unsigned seed, bool all_random) {
  std::mt19937_64 random(seed);
  const T special[] = {std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::infinity(),
                       -std::numeric_limits<T>::infinity(),
                       T(-0.0),
                       T(0.0),
                       std::numeric_limits<T>::denorm_min(),
                       -std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::lowest(),
                       std::numeric_limits<T>::min()};
  return make_book<T>(n_rows, 50, 3, [&](std::uint32_t r, std::uint32_t j, std::uint32_t f) {
    T v = static_cast<T>(100 + j + (f == 1 ? r % 3 : 0));
    if (all_random) {
      const auto bits = static_cast<Bits>(random());
      std::memcpy(&v, &bits, sizeof v);
    } else if (random() % 40 == 0) {
      v = special[random() % std::size(special)];
      if (std::isnan(v) && random() % 2 == 0) {  // payloads, signalling or not
        Bits bits;
        std::memcpy(&bits, &v, sizeof v);
        bits ^= static_cast<Bits>(random() % 0xffff) | Bits{1} << (sizeof(T) * 8 - 1);
        std::memcpy(&v, &bits, sizeof v);
      }
    }
    return v;
  });
}

TEST(Levels, AnyBitPatternSurvives) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    expect_round_trip(bit_patterns<float, std::uint32_t>(100, seed, false));
    expect_round_trip(bit_patterns<double, std::uint64_t>(100, seed, false));
    expect_round_trip_or_declined(bit_patterns<float, std::uint32_t>(50, seed, true));
    expect_round_trip_or_declined(bit_patterns<double, std::uint64_t>(50, seed, true));
  }
}

// Specials are counted in 16 bits: columns that would have more keep their bits.
TEST(Levels, MoreSpecialsThanCanBeCounted) {
  Random32 random(3);
  const Book b = make_book<float>(16, 4096, 64, [&](std::uint32_t, std::uint32_t j, std::uint32_t f) {
    if (f == 0) return static_cast<float>(j);
    if (random() % 20 == 0) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(random() % 1000) / 8;
  });
  for (const How how : {How::Quick, How::Smallest, How::Coded}) {
    const Buffer payload = encode(b.layout, b.data, b.n_rows, how);
    EXPECT_TRUE(payload.empty() || equal(decode(b.layout, b.n_rows, payload, {0, b.n_rows}), b.data));
  }
}

TEST(Levels, MissingLevelsAsNaNKeepDecimals) {
  const auto book = [](bool missing) {
    return make_book<float>(64, 50, 3, [=](auto r, auto j, auto f) {
      if (missing && j >= 47) return std::numeric_limits<float>::quiet_NaN();
      return static_cast<float>(f == 0 ? 5000.1 + j * 0.1 : (r * j * (f + 1)) % 777 / 10.0);
    });
  };
  const std::size_t without = expect_round_trip(book(false)).size(),
                    with = expect_round_trip(book(true)).size();
  EXPECT_LT(with, without + without / 8);
}

TEST(Levels, Integers) {
  expect_round_trip(make_book<std::uint32_t>(
      100, 20, 2, [](auto r, auto j, auto f) { return j * 1000 + (f ? r / 7 : 0); }));
  expect_round_trip(make_book<std::int64_t>(100, 20, 2, [](auto r, auto j, auto f) {
    return (std::int64_t{1} << 60) + j * 1000 + (f ? r / 7 : 0);
  }));
}

TEST(Levels, RandomBooksAtManySizes) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Random32 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const std::uint32_t slots = 2 + below(80), features = 1 + below(5), rows = 1 + below(700);
    SCOPED_TRACE(testing::Message() << rows << " x " << slots << " x " << features);
    expect_round_trip_or_declined(random_book(rows, slots, features, seed));
  }
}

TEST(Levels, DamagedEvents) {
  damage(random_book(40, 20, 3, 1));
  damage(random_book(30, 11, 2, 2));
  damage(random_book(30, 11, 6, 2));
}

TEST(Levels, DamagedFull) {
  Random32 random(4);
  damage(make_book<float>(35, 20, 3, [&](auto, auto j, auto f) {
    return static_cast<float>(f == 0 ? j * 4 + random() % 4 : random() % 8);
  }));
}

TEST(Levels, DamagedSpecials) { damage(bit_patterns<float, std::uint32_t>(6, 5, false)); }

TEST(Levels, DamagedSegments) { damage(random_book(600, 3, 2, 6)); }

// Prices that no decimal expresses, here and there among others that are: what replaces such a level is told
// relative to it, also after its sizes changed.
TEST(Levels, PricesThatAreNoDecimalsBecomeOthers) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random32 random(seed);
    constexpr std::uint32_t kSlots = 12;
    std::vector<float> row(kSlots * 3);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(100 + i);
    std::uint32_t now = 0;
    expect_round_trip_or_declined(
        make_book<float>(8, kSlots, 3, [&](std::uint32_t r, std::uint32_t slot, std::uint32_t f) {
          for (; now < r; ++now) {
            row[random() % kSlots * 3 + 1 + random() % 2] = static_cast<float>(random() % 1000);
            row[random() % 2 * 3] = random() % 3 == 0 ? 1e-30f : static_cast<float>(random() % 1000);
            row[random() % 2 * 3 + 2] = static_cast<float>(random() % 1000);
          }
          return row[slot * 3 + f];
        }));
  }
}

}  // namespace
}  // namespace cdd
