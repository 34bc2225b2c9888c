// The store from end to end in the core: append, read, reopen, follow, recover.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>

#include "core/storage/mapped_file.h"
#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "core/threads/for_each.h"

namespace cdd {
namespace {

const std::uint32_t kBookDims[] = {50, 3};

// Rows that compress like a book: most values stay, some move.
std::vector<float> make_rows(std::size_t n_rows, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> rows(n_rows * 150);
  std::iota(rows.begin(), rows.begin() + 150, 100.0f);
  for (std::size_t r = 1; r < n_rows; ++r) {
    std::copy_n(rows.begin() + (r - 1) * 150, 150, rows.begin() + r * 150);
    for (int k = 0; k < 5; ++k) rows[r * 150 + random() % 150] = static_cast<float>(random() % 1000);
  }
  return rows;
}

Bytes bytes_of(const std::vector<float>& rows) { return std::as_bytes(std::span(rows)); }

RowLayout book_layout() { return RowLayout(Kind::Float32, kBookDims); }

std::vector<float> read_rows(const Reader& reader, std::uint64_t first, std::uint64_t count) {
  std::vector<float> rows(count * 150);
  reader.read_into({first, count}, std::as_writable_bytes(std::span(rows)));
  return rows;
}

void expect_rows(const Reader& reader, const std::vector<float>& all) {
  ASSERT_EQ(reader.rows() * 150, all.size());
  EXPECT_EQ(read_rows(reader, 0, reader.rows()), all);
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t a = random() % (reader.rows() + 1);
    const std::uint64_t n = random() % (reader.rows() - a + 1);
    EXPECT_EQ(read_rows(reader, a, n),
              std::vector<float>(all.begin() + a * 150, all.begin() + (a + n) * 150));
  }
}

class TemporaryFile {
 public:
  TemporaryFile() {
    static int counter = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("cdd-test-" + std::to_string(process_id()) + "-" + std::to_string(counter++) + ".cdd"))
                .string();
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Store, RoundTripInMemoryWithManyBlocks) {
  const auto all = make_rows(2000);
  const auto memory = std::make_shared<MemoryStorage>();
  WriterOptions options;
  options.chunk_rows = 3;
  options.first_capacity = 4;  // 667 chunks: blocks of 4, 8, ... 512
  auto writer = Writer::create(MemoryStorage::lock_for_writing(memory), options);
  std::mt19937 random(3);
  for (std::size_t done = 0; done < 2000;) {
    const std::size_t n = std::min<std::size_t>(random() % 90, 2000 - done);
    writer->append(book_layout(), bytes_of(all).subspan(done * 600, n * 600), n);
    done += n;
  }
  EXPECT_EQ(writer->rows(), 2000u);
  writer->close();
  const Reader reader(memory);
  EXPECT_EQ(reader.chunks(), 667u);
  expect_rows(reader, all);
  for (std::uint64_t i = 0; i < reader.chunks(); ++i) reader.verify_chunk(i);
}

// Rows that shrink well make the sizer ask for longer and longer first chunks, which begin in the tail.
TEST(Store, SmallAppendsOfWhatShrinksWell) {
  const auto storage = std::make_shared<MemoryStorage>();
  std::vector<float> all(150 * 3000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i / 150);
  auto writer = Writer::create(MemoryStorage::lock_for_writing(storage), {});
  for (std::size_t row = 0; row < 3000; row += 60) {
    writer->append(book_layout(), bytes_of(all).subspan(row * 600, 60 * 600), 60);
  }
  writer->close();
  expect_rows(Reader(storage), all);
}

// The clean-close slot says where the next record goes: here beyond what 32 bits can count.
TEST(Store, FileAndMapReadTheSame) {
  const TemporaryFile file;
  const auto all = make_rows(1500);
  WriterOptions options;
  const std::string meta = "tick size 0.1";
  options.user_meta.assign(as_bytes(meta.data()), as_bytes(meta.data()) + meta.size());
  auto writer = Writer::create_file(file.path(), false, options);
  writer->append(book_layout(), bytes_of(all), 1500);
  writer->close();
  const Reader from_file(FileStorage::open(file.path(), FileStorage::Access::Read));
  const Reader from_map(MappedStorage::open(file.path()));
  EXPECT_EQ(from_file.header().user_meta, options.user_meta);
  expect_rows(from_file, all);
  expect_rows(from_map, all);
  EXPECT_THROW(Writer::create_file(file.path(), false, options), Error);
}

TEST(Store, WindowsAreWhatReadingOneByOneGives) {
  const auto all = make_rows(4000);
  const auto memory = std::make_shared<MemoryStorage>();
  WriterOptions options;
  options.chunk_rows = 37;
  Writer::create(memory, options)->append(book_layout(), bytes_of(all), 4000);
  const Reader reader(memory);
  std::mt19937 random(11);
  for (const unsigned threads : {1u, 4u}) {
    set_threads(threads);
    for (const std::uint64_t rows : {1u, 64u, 300u, 4000u}) {
      std::vector<std::uint64_t> starts(rows == 4000 ? 2 : 70);
      for (auto& start : starts) start = random() % (4000 - rows + 1);
      if (starts.size() > 3) starts[1] = starts[0];  // the same twice, and two that overlap
      if (starts.size() > 3) starts[3] = starts[2] > 5 ? starts[2] - 5 : 0;
      std::vector<float> out(starts.size() * rows * 150);
      reader.read_windows(starts, rows, std::as_writable_bytes(std::span(out)));
      for (std::size_t w = 0; w < starts.size(); ++w) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(starts[w] * 150);
        ASSERT_TRUE(std::equal(from, from + static_cast<std::ptrdiff_t>(rows * 150),
                               out.begin() + static_cast<std::ptrdiff_t>(w * rows * 150)));
      }
    }
  }
  set_threads(0);
  std::vector<std::byte> out(600);
  const std::uint64_t beyond[] = {4000};
  EXPECT_THROW(reader.read_windows(beyond, 1, out), Error);
  EXPECT_NO_THROW(reader.read_windows({}, 5, {}));
}

class StoreFollow : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(FileAndMap, StoreFollow, testing::Bool());

TEST_P(StoreFollow, ReaderFollowsAWriter) {
  const TemporaryFile file;
  const auto all = make_rows(3000);
  WriterOptions options;
  options.chunk_rows = 2;
  options.first_capacity = 2;
  auto writer = Writer::create_file(file.path(), false, options);
  std::shared_ptr<Storage> storage;
  if (GetParam()) {
    storage = MappedStorage::open(file.path());
  } else {
    storage = FileStorage::open(file.path(), FileStorage::Access::Read);
  }
  Reader reader(storage);
  EXPECT_EQ(reader.rows(), 0u);
  EXPECT_FALSE(reader.refresh());
  for (std::size_t done = 0; done < 3000; done += 100) {
    writer->append(book_layout(), bytes_of(all).subspan(done * 600, 100 * 600), 100);
    EXPECT_TRUE(reader.refresh());
    ASSERT_EQ(reader.rows(), done + 100);
    EXPECT_EQ(read_rows(reader, done, 100),
              std::vector<float>(all.begin() + done * 150, all.begin() + (done + 100) * 150));
  }
  writer->close();
  EXPECT_FALSE(reader.refresh());
  expect_rows(reader, all);
}

TEST(Store, SecondWriterIsRefusedAndTheFirstGoesOn) {
  const TemporaryFile file;
  auto writer = Writer::create_file(file.path(), false, {});
  for (const bool replace : {false, true}) {
    try {
      replace ? Writer::create_file(file.path(), true, {}) : Writer::open_file(file.path(), {});
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Io);
      EXPECT_EQ(error.os_errno(), EAGAIN);
    }
  }
  const auto all = make_rows(10);
  writer->append(book_layout(), bytes_of(all), 10);
  writer->close();
  expect_rows(Reader(FileStorage::open(file.path(), FileStorage::Access::Read)), all);
}

TEST(Store, AppendAfterCleanCloseAndAfterACrash) {
  const auto all = make_rows(900);
  const auto memory = std::make_shared<MemoryStorage>();
  WriterOptions options;
  options.chunk_rows = 4;
  options.first_capacity = 4;
  auto writer = Writer::create(memory, options);
  writer->append(book_layout(), bytes_of(all).first(300 * 600), 300);
  writer->close();
  writer = Writer::open(memory, options);
  writer->append(book_layout(), bytes_of(all).subspan(300 * 600, 300 * 600), 300);
  writer->flush();

  // A copy of the storage is what a kill would leave: no close slot, no sealing.
  const auto crashed = std::make_shared<MemoryStorage>();
  memory->visit([&](Bytes bytes) { crashed->write_at(0, bytes); });
  auto next = Writer::open(crashed, options);
  EXPECT_EQ(next->rows(), 600u);
  next->append(book_layout(), bytes_of(all).subspan(600 * 600), 300);
  next->close();
  expect_rows(Reader(crashed), all);
  writer->close();
}

TEST(Store, WrongLayoutsAndRangesAreRefused) {
  const auto memory = std::make_shared<MemoryStorage>();
  auto writer = Writer::create(memory, {});
  const auto rows = make_rows(4);
  writer->append(book_layout(), bytes_of(rows), 4);
  const std::uint32_t other[] = {50, 2};
  EXPECT_THROW(writer->append(RowLayout(Kind::Float32, other), bytes_of(rows).first(400), 1), Error);
  writer->close();
  EXPECT_THROW(writer->append(book_layout(), bytes_of(rows), 4), Error);
  const Reader reader(memory);
  std::vector<std::byte> out(600);
  EXPECT_THROW(reader.read_into({4, 1}, out), Error);
  EXPECT_THROW(reader.read_into({~std::uint64_t{0}, 1}, out), Error);
  EXPECT_THROW(reader.read_into({0, 2}, out), Error);
  EXPECT_NO_THROW(reader.read_into({3, 1}, out));
}

// A writer cuts off what a dead or failed append left, also under a map that covers it. Reading then touches
// no byte behind the committed ones: where they end at the end of a page, the next one is gone.
TEST(Store, MapsOfWhatIsCutOffLater) {
#if defined(_WIN32)
  GTEST_SKIP() << "Windows refuses to cut off what is mapped";
#endif
  const TemporaryFile file;
  constexpr std::uint64_t kPageBytes = 4096;
  const RowLayout layout(Kind::UInt16, {});
  std::mt19937 random(5);
  std::vector<std::uint16_t> rows;
  std::uint64_t bytes = 1;
  WriterOptions options;
  options.codec = "numeric";
  options.chunk_rows = 100;
  for (std::size_t n = 200; bytes % kPageBytes != 0; ++n) {
    rows.resize(n);
    for (auto& row : rows) row = static_cast<std::uint16_t>(random());
    auto writer = Writer::create_file(file.path(), true, options);
    writer->append(layout, std::as_bytes(std::span(rows)), n);
    writer->close();
    bytes = std::filesystem::file_size(file.path());
  }
  std::filesystem::resize_file(file.path(), bytes + 16 * kPageBytes);
  Reader reader(MappedStorage::open(file.path()));
  std::filesystem::resize_file(file.path(), bytes);
  EXPECT_FALSE(reader.refresh());
  std::vector<std::uint16_t> found(rows.size());
  reader.read_into({0, rows.size()}, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found, rows);
  for (std::uint64_t i = 0; i < reader.chunks(); ++i) reader.verify_chunk(i);
}

}  // namespace
}  // namespace cdd
