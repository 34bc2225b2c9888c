// FileStorage above system calls that are interrupted, cut short or refused. The calls are replaced by
// functions of the same name in this program, which the loader prefers to the C library's; Linux only.
#include <gtest/gtest.h>

#if defined(__linux__)

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "core/storage/file.h"
#include "core/store/reader.h"
#include "core/store/writer.h"

namespace {

enum class Call { Read, Write, Sync, Truncate, Lock };

// What happens to the calls of this thread.
struct Plan {
  bool armed = false;
  Call call = Call::Read;
  int os_errno = 0;  // 0: the call does part of its work
  bool every_other =
      false;  // interrupts and short counts: each call again and again; else call number `left`, once
  int left = 0;
  int failures = 0;
};
thread_local Plan plan;

bool strikes(Call call) {
  if (!plan.armed || plan.call != call) return false;
  if (plan.every_other) {
    plan.left ^= 1;
    if (plan.left == 0) return false;
  } else if (plan.left-- != 0) {
    return false;
  }
  ++plan.failures;
  if (plan.os_errno != 0) errno = plan.os_errno;
  return true;
}

}  // namespace

extern "C" {
ssize_t pread(int fd, void* out, size_t n, off_t at) {
  if (strikes(Call::Read)) {
    if (plan.os_errno != 0) return -1;
    n = (n + 1) / 2;
  }
  const iovec part{out, n};
  return preadv(fd, &part, 1, at);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t at) {
  if (strikes(Call::Write)) {
    if (plan.os_errno != 0) return -1;
    const iovec part{parts[0].iov_base, (parts[0].iov_len + 1) / 2};
    return pwritev2(fd, &part, 1, at, 0);
  }
  return pwritev2(fd, parts, count, at, 0);
}
int fdatasync(int fd) { return strikes(Call::Sync) ? -1 : static_cast<int>(syscall(SYS_fdatasync, fd)); }
int fsync(int fd) { return strikes(Call::Sync) ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int ftruncate(int fd, off_t size) noexcept {
  if (strikes(Call::Truncate)) return -1;
#if defined(SYS_ftruncate64)
  // 32-bit Arm: a number of 64 bits takes two registers, the first of them an even one.
  return static_cast<int>(
      syscall(SYS_ftruncate64, fd, 0, static_cast<long>(size), static_cast<long>(size >> 32)));
#else
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
#endif
}
int flock(int fd, int operation) noexcept {
  // Letting go is followed by a close, which lets go as well: its failure has no effect to look for.
  const bool refused = operation != LOCK_UN && strikes(Call::Lock);
  return refused ? -1 : static_cast<int>(syscall(SYS_flock, fd, operation));
}
}

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
    plan = {};
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

TEST_F(File, InterruptedAndShortCallsAreGoneOnWith) {
  const struct {
    Call call;
    int os_errno;
  } nuisances[] = {{Call::Read, EINTR}, {Call::Read, 0},     {Call::Write, EINTR},
                   {Call::Write, 0},    {Call::Lock, EINTR}, {Call::Truncate, EINTR}};
  for (const auto& nuisance : nuisances) {
    plan = {true, nuisance.call, nuisance.os_errno, true, 0, 0};
    write();
    read();
    EXPECT_GT(plan.failures, 0);
    plan = {};
    read();
  }
}

TEST_F(File, RefusedCallsAreErrorsAndLeaveTheOldFileOrTheNewOne) {
  int points = 0;
  for (const Call call : {Call::Read, Call::Write, Call::Sync, Call::Truncate, Call::Lock}) {
    for (const int os_errno : {EIO, ENOSPC}) {
      for (int nth = 0;; ++nth) {
        plan = {true, call, os_errno, false, nth, 0};
        bool failed = false;
        try {
          write();
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::Io) << error.what();
          EXPECT_EQ(error.os_errno(), os_errno) << error.what();
          failed = true;
        }
        const bool struck = plan.failures > 0;
        plan = {};
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
        if (!struck) break;
        // The sync of the directory is the one call whose failure says nothing about the file.
        EXPECT_TRUE(failed || call == Call::Sync);
        ++points;
      }
    }
  }
  EXPECT_GT(points, 100);
  RecordProperty("points", points);
}

}  // namespace
}  // namespace cdd

#endif
