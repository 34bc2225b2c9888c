// Large appends by several threads write what one thread writes, byte for byte, however they are cut; and
// what fails in one of them is taken back as a whole.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <random>

#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "core/threads/for_each.h"
#include "tests/rig/codec_rig.h"
#include "tests/rig/failing_allocation.h"
#include "tests/rig/faulty_storage.h"

namespace cdd::test {
namespace {

constexpr std::uint32_t kDims[] = {50, 3};
const RowLayout kBook(Kind::Float32, kDims);

// Stretches that suit different codecs and sizes of chunks: a book, rows all alike, noise that LEVELS
// declines.
std::vector<float> changing_rows(std::uint32_t n_rows) {
  std::mt19937 random(5);
  std::vector<float> rows(std::size_t{n_rows} * 150);
  for (std::size_t r = 1; r < n_rows; ++r) {
    const std::size_t stretch = r / 2500 % 4;
    for (std::size_t i = 0; i < 150; ++i) {
      float& item = rows[r * 150 + i];
      item = rows[(r - 1) * 150 + i];
      const auto word = static_cast<std::uint32_t>(random());
      if (stretch == 2) std::memcpy(&item, &word, sizeof word);
      if (stretch % 2 == 0 && i % 30 == word % 30) item = static_cast<float>(word % 1000);
    }
  }
  return rows;
}

struct Life {
  unsigned threads;
  std::vector<std::uint64_t> appends;  // rows of each, in turn
};

// What a store holds that has the same metadata each time (its salt is random).
std::vector<std::byte> contents(const MemoryStorage& empty, const WriterOptions& options, Bytes rows,
                                const Life& life) {
  const auto memory = std::make_shared<MemoryStorage>();
  empty.visit([&](Bytes bytes) { memory->write_at(0, bytes); });
  set_threads(life.threads);
  const auto writer = Writer::open(memory, options);
  const std::uint64_t n_rows = rows.size() / kBook.row_bytes();
  for (std::uint64_t done = 0, i = 0; done < n_rows; ++i) {
    const std::uint64_t count = std::min(life.appends[i % life.appends.size()], n_rows - done);
    writer->append(kBook, slice(rows, kBook, {done, count}), count);
    done += count;
  }
  writer->close();
  set_threads(0);
  const Reader reader(memory);
  Buffer read(rows.size());
  reader.read_into({0, n_rows}, read);
  EXPECT_TRUE(same(read, rows));
  std::vector<std::byte> all;
  memory->visit([&](Bytes bytes) { all.assign(bytes.begin(), bytes.end()); });
  return all;
}

std::shared_ptr<MemoryStorage> empty_store(const WriterOptions& options) {
  const auto memory = std::make_shared<MemoryStorage>();
  Writer::create(memory, options)->close();
  return memory;
}

TEST(ParallelAppend, WritesTheBytesOfOneThread) {
  constexpr std::uint32_t kRows = 24000;  // 14 MB
  const std::vector<float> book = changing_rows(kRows);
  const Bytes rows = bytes_of(book);
  WriterOptions automatic, fixed, dense;
  automatic.durability = fixed.durability = dense.durability = Durability::None;
  fixed.chunk_rows = 64;
  dense.profile = Profile::Dense;
  dense.chunk_bytes = 30000;
  for (const WriterOptions& options : {automatic, fixed, dense}) {
    const auto empty = empty_store(options);
    const auto one = contents(*empty, options, rows, {1, {kRows}});
    for (const unsigned threads : {2u, 5u}) {
      EXPECT_TRUE(contents(*empty, options, rows, {threads, {kRows}}) == one);
    }
    const auto cut = contents(*empty, options, rows, {1, {5000, 1, 7000, 30}});
    EXPECT_TRUE(contents(*empty, options, rows, {3, {5000, 1, 7000, 30}}) == cut);
  }
}

// How rows are cut into appends decides nothing but where appends end.
TEST(ParallelAppend, ChunksDoNotDependOnHowRowsAreCut) {
  constexpr std::uint32_t kRows = 24000;
  const std::vector<float> book = changing_rows(kRows);
  WriterOptions options;
  options.durability = Durability::None;
  const auto empty = empty_store(options);
  const auto chunks = [&](const Life& life) {
    const auto memory = std::make_shared<MemoryStorage>();
    memory->write_at(0, Bytes(contents(*empty, options, bytes_of(book), life)));
    const Reader reader(memory);
    std::vector<std::string> found;
    for (std::uint64_t i = 0; i < reader.chunks(); ++i) {
      const ChunkInfo info = reader.chunk_info(i);
      found.push_back(info.codec + " " + std::to_string(info.stop) + " " + std::to_string(info.stored_bytes));
    }
    return found;
  };
  const auto whole = chunks({2, {kRows}});
  EXPECT_GT(whole.size(), 100u);
  EXPECT_EQ(chunks({2, {6000, 4001, 77}}), whole);
  EXPECT_EQ(chunks({1, {100}}), whole);
}

TEST(ParallelAppend, IsTakenBackAsAWhole) {
  constexpr std::uint32_t kRows = 12000;
  const std::vector<float> book = changing_rows(kRows);
  const Bytes rows = bytes_of(book);
  set_threads(3);
  for (int nth = 0;; ++nth) {
    const auto disk = std::make_shared<MemoryStorage>();
    const auto faulty = std::make_shared<FaultyStorage>(disk);
    WriterOptions options;
    options.durability = Durability::None;
    const auto writer = Writer::create(faulty, options);
    writer->append(kBook, slice(rows, kBook, {0, 100}), 100);
    faulty->fail({Fault::Call::Write, ENOSPC, true, false}, nth);
    try {
      writer->append(kBook, slice(rows, kBook, {100, kRows - 100}), kRows - 100);
      EXPECT_GE(nth, 2) << "records and slots are written";
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.os_errno(), ENOSPC);
    }
    faulty->repair();
    EXPECT_EQ(writer->rows(), 100u);
    writer->append(kBook, slice(rows, kBook, {100, kRows - 100}), kRows - 100);
    writer->close();
    const Reader reader(disk);
    ASSERT_EQ(reader.rows(), kRows);
    Buffer read(rows.size());
    reader.read_into({0, kRows}, read);
    EXPECT_TRUE(same(read, rows));
  }
  set_threads(0);
}

// Where there is no memory for threads, the calling one does all of it.
TEST(Executor, WorksWithoutMemoryForThreads) {
  if (!has_threads()) GTEST_SKIP() << "built without threads";
  set_threads(4);
  for_each(2, [](std::size_t) {});
  for (long nth = 0;; ++nth) {
    set_threads(2 + static_cast<unsigned>(nth % 2));  // another arena each time
    std::vector<std::atomic<int>> done(100);
    const std::function<void(std::size_t)> work = [&](std::size_t i) { ++done[i]; };
    const FailingAllocation failing(nth);
    {
      const FailingAllocation::Scope scope;
      for_each(done.size(), work);
    }
    for (const auto& count : done) ASSERT_EQ(count, 1) << "allocation " << nth;
    if (!failing.has_failed()) {
      EXPECT_GE(nth, 2);
      break;
    }
  }
  set_threads(0);
}

}  // namespace
}  // namespace cdd::test
