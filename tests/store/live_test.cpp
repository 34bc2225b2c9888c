// Readers beside a writer: threads that read and refresh while it appends, and readers that outlive appends
// which were taken back. Run under ThreadSanitizer too (-DCDD_SANITIZE=thread).
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "core/storage/file.h"
#include "core/storage/mapped_file.h"
#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/rig/crash_session.h"

namespace cdd {
namespace {

const std::uint32_t kDims[] = {16};
RowLayout layout() { return RowLayout(Kind::UInt64, kDims); }

// Row i holds i, i + 1, ...: any row tells whether it is the right one.
std::vector<std::uint64_t> rows_from(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> rows(count * kDims[0]);
  for (std::uint64_t i = 0; i < rows.size(); ++i) rows[i] = first + i / kDims[0] + i % kDims[0];
  return rows;
}

void append(Writer& writer, std::uint64_t first, std::uint64_t count) {
  const auto rows = rows_from(first, count);
  writer.append(layout(), std::as_bytes(std::span(rows)), count);
}

constexpr std::uint64_t kRowsPerRead = 4;

struct Live {
  std::function<std::unique_ptr<Writer>(const WriterOptions&)> create;
  std::function<std::shared_ptr<Storage>()> open;
};

// One writer, readers of its rows; every row must be right, and rows never become fewer.
void read_while_writing(const Live& live, std::uint64_t rows, unsigned readers) {
  WriterOptions options;
  options.chunk_rows = 4;
  options.first_capacity = 2;
  options.durability = Durability::None;
  const auto writer = live.create(options);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::thread> threads;
  const auto shared = std::make_shared<Reader>(live.open());
  for (unsigned t = 0; t < readers; ++t) {
    threads.emplace_back([&, t] {
      // Half of the threads share one reader, whose pages they fill together.
      const auto reader = t % 2 == 0 ? shared : std::make_shared<Reader>(live.open());
      std::mt19937_64 random(t);
      std::uint64_t seen = 0;
      for (bool last = false; !last;) {
        last = done.load();
        reader->refresh();
        const std::uint64_t now = reader->rows();
        EXPECT_GE(now, seen);
        seen = now;
        if (now == 0) continue;
        const std::uint64_t count = 1 + random() % std::min<std::uint64_t>(now, 40);
        const std::uint64_t first = random() % 2 == 0 ? now - count : random() % (now - count + 1);
        std::vector<std::uint64_t> found(count * kDims[0]);
        reader->read_into({first, count}, std::as_writable_bytes(std::span(found)));
        EXPECT_EQ(found, rows_from(first, count));
        reads.fetch_add(1);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_EQ(seen, rows);
    });
  }
  std::mt19937_64 random(99);
  for (std::uint64_t first = 0; first < rows;) {
    const std::uint64_t count = std::min<std::uint64_t>(4 + random() % 3 * 12, rows - first);
    append(*writer, first, count);
    first += count;
    // However threads are scheduled, the readers keep up.
    while (reads.load() < first / kRowsPerRead && !testing::Test::HasFailure()) std::this_thread::yield();
  }
  writer->close();
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(reads.load(), rows / kRowsPerRead);
  testing::Test::RecordProperty("reads", std::to_string(reads.load()));
}

class TemporaryPath {
 public:
  TemporaryPath()
      : path_((std::filesystem::temp_directory_path() / ("cdd-live-" + std::to_string(process_id())))
                  .string()) {}
  ~TemporaryPath() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::uint64_t kRows = 12000;

TEST(Live, ReadersOfMemory) {
  const auto memory = std::make_shared<MemoryStorage>();
  read_while_writing(
      {[&](const WriterOptions& options) { return Writer::create(memory, options); }, [&] { return memory; }},
      kRows, 4);
}

TEST(Live, ReadersOfAFile) {
  const TemporaryPath file;
  read_while_writing(
      {[&](const WriterOptions& options) { return Writer::create_file(file.path(), false, options); },
       [&] { return FileStorage::open(file.path(), FileStorage::Access::Read); }},
      kRows, 4);
}

TEST(Live, ReadersOfAMap) {
  const TemporaryPath file;
  read_while_writing(
      {[&](const WriterOptions& options) { return Writer::create_file(file.path(), false, options); },
       [&] { return MappedStorage::open(file.path()); }},
      kRows, 4);
}

// Calls `after_write` after every write.
class WatchedStorage final : public WritableStorage {
 public:
  WatchedStorage(std::shared_ptr<RecordingStorage> inner, std::function<void()> after_write)
      : inner_(std::move(inner)), after_write_(std::move(after_write)) {}
  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override {
    return inner_->read_at(offset, n, scratch);
  }
  using WritableStorage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override {
    inner_->write_at(offset, parts);
    after_write_();
  }
  std::uint64_t size() const override { return inner_->size(); }
  void truncate(std::uint64_t size) override { inner_->truncate(size); }
  void sync() override { inner_->sync(); }
  const std::string& name() const noexcept override { return inner_->name(); }

 private:
  std::shared_ptr<RecordingStorage> inner_;
  std::function<void()> after_write_;
};

// A reader looks after every write, also of appends that fail and are taken back: it must see whole appends
// only and find all that follows, although blocks then come to stand in other places.
TEST(Live, ReaderSurvivesAppendsThatAreTakenBack) {
  for (int failing = 0; failing < 30; ++failing) {
    const auto inner = std::make_shared<RecordingStorage>();
    std::unique_ptr<Reader> reader;
    std::uint64_t whole = 0;
    std::uint64_t attempt = 0;
    const auto watched = std::make_shared<WatchedStorage>(inner, [&] {
      if (!reader) return;
      EXPECT_NO_THROW(reader->refresh());
      EXPECT_TRUE(reader->rows() == whole || reader->rows() == attempt) << reader->rows();
    });
    WriterOptions options;
    options.chunk_rows = 1;
    options.first_capacity = 2;
    options.layout = layout();
    options.durability = Durability::None;  // a commit that fails would end the writer
    const auto writer = Writer::create(watched, options);
    reader = std::make_unique<Reader>(inner);
    const std::uint64_t counts[] = {1, 3, 1, 9, 2, 20};
    std::vector<std::uint64_t> expected;
    const auto append_watched = [&](const std::vector<std::uint64_t>& rows) {
      attempt = whole + rows.size() / kDims[0];
      writer->append(layout(), std::as_bytes(std::span(rows)), attempt - whole);
      expected.insert(expected.end(), rows.begin(), rows.end());
      whole = attempt;
    };
    for (const std::uint64_t count : counts) {
      // More rows than the append that follows, so that blocks come to stand elsewhere.
      inner->fail_write(failing, 7);
      try {
        append_watched(rows_from(1000000, count + 2));
      } catch (const Error&) {
      }
      inner->fail_write(-1, 0);
      append_watched(rows_from(whole, count));
      reader->refresh();
      ASSERT_EQ(reader->rows(), whole) << "write " << failing << " failed";
      std::vector<std::uint64_t> found(whole * kDims[0]);
      reader->read_into({0, whole}, std::as_writable_bytes(std::span(found)));
      ASSERT_EQ(found, expected);
    }
  }
}

// A reader that follows meets slots that do not hold, in the last block it knows or behind its end, wiped or
// with one bit flipped; the proof that they are damaged and not about to be written stands far behind them,
// or only in the clean-close slot. It sees all that follows, and what is lost is an error.
TEST(Live, ReaderPassesDamagedSlots) {
  const std::uint64_t kSeen = 5;
  for (const std::uint64_t first_capacity : {8u, 1024u}) {
    for (const std::uint64_t damaged : {1u, 3u, 128u}) {
      for (const bool wiped : {false, true}) {
        for (const std::uint64_t from : {kSeen, kSeen + 1, std::uint64_t{70}}) {
          WriterOptions options;
          options.chunk_rows = 1;
          options.first_capacity = static_cast<std::uint32_t>(first_capacity);
          options.durability = Durability::Flush;
          const auto memory = std::make_shared<MemoryStorage>();
          const auto writer = Writer::create(memory, options);
          append(*writer, 0, kSeen);
          Reader reader(memory);
          ASSERT_EQ(reader.rows(), kSeen);
          append(*writer, kSeen, 500);
          const Header header = read_header(*memory);
          const BlockGeometry geometry = header.metadata.geometry();
          const BlockWalk walk(*memory, header.metadata, header.first_block);
          for (std::uint64_t chunk = from; chunk < from + damaged; ++chunk) {
            const std::uint64_t k = geometry.block_of(chunk);
            const std::uint64_t at = walk.blocks()[static_cast<std::size_t>(k)].offset + kBlockHeaderBytes +
                                     kSlotBytes * (chunk - geometry.first_chunk(k));
            std::byte slot[kSlotBytes]{};
            Scratch buffer;
            if (!wiped) std::copy_n(memory->read_at(at, kSlotBytes, buffer).data(), kSlotBytes, slot);
            slot[5] ^= wiped ? std::byte{0} : std::byte{4};
            memory->write_at(at, Bytes(slot));
          }
          EXPECT_NO_THROW(reader.refresh());
          EXPECT_LT(reader.rows(), kSeen + 500);  // nothing tells yet
          writer->flush();
          EXPECT_TRUE(reader.refresh());
          ASSERT_EQ(reader.rows(), kSeen + 500) << "from " << from << ", " << damaged << " slots";
          std::uint64_t lost = 0;
          for (std::uint64_t row = 0; row < reader.rows(); ++row) {
            std::vector<std::uint64_t> found(kDims[0]);
            try {
              reader.read_into({row, 1}, std::as_writable_bytes(std::span(found)));
              EXPECT_EQ(found, rows_from(row, 1));
            } catch (const Error& error) {
              EXPECT_EQ(error.code(), ErrorCode::Checksum);
              ++lost;
            }
          }
          EXPECT_EQ(lost, damaged);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cdd
