// Calls that fail: storage and memory. A writer whose call failed is as before it, or poisoned and says so;
// what was acknowledged is in the file, and what is in it is a prefix of what was appended. A reader whose
// call failed reads on.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "core/storage/memory.h"
#include "core/store/index/block_walk.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/rig/failing_allocation.h"
#include "tests/rig/faulty_storage.h"

namespace cdd {
namespace {

constexpr std::uint32_t kRowBytes = 24;
const std::uint32_t kDims[] = {kRowBytes};
RowLayout layout() { return RowLayout(Kind::UInt8, kDims); }

std::vector<std::byte> rows_of(std::uint64_t first, std::uint64_t count, unsigned history) {
  std::vector<std::byte> rows(count * kRowBytes);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint64_t row = first + i / kRowBytes;
    rows[i] = static_cast<std::byte>(row * 31 + i % kRowBytes * 7 + history * 101);
  }
  return rows;
}

WriterOptions options_of(Durability durability) {
  WriterOptions options;
  options.durability = durability;
  options.chunk_rows = 2;
  options.first_capacity = 2;
  return options;
}

// Lets one call of a writer's life fail and keeps the books.
class Ledger {
 public:
  Ledger(Durability durability, std::shared_ptr<WritableStorage> storage, std::shared_ptr<MemoryStorage> disk)
      : options_(options_of(durability)), storage_(std::move(storage)), disk_(std::move(disk)) {}

  // Runs `call`; returns false when it failed, which must be with os_errno or, when that is 0, for want of
  // memory.
  bool attempt(const std::function<void()>& call) {
    try {
      const FailingAllocation::Scope scope;
      call();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Io) << error.what();
      EXPECT_EQ(error.os_errno(), os_errno) << error.what();
      EXPECT_NE(os_errno, 0);
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(os_errno, 0);
    }
    ++failures;
    return false;
  }

  void create() {
    if (!attempt([&] { writer_ = Writer::create(storage_, options_); })) writer_.reset();
  }
  void open() {
    if (!attempt([&] { writer_ = Writer::open(storage_, options_); })) writer_.reset();
    if (!writer_) return;
    EXPECT_EQ(writer_->rows(), accepted_.size() / kRowBytes);
    EXPECT_GE(writer_->rows(), acknowledged_);
  }
  void append(std::uint64_t count) {
    if (!writer_) return;
    const std::uint64_t before = writer_->rows();
    const RowLayout layout_before = writer_->layout();
    const auto rows = rows_of(before, count, 0);
    if (attempt([&] { writer_->append(layout(), rows, count); })) {
      accept(rows);
      if (options_.durability == Durability::Always) acknowledged_ = accepted_.size() / kRowBytes;
    } else if (is_poisoned()) {
      accept(rows);  // may be in the file or not, but as a whole
      give_up();
    } else {
      EXPECT_EQ(writer_->rows(), before);
      EXPECT_EQ(writer_->layout(), layout_before);
    }
  }
  void flush() {
    if (!writer_) return;
    const std::uint64_t before = writer_->rows();
    if (attempt([&] { writer_->flush(); })) {
      if (options_.durability != Durability::None) acknowledged_ = accepted_.size() / kRowBytes;
    } else if (is_poisoned()) {
      give_up();
    }
    EXPECT_TRUE(!writer_ || writer_->rows() == before);
  }
  // After a failed close the tail may be lost: nobody acknowledged it.
  void close() {
    if (!writer_) return;
    const bool closed = attempt([&] { writer_->close(); });
    EXPECT_TRUE(writer_->is_closed());
    if (closed) acknowledged_ = accepted_.size() / kRowBytes;
    EXPECT_TRUE(!closed || is_clean());
    writer_.reset();
    if (!closed) take_over();
  }
  // What is in the file, as the next process finds it.
  void check() {
    writer_.reset();
    if (!created_) return;
    auto writer = Writer::open(disk_, options_);
    const std::uint64_t rows = writer->rows();
    EXPECT_GE(rows, acknowledged_);
    ASSERT_LE(rows, accepted_.size() / kRowBytes);
    auto expected = accepted_;
    expected.resize(rows * kRowBytes);
    const auto more = rows_of(rows, 3, 1);
    writer->append(layout(), more, 3);
    writer->close();
    expected.insert(expected.end(), more.begin(), more.end());
    const Reader reader(disk_);
    ASSERT_EQ(reader.rows(), rows + 3);
    std::vector<std::byte> found(expected.size());
    reader.read_into({0, rows + 3}, found);
    EXPECT_EQ(found, expected);
  }

  // A life with everything in it; those of other numbers than 0 are drawn.
  void live(unsigned number = 0) {
    create();
    if (!writer_) create();
    if (!writer_) return;
    created_ = true;
    if (number == 0) {
      append(3);
      append(1);
      flush();
      append(9);
      append(2);
    } else {
      live_at_random(number);
    }
    close();
    if (!writer_) open();
    append(1);
    flush();
    append(12);
    append(1);
    close();
  }

  int os_errno = 0;  // of the expected error; 0: std::bad_alloc
  int failures = 0;

 private:
  void live_at_random(unsigned number) {
    std::mt19937 random(number);
    for (int i = 0; i < 6; ++i) {
      if (!writer_) open();
      append(1 + random() % 12);
      if (random() % 3 == 0) flush();
      if (random() % 4 == 0) close();
    }
  }
  bool is_poisoned() const {
    try {
      writer_->append(layout(), {}, 0);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Closed);
      return true;
    }
  }
  bool is_clean() const {
    const Header header = read_header(*disk_);
    return BlockWalk(*disk_, header.metadata, header.first_block).find_tail().clean;
  }
  void accept(const std::vector<std::byte>& rows) {
    accepted_.insert(accepted_.end(), rows.begin(), rows.end());
  }
  // A poisoned writer closes without a word and changes nothing.
  void give_up() {
    std::vector<std::byte> before;
    disk_->visit([&](Bytes bytes) { before.assign(bytes.begin(), bytes.end()); });
    EXPECT_NO_THROW(writer_->close());
    disk_->visit([&](Bytes bytes) {
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), before.begin(), before.end()));
    });
    writer_.reset();
    take_over();
  }
  // Another writer, without faults, says what survived.
  void take_over() {
    if (!created_) return;
    const auto copy = std::make_shared<MemoryStorage>();
    disk_->visit([&](Bytes bytes) { copy->write_at(0, bytes); });
    const std::uint64_t rows = Writer::open(copy, options_)->rows();
    EXPECT_GE(rows, acknowledged_);
    ASSERT_LE(rows, accepted_.size() / kRowBytes);
    accepted_.resize(rows * kRowBytes);
  }

  WriterOptions options_;
  std::shared_ptr<WritableStorage> storage_;
  std::shared_ptr<MemoryStorage> disk_;
  std::unique_ptr<Writer> writer_;
  bool created_ = false;
  std::vector<std::byte> accepted_;
  std::uint64_t acknowledged_ = 0;
};

const Durability kDurabilities[] = {Durability::None, Durability::Flush, Durability::Batch,
                                    Durability::Always};

// How many lives of a writer each call fails in: one, or as many as a longer run says.
unsigned lives() {
  const char* const given = std::getenv("CDD_FAULT_LIVES");
  return given == nullptr ? 1 : static_cast<unsigned>(std::max(1, std::atoi(given)));
}

// How many calls there were to fail.
int fail_each_call(unsigned life, Durability durability, const Fault& fault) {
  for (int nth = 0;; ++nth) {
    const auto disk = std::make_shared<MemoryStorage>();
    const auto faulty = std::make_shared<FaultyStorage>(disk);
    Ledger ledger(durability, faulty, disk);
    ledger.os_errno = fault.os_errno;
    faulty->fail(fault, nth);
    ledger.live(life);
    faulty->repair();
    ledger.check();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "call " << static_cast<int>(fault.call) << " number " << nth
                    << (fault.half ? ", half" : "") << (fault.for_good ? ", for good" : "");
      return nth;
    }
    if (!faulty->has_failed()) return nth;
    // The proof after a commit is a help only: nothing that was promised hangs on it.
    EXPECT_TRUE(ledger.failures > 0 || faulty->has_failed_at_proof()) << "a failure was swallowed";
  }
}

TEST(Faults, EveryCallOfAWriterMayFail) {
  const Fault faults[] = {
      {Fault::Call::Read, EIO, false, false},        {Fault::Call::Read, EIO, false, true},
      {Fault::Call::Write, EIO, false, false},       {Fault::Call::Write, ENOSPC, false, true},
      {Fault::Call::Write, ENOSPC, true, false},     {Fault::Call::Write, EIO, true, true},
      {Fault::Call::Sync, EIO, false, false},        {Fault::Call::Sync, EIO, false, true},
      {Fault::Call::Truncate, ENOSPC, false, false}, {Fault::Call::Truncate, EIO, false, true},
  };
  int points = 0;
  for (unsigned life = 0; life < lives(); ++life) {
    for (const Durability durability : kDurabilities) {
      for (const Fault& fault : faults) {
        points += fail_each_call(life, durability, fault);
        if (HasFailure()) FAIL() << "life " << life << ", durability " << static_cast<int>(durability);
      }
    }
  }
  EXPECT_GT(points, 1000);
  RecordProperty("points", points);
}

TEST(Faults, EveryReadOfAReaderMayFail) {
  const auto disk = std::make_shared<MemoryStorage>();
  const auto all = rows_of(0, 40, 0);
  auto writer = Writer::create(disk, options_of(Durability::Flush));
  for (std::uint64_t row = 0; row < 20; row += 4)
    writer->append(layout(), Bytes(all).subspan(row * kRowBytes, 4 * kRowBytes), 4);
  std::vector<std::byte> early;
  disk->visit([&](Bytes bytes) { early.assign(bytes.begin(), bytes.end()); });
  for (std::uint64_t row = 20; row < 40; row += 4)
    writer->append(layout(), Bytes(all).subspan(row * kRowBytes, 4 * kRowBytes), 4);

  int points = 0;
  for (const bool for_good : {false, true}) {
    for (int nth = 0;; ++nth) {
      const auto growing = std::make_shared<MemoryStorage>();
      growing->write_at(0, Bytes(early));
      const auto faulty = std::make_shared<FaultyStorage>(growing);
      faulty->fail({Fault::Call::Read, EIO, false, for_good}, nth);
      const auto attempt = [&](const std::function<void()>& call) {
        try {
          call();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::Io);
          EXPECT_EQ(error.os_errno(), EIO);
          faulty->repair();
          call();
        }
      };
      std::unique_ptr<Reader> reader;
      std::vector<std::byte> found(20 * kRowBytes);
      attempt([&] { reader = std::make_unique<Reader>(faulty); });
      attempt([&] { reader->read_into({0, 20}, found); });
      EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin()));
      disk->visit([&](Bytes bytes) { growing->write_at(0, bytes); });
      attempt([&] { reader->refresh(); });
      EXPECT_EQ(reader->rows(), 40u);
      const std::uint64_t starts[] = {20};
      attempt([&] { reader->read_windows(starts, 20, found); });
      EXPECT_TRUE(std::equal(found.begin(), found.end(), all.begin() + 20 * kRowBytes));
      attempt([&] { reader->verify_chunk(7); });
      ASSERT_FALSE(HasFailure()) << "read " << nth;
      if (!faulty->has_failed()) break;
      ++points;
    }
  }
  EXPECT_GT(points, 40);
  RecordProperty("points", points);
}

// In a thread of its own, whose scratch is not there yet.
void in_new_thread(const std::function<void()>& work) { std::thread(work).join(); }

TEST(Faults, EveryAllocationOfAWriterMayFail) {
  int points = 0;
  for (const Durability durability : kDurabilities) {
    bool done = false;
    for (long nth = 0; !done; ++nth) {
      const auto disk = std::make_shared<MemoryStorage>();
      in_new_thread([&] {
        Ledger ledger(durability, disk, disk);
        const FailingAllocation failing(nth);
        ledger.live();
        done = !failing.has_failed();
        EXPECT_EQ(done, ledger.failures == 0);
        ledger.check();
      });
      ASSERT_FALSE(HasFailure()) << "durability " << static_cast<int>(durability) << ", allocation " << nth;
      ++points;
    }
  }
  EXPECT_GT(points, 200);
  RecordProperty("points", points);
}

TEST(Faults, EveryAllocationOfAReaderMayFail) {
  const auto disk = std::make_shared<MemoryStorage>();
  const auto all = rows_of(0, 400, 0);
  auto writer = Writer::create(disk, options_of(Durability::None));
  writer->append(layout(), all, 400);
  bool done = false;
  int points = 0;
  for (long nth = 0; !done; ++nth, ++points) {
    in_new_thread([&] {
      std::vector<std::byte> found(all.size());
      std::optional<Reader> reader;
      const std::uint64_t starts[] = {3, 100};
      const auto work = [&] {
        if (!reader) reader.emplace(disk);
        reader->read_into({0, 400}, found);
        reader->read_windows(starts, 200, found);
        reader->verify_chunk(150);
        reader->refresh();
        reader->read_into({0, 400}, found);
      };
      const FailingAllocation failing(nth);
      try {
        const FailingAllocation::Scope scope;
        work();
      } catch (const std::bad_alloc&) {
      }
      done = !failing.has_failed();
      std::fill(found.begin(), found.end(), std::byte{0});
      work();
      EXPECT_EQ(found, all);
    });
    ASSERT_FALSE(HasFailure()) << "allocation " << nth;
  }
  EXPECT_GT(points, 15);
  RecordProperty("points", points);
}

}  // namespace
}  // namespace cdd
