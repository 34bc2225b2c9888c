// The ladder layout of LEVELS: sorted books in every order, what no row shows, damage.
#include "tests/rig/levels_rig.h"
#include "tests/rig/simd_targets.h"

namespace cdd {
namespace {

using namespace levels_rig;
using test::for_each_target;

constexpr Order kOrders[] = {Order::Rising, Order::Falling, Order::BestFirst, Order::OneSide};
constexpr int kEvents = 0, kLadder = 2;

void expect_layout(const Book& b, Bytes payload, int layout) {
  for (const int of_segment : layouts_of(payload, b.n_rows)) EXPECT_EQ(of_segment, layout);
}

TEST(LevelsLadder, SortedBooksOfEveryOrderAreLadders) {
  for (const Order order : kOrders) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(order) << ", " << seed);
      const Book b = sorted_book(100 + 37 * seed, 2 + 5 * seed, order, seed);
      expect_layout(b, expect_round_trip(b), kLadder);
    }
  }
}

TEST(LevelsLadder, EveryTargetDecodesTheSame) {
  for (const Order order : kOrders) {
    for (const std::uint32_t depth : {1u, 7u, 25u, 70u, 300u}) {
      const Book b = sorted_book(90, depth, order, depth);
      const Buffer payload = encode(b.layout, b.data, b.n_rows);
      ASSERT_FALSE(payload.empty());
      for_each_target([&] { expect_round_trip(b.layout, b.data, b.n_rows, payload); });
    }
  }
}

// The market runs away, so that more and more levels stand where no row shows them.
TEST(LevelsLadder, MarketsThatRunAway) {
  for (const Order order : kOrders) {
    for (const int trend : {-1, 1}) {
      expect_round_trip(sorted_book(256, 2, order, 5, 2 * trend));
      const Book b = sorted_book(256, 10, order, 5, trend);
      expect_layout(b, expect_round_trip(b), kLadder);
    }
  }
}

TEST(LevelsLadder, RowsThatAreInNoOrderAreNone) {
  Book b = sorted_book(60, 10, Order::Rising, 3);
  const std::size_t bytes = 12;
  for (std::uint32_t r = 0; r < b.n_rows; ++r) {
    std::byte* row = b.data.data() + r * b.layout.row_bytes();
    std::swap_ranges(row + 2 * bytes, row + 3 * bytes, row + 6 * bytes);
  }
  expect_layout(b, expect_round_trip(b), kEvents);
}

// One price twice in a row, as where levels that are missing are given as zeros.
TEST(LevelsLadder, LevelsThatAreMissing) {
  Book b = sorted_book(60, 10, Order::Rising, 4);
  for (std::uint32_t r = 20; r < b.n_rows; ++r) {
    std::memset(b.data.data() + r * b.layout.row_bytes() + 18 * 12, 0, 2 * 12);
  }
  expect_round_trip(b);
}

// Levels that go from side to side as they are: more places than entries.
TEST(LevelsLadder, OneLevelOnBothSides) {
  const Book b = make_book<float>(200, 40, 2, [](auto r, auto j, auto f) {
    const int best = static_cast<int>(100 + r / 8);
    const int price = j < 20 ? best - 1 - static_cast<int>(j) : best + static_cast<int>(j) - 20;
    return static_cast<float>(f == 0 ? price : 5 + price % 3);
  });
  expect_layout(b, expect_round_trip(b), kLadder);
}

TEST(LevelsLadder, Doubles) {
  for (const double step : {0.01, 1.0 / 3}) {
    const Book floats = sorted_book(80, 12, Order::Rising, 6);
    const Book b = make_book<double>(80, 24, 3, [&](auto r, auto j, auto f) {
      return step * load<float>(floats.data.data() + ((std::size_t{r} * 24 + j) * 3 + f) * 4);
    });
    expect_layout(b, expect_round_trip(b), kLadder);
  }
}

TEST(LevelsLadder, PartsOfRows) {
  const Book b = sorted_book(150, 25, Order::Rising, 7);
  Buffer payload = encode(b.layout, b.data, b.n_rows);
  const std::size_t size = payload.size();
  payload.resize(size + kScratchPadding);
  const Cells cells{5, 31, 1, 3};
  const RowRange range{33, 100};
  Buffer out(range.count * 26 * 2 * 4), expected;
  kLevelsCodec.decode_cells_into(b.layout, b.n_rows, 0, Bytes(payload).first(size), range, cells, out.data());
  for (std::uint64_t r = range.first; r < range.first + range.count; ++r) {
    for (std::size_t j = 5; j < 31; ++j) {
      const auto item = b.data.begin() + static_cast<std::ptrdiff_t>(r * b.layout.row_bytes() + j * 12 + 4);
      expected.insert(expected.end(), item, item + 8);
    }
  }
  EXPECT_TRUE(equal(out, expected));
}

TEST(LevelsLadder, Damaged) {
  for (const Order order : kOrders) damage(sorted_book(30, 6, order, 8));
  damage(sorted_book(60, 2, Order::Rising, 9, 1));
  for_each_target([] { damage(sorted_book(20, 3, Order::BestFirst, 10)); });
}

}  // namespace
}  // namespace cdd
