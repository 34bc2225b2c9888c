// What the automatic choice costs over whole stores, in bytes: rows that are flushed early decide nothing but
// their own chunk, and no codec by name makes a store smaller than Profile::Dense. On generated rows always,
// on recorded ones where they are.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/codec/scheme.h"
#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/rig/levels_rig.h"
#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

using levels_rig::Order;
using levels_rig::sorted_book;

struct Rows {
  std::string name;
  RowLayout layout;
  std::vector<std::byte> data;

  std::uint64_t count() const { return data.size() / layout.row_bytes(); }
};

template <class T>
Rows series(const char* name, Kind kind, std::size_t n, const std::function<T(std::size_t)>& item) {
  Rows rows{name, RowLayout(kind, {}), std::vector<std::byte>(n * sizeof(T))};
  for (std::size_t i = 0; i < n; ++i) store<T>(rows.data.data() + i * sizeof(T), item(i));
  return rows;
}

// Of a book the slots [first, first + slots) and the first `features`.
Rows part_of(const Rows& book, std::uint32_t first, std::uint32_t slots, std::uint32_t features) {
  const std::uint32_t dims[] = {slots, features};
  Rows part{book.name + " in part", RowLayout(book.layout.dtype(), dims), {}};
  const std::size_t row = book.layout.row_bytes(), item = book.layout.item_bytes();
  const std::size_t level = row / book.layout.dims()[0];
  for (std::size_t at = 0; at < book.data.size(); at += row) {
    for (std::size_t slot = first; slot < first + slots; ++slot) {
      const auto from = book.data.begin() + static_cast<std::ptrdiff_t>(at + slot * level);
      part.data.insert(part.data.end(), from, from + static_cast<std::ptrdiff_t>(features * item));
    }
  }
  return part;
}

std::vector<Rows> arrays() {
  std::mt19937 random(3);
  double price = 10000;
  std::vector<Rows> all;
  all.push_back(series<double>("prices", Kind::Float64, 7000, [&](std::size_t) {
    return std::round(price += static_cast<int>(random() % 9) - 4) / 100;
  }));
  all.push_back(series<std::int64_t>("times", Kind::Int64, 45000, [&](std::size_t i) {
    return std::int64_t{1700000000000} + 60000 * static_cast<std::int64_t>(i);
  }));
  all.push_back(series<double>("sines", Kind::Float64, 20000,
                               [](std::size_t i) { return std::sin(static_cast<double>(i) / 100); }));
  for (const int trend : {0, 1}) {
    const levels_rig::Book book = sorted_book(3000, 25, Order::BestFirst, 5, trend);
    all.push_back({trend == 0 ? "book" : "book that moves", book.layout, book.data});
    all.push_back(part_of(all.back(), 15, 20, 2));
  }
  if (!have_data()) return all;
  for (const char* folder : {"series", "lob"}) {
    for (const TestArray& array : load_arrays(folder)) {
      all.push_back({array.name, array.layout, {array.rows().begin(), array.rows().end()}});
      if (folder == std::string("lob")) all.push_back(part_of(all.back(), 15, 20, 2));
    }
  }
  return all;
}

// What is appended to a store and flushed before its rows, in each session.
enum class First { Nothing, Row, Zeros, NaNs, ManyNaNs };

std::vector<std::byte> first_rows(First first, const Rows& rows) {
  const std::size_t row = rows.layout.row_bytes();
  if (first == First::Nothing) return {};
  if (first == First::Row) return {rows.data.begin(), rows.data.begin() + static_cast<std::ptrdiff_t>(row)};
  std::vector<std::byte> made(row * (first == First::ManyNaNs ? 1000 : 30));
  const Kind kind = rows.layout.dtype().kind();
  if (first == First::Zeros || (kind != Kind::Float32 && kind != Kind::Float64)) return made;
  for (std::size_t at = 0; at < made.size(); at += rows.layout.item_bytes()) {
    if (kind == Kind::Float32) store<float>(made.data() + at, std::nanf(""));
    if (kind == Kind::Float64) store<double>(made.data() + at, std::nan(""));
  }
  return made;
}

WriterOptions options_for(const std::string& codec, Profile profile) {
  WriterOptions options;
  options.codec = codec;
  options.profile = profile;
  options.durability = Durability::None;
  return options;
}

std::uint64_t record_bytes(const std::shared_ptr<MemoryStorage>& memory) {
  const Reader reader(memory);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < reader.chunks(); ++i) bytes += reader.chunk_info(i).stored_bytes;
  return bytes;
}

// Bytes of the records of a store of `rows`, written in so many sessions.
std::uint64_t stored(const Rows& rows, const WriterOptions& options, std::uint64_t sessions = 1,
                     First first = First::Nothing) {
  const auto memory = std::make_shared<MemoryStorage>();
  const std::vector<std::byte> before = first_rows(first, rows);
  const std::size_t row = rows.layout.row_bytes();
  for (std::uint64_t s = 0; s < sessions; ++s) {
    const auto begin = static_cast<std::size_t>(rows.count() * s / sessions);
    const auto end = static_cast<std::size_t>(rows.count() * (s + 1) / sessions);
    const auto writer = s == 0 ? Writer::create(memory, options) : Writer::open(memory, options);
    writer->append(rows.layout, before, before.size() / row);
    writer->flush();
    writer->append(rows.layout, Bytes(rows.data).subspan(begin * row, (end - begin) * row), end - begin);
    writer->close();
  }
  return record_bytes(memory);
}

TEST(Choice, RowsFlushedEarlyDecideNothingElse) {
  for (const Rows& rows : arrays()) {
    for (const Profile profile : {Profile::Fast, Profile::Dense}) {
      const WriterOptions options = options_for("auto", profile);
      for (const std::uint64_t sessions : {1u, 8u}) {
        const auto without = static_cast<double>(stored(rows, options, sessions));
        for (const First first : {First::Row, First::Zeros, First::NaNs, First::ManyNaNs}) {
          // Their own records, as of a store of nothing else.
          const Rows alone{rows.name, rows.layout, first_rows(first, rows)};
          const auto own = static_cast<double>(sessions * stored(alone, options));
          EXPECT_LE(static_cast<double>(stored(rows, options, sessions, first)), 1.1 * without + own)
              << rows.name << ", profile " << static_cast<int>(profile) << ", " << sessions
              << " sessions, first " << static_cast<int>(first);
        }
      }
    }
  }
}

// Rows of NaN for longer than any chunk, then a book: its chunks are as long as without them, and LEVELS.
TEST(Choice, ALongTimeWithoutAFeedIsForgotten) {
  const levels_rig::Book book = sorted_book(3000, 25, Order::BestFirst, 5);
  const Rows rows{"book", book.layout, book.data};
  const std::vector<std::byte> nothing = [&] {
    std::vector<std::byte> all;
    for (int i = 0; i < 5; ++i) {
      const std::vector<std::byte> some = first_rows(First::ManyNaNs, rows);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  const auto memory = std::make_shared<MemoryStorage>();
  const WriterOptions options = options_for("auto", Profile::Fast);
  const auto writer = Writer::create(memory, options);
  writer->append(rows.layout, nothing, 5000);
  writer->append(rows.layout, rows.data, rows.count());
  writer->close();
  const Reader reader(memory);
  std::uint64_t begin = 0;
  for (std::uint64_t i = 0; i < reader.chunks(); ++i) {
    const ChunkInfo info = reader.chunk_info(i);
    if (begin >= 5000) {
      EXPECT_EQ(info.codec, "levels");
    }
    EXPECT_LE(info.stored_bytes, 4 * options.chunk_bytes);
    begin = info.stop;
  }
  EXPECT_EQ(begin, 5000 + rows.count());
}

TEST(Choice, DenseIsWithinAFiftiethOfTheBestCodecByName) {
  std::vector<std::string> names;
  std::string listed = scheme_names() + ", ";
  for (std::size_t at; (at = listed.find(", ")) != std::string::npos; listed.erase(0, at + 2)) {
    const std::string name = listed.substr(0, at);
    if (name != "auto" && !name.starts_with("okx_ob_f16")) names.push_back(name);
  }
  for (const Rows& rows : arrays()) {
    const auto dense = static_cast<double>(stored(rows, options_for("auto", Profile::Dense)));
    for (const std::string& name : names) {
      try {
        schemes_for(name, rows.layout);
      } catch (const Error&) {
        continue;  // it does not suit these rows
      }
      EXPECT_LE(dense, 1.02 * static_cast<double>(stored(rows, options_for(name, Profile::Dense))))
          << rows.name << ", " << name;
    }
  }
}

}  // namespace
}  // namespace cdd::test
