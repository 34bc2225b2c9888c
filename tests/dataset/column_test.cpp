// Columns of many stores against the same rows in one: reading, windows, places of values, joins by time,
// and files that are opened and closed by several threads.
#include "core/dataset/column.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "core/dataset/asof.h"
#include "core/storage/memory.h"
#include "core/store/writer.h"

namespace cdd {
namespace {

const RowLayout kTimes(DType(Kind::Int64), {});

struct Store {
  std::shared_ptr<MemoryStorage> storage = std::make_shared<MemoryStorage>();
  Salt salt{};
};

Store store_of(std::span<const std::int64_t> items) {
  Store store;
  WriterOptions options;
  options.layout = kTimes;
  options.chunk_rows = 7;
  const auto writer = Writer::create(MemoryStorage::lock_for_writing(store.storage), options);
  writer->append(kTimes, {as_bytes(items.data()), items.size_bytes()}, items.size());
  writer->close();
  store.salt = Reader(store.storage).header().metadata.salt;
  return store;
}

// Rows that are cut into pieces of random lengths, each a part of a store of its own, with fills between.
struct Pieces {
  std::vector<std::int64_t> rows;
  std::vector<Extent> extents;
  Extents::Exceptions elsewhere;
};

Pieces pieces_of(std::vector<std::int64_t> rows, std::mt19937_64& random) {
  Pieces made;
  made.rows = std::move(rows);
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < made.rows.size();) {
    const std::size_t count = std::min<std::size_t>(1 + random() % 40, made.rows.size() - at);
    Extent extent;
    extent.rows = count;
    if (random() % 8 == 0) {
      std::memcpy(extent.salt.data(), &made.rows[at], sizeof(std::int64_t));
      std::fill_n(made.rows.begin() + static_cast<std::ptrdiff_t>(at), count, made.rows[at]);
    } else {
      const std::size_t lead = random() % 5;
      std::vector<std::int64_t> items(lead, std::numeric_limits<std::int64_t>::min());
      items.insert(items.end(), made.rows.begin() + static_cast<std::ptrdiff_t>(at),
                   made.rows.begin() + static_cast<std::ptrdiff_t>(at + count));
      items.push_back(std::numeric_limits<std::int64_t>::max());
      const Store store = store_of(items);
      extent.number = ++number;
      extent.first = lead;
      extent.salt = store.salt;
      made.elsewhere[number] = {"<memory>", store.storage};
    }
    if (random() % 2 == 0) {
      std::memcpy(&extent.first_item, &made.rows[at], sizeof extent.first_item);
      extent.has_items = 1;
    }
    made.extents.push_back(extent);
    at += count;
  }
  return made;
}

std::shared_ptr<Superchunks> superchunks(std::size_t max_open = 1024) {
  return std::make_shared<Superchunks>(Superchunks::Options{{}, Mapping::Preferred, max_open});
}

Column column_of(const Pieces& pieces, std::shared_ptr<Superchunks> files) {
  return {"x", kTimes, std::make_shared<const Extents>(pieces.extents, "", pieces.elsewhere),
          pieces.rows.size(), std::move(files)};
}

// Sorted times of which some are equal, with gaps.
std::vector<std::int64_t> times(std::size_t count, std::mt19937_64& random) {
  std::vector<std::int64_t> made(count);
  std::int64_t time = -50;
  for (std::int64_t& item : made) {
    item = time;
    if (random() % 3 != 0) time += static_cast<std::int64_t>(random() % 9);
  }
  return made;
}

std::vector<std::int64_t> read(const Rows& rows, std::uint64_t first, std::uint64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  rows.fetch_ahead(first);  // as Python's calls do
  rows.read_into({first, count}, {as_bytes(out.data()), out.size() * sizeof out[0]});
  return out;
}

ErrorCode code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::Cancelled;
}

TEST(Column, ReadsWhatItsExtentsSay) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    const Pieces pieces = pieces_of(times(1 + random() % 400, random), random);
    const Column column = column_of(pieces, superchunks(1 + random() % 4));
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t first = random() % (pieces.rows.size() + 1);
      const std::uint64_t count = random() % (pieces.rows.size() - first + 1);
      const auto begin = pieces.rows.begin() + static_cast<std::ptrdiff_t>(first);
      ASSERT_EQ(read(column, first, count),
                std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(count)));
    }
    EXPECT_EQ(code_of([&] { read(column, 0, pieces.rows.size() + 1); }), ErrorCode::OutOfRange);
  }
}

// More chunks than the pages that are fetched ahead have.
TEST(Column, ReadsFilesOfManyChunks) {
  std::mt19937_64 random(8);
  const std::vector<std::int64_t> rows = times(20'000, random);
  const std::span<const std::int64_t> all = rows;
  Pieces pieces;
  pieces.rows = rows;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Store store = store_of(all.subspan(static_cast<std::size_t>(i) * 10'000, 10'000));
    pieces.elsewhere[i + 1] = {"<memory>", store.storage};
    Extent extent;
    extent.number = i + 1;
    extent.rows = 10'000;
    extent.salt = store.salt;
    pieces.extents.push_back(extent);
  }
  const Column column = column_of(pieces, superchunks(1));
  for (int i = 0; i < 500; ++i) {
    column.fetch_ahead(random());  // of whatever row
    const std::size_t first = random() % (rows.size() - 50);
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    ASSERT_EQ(read(column, first, 50), std::vector<std::int64_t>(begin, begin + 50));
  }
}

TEST(Column, WindowsOfSeveralColumnsInOneCall) {
  std::mt19937_64 random(2);
  const std::vector<std::int64_t> rows = times(500, random);
  const auto files = superchunks();
  const Pieces a = pieces_of(rows, random), b = pieces_of(rows, random);
  const Column first = column_of(a, files), second = column_of(b, files);
  std::vector<std::uint64_t> starts(200);
  for (std::uint64_t& start : starts) start = random() % (500 - 33 + 1);
  std::vector<std::int64_t> out_a(starts.size() * 33), out_b(starts.size() * 33);
  const ColumnWindows windows[] = {
      {&first, nullptr, starts, 33, {as_bytes(out_a.data()), out_a.size() * 8}},
      {&second, nullptr, starts, 33, {as_bytes(out_b.data()), out_b.size() * 8}},
  };
  read_columns(windows);
  for (std::size_t w = 0; w < starts.size(); ++w) {
    for (std::size_t i = 0; i < 33; ++i) {
      const auto row = static_cast<std::size_t>(starts[w]) + i;
      ASSERT_EQ(out_a[w * 33 + i], a.rows[row]);
      ASSERT_EQ(out_b[w * 33 + i], b.rows[row]);
    }
  }
}

TEST(Column, FindsPlacesAsBoundsDo) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 30; ++round) {
    const Pieces pieces = pieces_of(times(1 + random() % 300, random), random);
    const Column column = column_of(pieces, superchunks());
    std::vector<std::int64_t> values(100);
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % 1500) - 100;
    for (const Side side : {Side::Left, Side::Right}) {
      std::vector<std::uint64_t> places(values.size());
      column.search({as_bytes(values.data()), values.size() * 8}, side, places);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto& rows = pieces.rows;
        const auto bound = side == Side::Left ? std::lower_bound(rows.begin(), rows.end(), values[i])
                                              : std::upper_bound(rows.begin(), rows.end(), values[i]);
        ASSERT_EQ(places[i], static_cast<std::uint64_t>(bound - rows.begin())) << values[i];
      }
    }
  }
}

std::int64_t joined(const std::vector<std::int64_t>& right, std::int64_t time, const AsOf& how) {
  std::int64_t best = -1;
  std::uint64_t by = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const bool before = right[i] <= time, after = right[i] >= time;
    if (how.direction == AsOf::Direction::Backward && !before) continue;
    if (how.direction == AsOf::Direction::Forward && !after) continue;
    if (!how.exact && right[i] == time) continue;
    const auto far = static_cast<std::uint64_t>(right[i] > time ? right[i] - time : time - right[i]);
    if (far > how.tolerance) continue;
    // The nearest; of those as near the earlier time; of one time the last backward, the first forward.
    const bool is_back = how.direction != AsOf::Direction::Forward && right[i] <= time;
    const bool takes = best < 0 || far < by || (far == by && is_back);
    if (takes) best = static_cast<std::int64_t>(i), by = far;
  }
  return best;
}

// All of some rows, as ranges one after the other.
std::vector<RowRange> cut(std::uint64_t rows, std::mt19937_64& random) {
  std::vector<RowRange> ranges;
  for (std::uint64_t at = 0; at < rows;) {
    const std::uint64_t count = std::min<std::uint64_t>(random() % 20, rows - at);
    ranges.push_back({at, count});
    at += count;
  }
  return ranges;
}

TEST(AsOf, JoinsAsTheDefinitionSays) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    const Pieces left = pieces_of(times(1 + random() % 60, random), random);
    const Pieces right = pieces_of(times(1 + random() % 60, random), random);
    const Column a = column_of(left, superchunks()), b = column_of(right, superchunks());
    AsOf how;
    how.direction = static_cast<AsOf::Direction>(random() % 3);
    how.exact = random() % 2 == 0;
    if (random() % 2 == 0) how.tolerance = random() % 12;
    std::vector<std::int64_t> rows(left.rows.size());
    join_asof(a, cut(rows.size(), random), b, how, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i], joined(right.rows, left.rows[i], how))
          << "time " << left.rows[i] << " direction " << int(how.direction) << " exact " << how.exact;
    }
  }
}

TEST(AsOf, LongTablesAndUnits) {
  std::mt19937_64 random(5);
  std::vector<std::int64_t> many(3'000'000), few(2000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int64_t>(i) * 1000 - 500'000'000;
  for (std::size_t i = 0; i < few.size(); ++i) few[i] = static_cast<std::int64_t>(i * 1499) - 400'000;
  const Reader left(store_of(few).storage);
  WriterOptions options;
  options.layout = kTimes;
  const auto storage = std::make_shared<MemoryStorage>();
  const auto writer = Writer::create(MemoryStorage::lock_for_writing(storage), options);
  writer->append(kTimes, {as_bytes(many.data()), many.size() * 8}, many.size());
  writer->close();
  const Reader right(storage);
  AsOf how;
  how.left_factor = 1000;
  std::vector<std::int64_t> rows(few.size());
  join_asof(left, std::vector<RowRange>{{0, rows.size()}}, right, how, rows);
  for (std::size_t i = 0; i < few.size(); ++i) {
    const auto bound = std::upper_bound(many.begin(), many.end(), few[i] * 1000);
    ASSERT_EQ(rows[i], bound - many.begin() - 1);
  }
  std::vector<std::int64_t> part(150);  // windows of 10 rows, far from each other on the right
  std::vector<RowRange> ranges;
  for (std::uint64_t i = 0; i < 15; ++i) ranges.push_back({i * 130, 10});
  join_asof(left, ranges, right, how, part);
  for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], rows[i / 10 * 130 + i % 10]);
  std::swap(ranges[3], ranges[4]);
  EXPECT_EQ(code_of([&] { join_asof(left, ranges, right, how, part); }), ErrorCode::InvalidArgument);
  how.left_factor = std::uint64_t{1} << 62;
  EXPECT_EQ(code_of([&] {
              join_asof(left, std::vector<RowRange>{{0, rows.size()}}, right, how, rows);
            }),
            ErrorCode::InvalidArgument);
}

TEST(Column, RefusesWhatDoesNotFit) {
  std::mt19937_64 random(6);
  Pieces pieces = pieces_of(times(100, random), random);
  const auto real = std::find_if(pieces.extents.begin(), pieces.extents.end(),
                                 [](const Extent& extent) { return extent.number != 0; });
  const Extent kept = *real;
  real->salt[3] ^= std::byte{1};
  EXPECT_EQ(code_of([&] { read(column_of(pieces, superchunks()), 0, 100); }), ErrorCode::Corrupt);
  *real = kept;
  real->first += 1000;
  EXPECT_EQ(code_of([&] { read(column_of(pieces, superchunks()), 0, 100); }), ErrorCode::Truncated);
  *real = kept;
  for (const Extent& extent : pieces.extents) {  // a part of a file, of a fill, and of several
    const Column column = column_of(pieces, superchunks());
    const auto first = static_cast<std::uint64_t>(&extent - pieces.extents.data());
    const std::uint64_t begin = column.extents()->begin(first);
    for (const std::uint64_t count : {std::uint64_t{0}, extent.rows, 100 - begin}) {
      std::vector<std::int64_t> out(101);
      const MutableBytes bytes{as_bytes(out.data()), 8 * count + 8};
      EXPECT_EQ(code_of([&] { column.read_into({begin, count}, bytes); }), ErrorCode::InvalidArgument);
    }
  }
  pieces.extents[0].rows = Extent::kOpen;
  EXPECT_EQ(code_of([&] { column_of(pieces, superchunks()); }), ErrorCode::Corrupt);
  pieces.extents[0].rows = Extent::kOpen - 1;
  EXPECT_EQ(code_of([&] { column_of(pieces, superchunks()); }), ErrorCode::Corrupt);
}

TEST(Superchunks, ManyThreadsAndFewOpenFiles) {
  std::mt19937_64 random(7);
  const Pieces pieces = pieces_of(times(2000, random), random);
  const auto files = superchunks(2);
  const Column column = column_of(pieces, files);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 own(seed);
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t first = own() % 1900;
        const std::vector<std::int64_t> found = read(column, first, 100);
        wrong +=
            !std::equal(found.begin(), found.end(), pieces.rows.begin() + static_cast<std::ptrdiff_t>(first));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  read(column, 0, 1);
  EXPECT_LE(files->open_files(), 3u);
}

TEST(Superchunks, ClosedFilesAreLetGoOfAndOpenedAgain) {
  std::mt19937_64 random(7);
  const Pieces pieces = pieces_of(times(2000, random), random);
  const auto files = superchunks(100);
  const Column column = column_of(pieces, files);
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::thread closing([&] {
    while (!is_over) files->close();
  });
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t first = random() % 1900;
    const std::vector<std::int64_t> found = read(column, first, 100);
    wrong +=
        !std::equal(found.begin(), found.end(), pieces.rows.begin() + static_cast<std::ptrdiff_t>(first));
  }
  is_over = true;
  closing.join();
  EXPECT_EQ(wrong, 0);
  read(column, 0, 2000);
  EXPECT_GT(files->open_files(), 1u);
  files->close();
  read(column, 0, 1);  // sees which of those that were in use are not any more
  files->close();
  EXPECT_EQ(files->open_files(), 0u);
}

TEST(Superchunks, WhatANewerListHasNoneOfIsClosed) {
  std::mt19937_64 random(8);
  const Pieces pieces = pieces_of(times(2000, random), random);
  const auto files = superchunks();
  const Column column = column_of(pieces, files);
  read(column, 0, 2000);
  const std::size_t open = files->open_files();
  ASSERT_GT(open, 3u);
  const Extents& all = *column.extents();
  all.let_go(Extents(pieces.extents, "", pieces.elsewhere), *files);
  EXPECT_EQ(files->open_files(), open);
  std::vector<Extent> few(pieces.extents.end() - 2, pieces.extents.end());
  few[0].number = few[1].number = pieces.extents.back().number;
  all.let_go(Extents(few, "", pieces.elsewhere), *files);
  EXPECT_EQ(files->open_files(), pieces.extents.back().number == 0 ? 0u : 1u);
  const Superchunks::Use held = files->use(all.file(0, *files));
  all.let_go(Extents(few, "", pieces.elsewhere), *files);
  EXPECT_EQ(held.reader().rows() > 0, true);
  EXPECT_EQ(read(column, 0, 2000), pieces.rows);
}

}  // namespace
}  // namespace cdd
