// Books made for tests of LEVELS, and round trips of them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "core/base/scratch.h"
#include "core/codec/levels.h"

namespace cdd::levels_rig {

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

// Empty when the codec declines.
inline Buffer encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows) {
  Buffer out(kLevelsCodec.bound(layout, n_rows) + kScratchPadding);
  EncodeContext context;
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
  std::mt19937 random(n_rows);
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

inline Buffer expect_round_trip(const Book& b) {
  const Buffer payload = encode(b.layout, b.data, b.n_rows);
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
  std::mt19937 random(seed);
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

}  // namespace cdd::levels_rig
