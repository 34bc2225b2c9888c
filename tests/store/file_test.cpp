// FileStorage above system calls that are interrupted, cut short or refused, and processes that are killed
// between any two of them: a new file, and one that truncate, compact or repair make, is there whole or not
// at all, and the old one stays until then.
#include <gtest/gtest.h>

#include "tests/rig/failing_calls.h"

#if defined(__linux__)

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "core/store/reader.h"
#include "core/store/rescue/rewrite.h"
#include "core/store/writer.h"
#include "tests/rig/small_store.h"

namespace cdd {
namespace {

const std::uint32_t kDims[] = {100};
RowLayout layout() { return RowLayout(Kind::UInt32, kDims); }

std::vector<std::uint32_t> rows_of(std::uint64_t count) {
  std::vector<std::uint32_t> rows(count * kDims[0]);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(i * 2654435761u);
  return rows;
}

class File : public testing::Test {
 protected:
  File()
      : folder_(std::filesystem::temp_directory_path() / ("cdd-file-" + std::to_string(process_id()))),
        path_((folder_ / "store.cdd").string()) {
    std::filesystem::create_directories(folder_);
  }
  ~File() override {
    call_plan = {};
    std::filesystem::remove_all(folder_);
  }

  void write() {
    WriterOptions options;
    options.chunk_rows = 3;
    options.first_capacity = 2;
    options.durability = Durability::Always;
    const auto writer = Writer::create_file(path_, true, options);
    const Bytes bytes = std::as_bytes(std::span(all_));
    for (std::size_t row = 0; row < 40; row += 8)
      writer->append(layout(), bytes.subspan(row * 400, 8 * 400), 8);
    writer->close();
    Writer::open_file(path_, options)->close();
  }
  void read() {
    const Reader reader(FileStorage::open(path_, FileStorage::Access::Read));
    ASSERT_EQ(reader.rows(), 40u);
    std::vector<std::uint32_t> found(all_.size());
    reader.read_into({0, 40}, std::as_writable_bytes(std::span(found)));
    EXPECT_EQ(found, all_);
  }
  bool is_folder_clean() const {
    const auto files = std::filesystem::directory_iterator(folder_);
    return std::all_of(begin(files), end(files),
                       [&](const auto& entry) { return entry.path().string() == path_; });
  }

  std::filesystem::path folder_;
  std::string path_;
  std::vector<std::uint32_t> all_ = rows_of(40);
};

constexpr SystemCall kCalls[] = {SystemCall::Read,     SystemCall::Write, SystemCall::Sync,
                                 SystemCall::Truncate, SystemCall::Lock,  SystemCall::Name};

TEST_F(File, InterruptedAndShortCallsAreGoneOnWith) {
  const struct {
    SystemCall call;
    int os_errno;
  } nuisances[] = {{SystemCall::Read, EINTR}, {SystemCall::Read, 0},     {SystemCall::Write, EINTR},
                   {SystemCall::Write, 0},    {SystemCall::Lock, EINTR}, {SystemCall::Truncate, EINTR}};
  for (const auto& nuisance : nuisances) {
    call_plan = {true, nuisance.call, nuisance.os_errno, true};
    write();
    read();
    EXPECT_GT(call_plan.failures, 0);
    call_plan = {};
    read();
  }
}

TEST_F(File, RefusedCallsAreErrorsAndLeaveTheOldFileOrTheNewOne) {
  int points = 0;
  for (const SystemCall call : kCalls) {
    for (const int os_errno : {EIO, ENOSPC}) {
      for (int nth = 0;; ++nth) {
        call_plan = {true, call, os_errno, false, nth};
        bool failed = false;
        try {
          write();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::Io) << error.what();
          EXPECT_EQ(error.os_errno(), os_errno) << error.what();
          failed = true;
        }
        const CallPlan done = call_plan;
        call_plan = {};
        EXPECT_TRUE(is_folder_clean()) << "a temporary file was left behind";
        if (std::filesystem::exists(path_)) {
          EXPECT_NO_THROW(Writer::open_file(path_, {})->close());
          const Reader reader(FileStorage::open(path_, FileStorage::Access::Read));
          EXPECT_EQ(reader.rows() % 8, 0u);
          std::vector<std::uint32_t> found(reader.rows() * kDims[0]);
          reader.read_into({0, reader.rows()}, std::as_writable_bytes(std::span(found)));
          EXPECT_TRUE(std::equal(found.begin(), found.end(), all_.begin()));
        }
        ASSERT_FALSE(HasFailure()) << "call " << static_cast<int>(call) << ", error " << os_errno
                                   << ", number " << nth;
        if (done.failures == 0) break;
        // The proof after a commit may be missing.
        EXPECT_TRUE(failed || done.at_proof);
        ++points;
      }
    }
  }
  EXPECT_GT(points, 100);
  RecordProperty("points", points);
}

using Contents = std::vector<char>;

Contents contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Work that makes a file, a new one or one in the place of `path_`, and how many of the rows it then has.
struct Making {
  const char* name;
  bool in_place;
  std::uint64_t rows;
  std::function<void(const std::string& path, const std::string& output)> work;
};

const Making kMakings[] = {
    {"create", false, 0, [](auto&, auto& output) { Writer::create_file(output, false, {})->close(); }},
    {"replace", true, 0, [](auto& path, auto&) { Writer::create_file(path, true, {})->close(); }},
    {"truncate in place", true, 19, [](auto& path, auto&) { truncate_file(path, path, true, 19); }},
    {"truncate", false, 19, [](auto& path, auto& output) { truncate_file(path, output, false, 19); }},
    {"compact in place", true, 40, [](auto& path, auto&) { compact_file(path, path, true, false, {}); }},
    {"compact", false, 40, [](auto& path, auto& output) { compact_file(path, output, false, false, {}); }},
    {"repair", false, 40, [](auto& path, auto& output) { repair_file(path, output, false); }},
};

// Nobody was there when the new file was begun: who came since is not replaced while it writes.
TEST_F(File, ANewFileReplacesNoWriterThatCameSince) {
  for (const bool was_there : {false, true}) {
    std::filesystem::remove(path_);
    if (was_there) Writer::create_file(path_, true, {})->close();
    const auto late = Writer::create_file(path_, true, {}, Writer::Visible::AtClose);
    std::filesystem::remove(path_);  // as some other program may, whose file it was
    const auto writer = Writer::create_file(path_, false, {});
    writer->append(layout(), std::as_bytes(std::span(all_)), 40);
    writer->flush();
    try {
      late->close();
      ADD_FAILURE() << "replaced a file under its writer";
    } catch (const Error& error) {
      EXPECT_EQ(error.os_errno(), EAGAIN) << error.what();
    }
    writer->append(layout(), std::as_bytes(std::span(all_)), 40);
    writer->close();
    EXPECT_EQ(Reader(FileStorage::open(path_, FileStorage::Access::Read)).rows(), 80u);
    EXPECT_TRUE(is_folder_clean()) << "a temporary file was left behind";
    // Once it is done, the new one may have the name.
    const auto next = Writer::create_file(path_, true, {}, Writer::Visible::AtClose);
    next->close();
    EXPECT_EQ(Reader(FileStorage::open(path_, FileStorage::Access::Read)).rows(), 0u);
  }
}

class Rewrite : public File {
 protected:
  Rewrite() {
    write();
    before_ = contents_of(path_);
  }
  // The file as it was before, or as `making` makes it; returns which.
  bool is_made(const Making& making, bool said_so) {
    const std::string& made_path = making.in_place ? path_ : output_;
    const bool made = making.in_place ? contents_of(path_) != before_ : std::filesystem::exists(output_);
    EXPECT_TRUE(made || !said_so);
    EXPECT_TRUE(making.in_place || contents_of(path_) == before_);
    if (made) {
      Writer::open_file(made_path, {})->close();  // no lock is left
      const Reader reader(FileStorage::open(made_path, FileStorage::Access::Read));
      EXPECT_EQ(reader.rows(), making.rows);
      std::vector<std::uint32_t> found(reader.rows() * kDims[0]);
      if (making.rows > 0) reader.read_into({0, making.rows}, std::as_writable_bytes(std::span(found)));
      EXPECT_TRUE(std::equal(found.begin(), found.end(), all_.begin()));
    }
    return made;
  }
  void restore() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(path_, std::ios::binary)
        .write(before_.data(), static_cast<std::streamsize>(before_.size()));
  }

  std::string output_ = (folder_ / "made.cdd").string();
  Contents before_;
};

TEST_F(Rewrite, RefusedCallsLeaveTheOldFileOrTheNewOne) {
  int points = 0;
  for (const Making& making : kMakings) {
    for (const SystemCall call : kCalls) {
      for (const int os_errno : {EIO, ENOSPC}) {
        for (int nth = 0;; ++nth) {
          restore();
          call_plan = {true, call, os_errno, false, nth};
          bool failed = false;
          try {
            making.work(path_, output_);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::Io) << error.what();
            EXPECT_EQ(error.os_errno(), os_errno) << error.what();
            failed = true;
          }
          const CallPlan done = call_plan;
          call_plan = {};
          // A file that is created gets its name before it is closed, any before its folder is synced.
          const bool late = is_made(making, !failed) && failed;
          EXPECT_TRUE(!late || making.rows == 0 || call == SystemCall::Sync) << "failed, and there";
          for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
            EXPECT_EQ(entry.path().extension(), ".cdd") << "a temporary file was left behind";
          }
          ASSERT_FALSE(HasFailure()) << making.name << ", call " << static_cast<int>(call) << ", error "
                                     << os_errno << ", number " << nth;
          if (done.failures == 0) break;
          EXPECT_TRUE(failed || done.at_proof);
          ++points;
        }
      }
    }
  }
  EXPECT_GT(points, 300);
  RecordProperty("points", points);
}

TEST_F(Rewrite, KilledProcessesLeaveTheOldFileOrTheNewOne) {
  int points = 0;
  for (const Making& making : kMakings) {
    bool was_made = false;
    for (int nth = 0;; ++nth) {
      restore();
      const pid_t child = ::fork();
      if (child == 0) {
        call_plan = {true, SystemCall::Any, 0, false, nth, true};
        try {
          making.work(path_, output_);
        } catch (...) {
          ::_exit(2);
        }
        ::_exit(1);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << making.name << ", call " << nth;
      const bool finished = WEXITSTATUS(status) == 1;
      const bool made = is_made(making, finished);
      EXPECT_TRUE(made || !was_made) << "made, and then not";
      was_made = made;
      ASSERT_FALSE(HasFailure()) << making.name << ", killed at call " << nth;
      if (finished) break;
      ++points;
    }
    EXPECT_TRUE(was_made);
  }
  EXPECT_GT(points, 100);
  RecordProperty("points", points);
}

// Rows that only their BLAKE3 hash tells to be wrong: a new file would make them good.
TEST_F(Rewrite, WrongRowsAreNotMadeGood) {
  SmallStore made = make_small_store(layout(), 4, 3, true, 8);
  const PendingChunk& chunk = made.chunks[1];
  const MutableBytes record = MutableBytes(made.image).subspan(chunk.record_offset, chunk.record_bytes);
  record[8] ^= std::byte{1};  // of the hash
  const std::uint64_t salt = 0x5a5a5a5a5a5a5a5a;
  const std::uint32_t check = seal_record(record, {salt, 1}, false);
  const Slot slot{chunk.record_offset, 8, chunk.record_bytes, check, slot_flags::kEnd};
  put_slot(slot, salt, 1, made.image.data() + made.first_block + kBlockHeaderBytes + kSlotBytes);
  std::ofstream(path_, std::ios::binary)
      .write(reinterpret_cast<const char*>(made.image.data()),
             static_cast<std::streamsize>(made.image.size()));
  before_ = contents_of(path_);
  std::vector<std::byte> rows(made.rows.size());
  Reader(FileStorage::open(path_, FileStorage::Access::Read)).read_into({0, 12}, rows);
  EXPECT_EQ(rows, made.rows);
  for (const Making& making : kMakings) {
    if (making.rows == 0 || making.name == std::string("repair")) continue;
    try {
      if (making.rows == 40) making.work(path_, output_);
      if (making.rows == 19) truncate_file(path_, making.in_place ? path_ : output_, making.in_place, 6);
      ADD_FAILURE() << making.name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Checksum) << error.what();
    }
    EXPECT_EQ(contents_of(path_), before_);
    EXPECT_FALSE(std::filesystem::exists(output_));
  }
}

// What a power cut then leaves under the name is what was synced.
TEST_F(Rewrite, FilesAreSyncedBeforeTheyGetTheirNames) {
  for (const Making& making : kMakings) {
    restore();
    unsynced_names = 0;
    making.work(path_, output_);
    EXPECT_EQ(unsynced_names, 0) << making.name;
  }
}

}  // namespace
}  // namespace cdd

#endif
