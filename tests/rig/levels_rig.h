// Books made for tests of LEVELS, and round trips of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "core/base/scratch.h"
#include "core/codec/levels/levels.h"

namespace cdd::levels_rig {

// std::mt19937 has 64 bits for its 32 on many systems.
using Random32 = std::independent_bits_engine<std::mt19937, 32, std::uint32_t>;

using Buffer = std::vector<std::byte>;

// A book made for a test; items are given as doubles or bit patterns.
struct Book {
  RowLayout layout;
  std::uint32_t n_rows = 0;
  Buffer data;

  Bytes rows(RowRange range) const {
    return Bytes(data).subspan(range.first * layout.row_bytes(), range.count * layout.row_bytes());
  }
};

inline RowLayout layout_of(Kind kind, std::uint32_t slots, std::uint32_t features) {
  const std::uint32_t dims[] = {slots, features};
  return {kind, dims};
}

// value(row, slot, feature) for each item.
template <class T>
Book make_book(std::uint32_t n_rows, std::uint32_t slots, std::uint32_t features,
               const std::function<T(std::uint32_t, std::uint32_t, std::uint32_t)>& value) {
  constexpr Kind kind = std::is_same_v<T, float>           ? Kind::Float32
                        : std::is_same_v<T, double>        ? Kind::Float64
                        : std::is_same_v<T, std::uint32_t> ? Kind::UInt32
                                                           : Kind::Int64;
  Book b{layout_of(kind, slots, features), n_rows,
         Buffer(std::size_t{n_rows} * slots * features * sizeof(T))};
  std::byte* p = b.data.data();
  for (std::uint32_t r = 0; r < n_rows; ++r) {
    for (std::uint32_t j = 0; j < slots; ++j) {
      for (std::uint32_t f = 0; f < features; ++f, p += sizeof(T)) store<T>(p, value(r, j, f));
    }
  }
  return b;
}

// How a payload is asked for: windows quickly read, or few bytes, packed or coded.
enum class How { Quick, Smallest, Coded };

// Empty when the codec declines.
inline Buffer encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, How how = How::Quick) {
  Buffer out(kLevelsCodec.bound(layout, n_rows) + kScratchPadding);
  EncodeContext context;
  context.smallest = how != How::Quick;
  context.coded = how == How::Coded;
  const std::size_t bound = out.size() - kScratchPadding;
  const std::size_t n = kLevelsCodec.encode(layout, rows, n_rows, context, MutableBytes(out).first(bound));
  EXPECT_LE(n, bound);
  out.resize(n);
  return out;
}

// Decodes from and to buffers of exactly the allowed sizes, so that sanitizers see each byte too many.
inline Buffer decode(const RowLayout& layout, std::uint32_t n_rows, Bytes payload, RowRange range) {
  Buffer padded(payload.begin(), payload.end());
  padded.resize(payload.size() + kScratchPadding, std::byte{0xa5});
  Buffer out(range.count * layout.row_bytes());
  kLevelsCodec.decode_rows_into(layout, n_rows, 0, Bytes(padded).first(payload.size()), range, out.data());
  return out;
}

inline bool equal(Bytes a, Bytes b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// Everything, single rows, the ends and some ranges at random.
inline void expect_round_trip(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, Bytes payload) {
  std::vector<RowRange> ranges{{0, n_rows}, {0, 0}, {n_rows, 0}, {0, 1}, {n_rows - 1, 1}, {n_rows / 2, 1}};
  Random32 random(n_rows);
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t first = random() % n_rows;
    ranges.push_back({first, random() % (n_rows - first) + 1});
  }
  for (const RowRange& range : ranges) {
    const Bytes expected = rows.subspan(range.first * layout.row_bytes(), range.count * layout.row_bytes());
    ASSERT_TRUE(equal(decode(layout, n_rows, payload, range), expected))
        << "rows " << range.first << " + " << range.count << " of " << n_rows;
  }
}

inline Buffer expect_round_trip(const Book& b, How how = How::Quick) {
  const Buffer payload = encode(b.layout, b.data, b.n_rows, how);
  EXPECT_FALSE(payload.empty()) << "declined";
  if (!payload.empty()) expect_round_trip(b.layout, b.data, b.n_rows, payload);
  return payload;
}

inline void expect_round_trip_or_declined(const Book& b) {
  const Buffer payload = encode(b.layout, b.data, b.n_rows);
  if (!payload.empty()) expect_round_trip(b.layout, b.data, b.n_rows, payload);
}

// A ladder of ticks whose sizes flicker and whose best levels come and go: much like a real book.
inline Book random_book(std::uint32_t n_rows, std::uint32_t slots, std::uint32_t features, unsigned seed) {
  Random32 random(seed);
  std::vector<std::vector<double>> book(slots, std::vector<double>(features));
  const auto level = [&](double price) {
    std::vector<double> items(features);
    items[0] = price;
    for (std::uint32_t f = 1; f < features; ++f)
      items[f] = static_cast<int>(random() % 1000) / (f == 1 ? 8.0 : 1.0);
    return items;
  };
  for (std::uint32_t j = 0; j < slots; ++j) book[j] = level(100 + 0.5 * j);
  std::uint32_t row = 0;
  return make_book<float>(n_rows, slots, features, [&](std::uint32_t r, std::uint32_t j, std::uint32_t f) {
    if (r != row) {
      row = r;
      for (unsigned changes = random() % 4; changes != 0; --changes) {
        const std::size_t at = random() % slots, from = random() % slots;
        if (random() % 3 == 0) {
          book.erase(book.begin() + static_cast<std::ptrdiff_t>(from));
          book.insert(book.begin() + static_cast<std::ptrdiff_t>(at),
                      level(100 + 0.5 * static_cast<int>(random() % 200)));
        } else {
          book[at] = level(book[at][0]);
        }
      }
    }
    return static_cast<float>(book[j][f]);
  });
}

// Every single-bit error and every truncation: an Error or rows of any content, nothing worse.
inline void damage(const Book& b, How how = How::Quick) {
  const Buffer payload = encode(b.layout, b.data, b.n_rows, how);
  ASSERT_FALSE(payload.empty());
  const auto attempt = [&](Bytes damaged, RowRange range) {
    try {
      decode(b.layout, b.n_rows, damaged, range);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::Corrupt || error.code() == ErrorCode::Unsupported)
          << error.what();
    }
  };
  for (std::size_t size = 0; size < payload.size(); ++size)
    attempt(Bytes(payload).first(size), {0, b.n_rows});
  Buffer damaged = payload;
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      damaged[i] ^= static_cast<std::byte>(1 << bit);
      attempt(damaged, {0, b.n_rows});
      attempt(damaged, {b.n_rows / 2, b.n_rows / 3});
      damaged[i] ^= static_cast<std::byte>(1 << bit);
    }
  }
  Random32 random(3);
  for (int round = 0; round < 2000; ++round) {
    damaged = payload;
    for (int k = 0; k < 4; ++k)
      damaged[random() % std::min<std::size_t>(damaged.size(), 80)] = static_cast<std::byte>(random());
    attempt(damaged, {b.n_rows / 3, b.n_rows / 2});
  }
}

enum class Order {
  Rising,     // bids and asks by price, the best in the middle
  Falling,    // the same the other way round
  BestFirst,  // bids from the best on, then asks from the best on
  OneSide,    // asks alone
};

// A market as it is: each row shows the best `depth` levels of both sides, in order. Levels change size, also
// back to one that they had, come and go, also where no row shows them, and prices go from side to side.
// `trend` ticks a row move all.
inline Book sorted_book(std::uint32_t n_rows, std::uint32_t depth, Order order, unsigned seed,
                        int trend = 0) {
  Random32 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
  std::map<int, int> sides[2];  // sizes by distance from the best: bids' prices are negative here
  const auto fill = [&](int side, int from) {
    while (sides[side].size() < 2 * depth + 2) {
      sides[side].emplace(sides[side].empty() ? from : sides[side].rbegin()->first + 1 + below(2),
                          1 + below(40));
    }
  };
  fill(0, -1000);
  fill(1, 1001);
  std::vector<float> items;
  for (std::uint32_t r = 0; r < n_rows; ++r) {
    std::vector<std::array<int, 2>> levels[2];
    for (int s = 0; s < 2; ++s) {
      for (auto level = sides[s].begin(); levels[s].size() < depth; ++level) {
        levels[s].push_back({s == 0 ? -level->first : level->first, level->second});
      }
    }
    if (order == Order::Rising || order == Order::Falling) std::reverse(levels[0].begin(), levels[0].end());
    std::vector<std::array<int, 2>> row = order == Order::OneSide ? levels[1] : levels[0];
    if (order != Order::OneSide) row.insert(row.end(), levels[1].begin(), levels[1].end());
    if (order == Order::Falling) std::reverse(row.begin(), row.end());
    for (const auto& [tick, size] : row) {
      for (const double item : {tick * 0.1, size * 0.25, 1.0 + size % 5})
        items.push_back(static_cast<float>(item));
    }
    for (int k = below(4) * below(2); k > 0; --k) {
      const int s = below(2), best = sides[s].begin()->first;
      const auto level = std::next(sides[s].begin(), below(sides[s].size()));
      switch (below(5)) {
        case 0:
          sides[s].erase(level);
          break;
        case 1:  // the best goes to the other side
          sides[s].erase(best);
          sides[1 - s].emplace(-best, 1 + below(40));
          break;
        case 2:
          if (sides[1 - s].begin()->first < -best) sides[s].emplace(best - 1, 1 + below(40));
          break;
        default:
          level->second = below(3) == 0 ? 10 : 1 + below(40);
      }
    }
    for (int k = 0; k < std::abs(trend); ++k) {
      std::map<int, int>& away = sides[trend > 0];
      std::map<int, int>& to = sides[trend < 0];
      const int best = away.begin()->first;
      away.erase(best);
      to.emplace(-best, 1 + below(40));
    }
    for (int s = 0; s < 2; ++s) fill(s, 0);
  }
  const std::uint32_t slots = order == Order::OneSide ? depth : 2 * depth;
  Book b{layout_of(Kind::Float32, slots, 3), n_rows, {}};
  b.data.resize(items.size() * 4);
  std::memcpy(b.data.data(), items.data(), b.data.size());
  return b;
}

// The layout bytes of a payload's segments.
inline std::vector<int> layouts_of(Bytes payload, std::uint32_t n_rows) {
  if (payload[0] == std::byte{1} || payload[0] == std::byte{3}) return {static_cast<int>(payload[1])};
  const std::size_t rows = load<std::uint32_t>(payload.data() + 1), n = (n_rows + rows - 1) / rows;
  std::vector<int> layouts;
  std::size_t at = 5 + 4 * n;
  for (std::size_t s = 0; s < n; ++s) {
    layouts.push_back(static_cast<int>(payload[at]));
    at = 5 + 4 * n + load<std::uint32_t>(payload.data() + 5 + 4 * s);
  }
  return layouts;
}

}  // namespace cdd::levels_rig
