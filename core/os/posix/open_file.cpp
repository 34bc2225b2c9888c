#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/os/open_file.h"
#include "core/os/posix/retry.h"

static_assert(sizeof(off_t) == 8, "files beyond 2 GiB need 64-bit offsets");

namespace cdd {
namespace {

constexpr std::size_t kMaxParts = 64;  // of one pwritev; POSIX promises no more than 16, Linux and macOS 1024

// Devices, pipes and folders are no place for a store. First, since opening a FIFO would wait for its other
// end.
void check_regular(const std::string& path, const std::string& name) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;  // opening says why
  if (S_ISDIR(info.st_mode)) fail_io(EISDIR, name, "cannot open %s");
  if (!S_ISREG(info.st_mode)) fail_io(EINVAL, name, "%s is not a regular file");
}

int flags_of(OpenFile::How how) {
  using How = OpenFile::How;
  switch (how) {
    case How::Read:
      return O_RDONLY;
    case How::ReadWrite:
      return O_RDWR;
    case How::Create:
      return O_RDWR | O_CREAT;
    case How::New:
    case How::NewAlone:
      break;
  }
  return O_RDWR | O_CREAT | O_EXCL;
}

off_t checked_offset(std::uint64_t offset, const std::string& name) {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    char text[48];
    std::snprintf(text, sizeof text, "offset 0x%llx in %%s", static_cast<unsigned long long>(offset));
    fail_io(EFBIG, name, text);
  }
  return static_cast<off_t>(offset);
}

}  // namespace

OpenFile::OpenFile(const std::string& path, How how, std::string name) : name_(std::move(name)) {
  const bool is_new = how == How::New || how == How::NewAlone;
  if (!is_new) check_regular(path, name_);
  const mode_t mode = how == How::NewAlone ? 0600 : 0666;
  handle_ = retry([&] { return ::open(path.c_str(), flags_of(how) | O_CLOEXEC, mode); });
  if (handle_ < 0)
    fail_io(errno, name_, is_new || how == How::Create ? "cannot create %s" : "cannot open %s");
}

// A forked child leaves the lock alone. The owner ends it in so many words: a child may be about to let go of
// it.
OpenFile::~OpenFile() {
  if (is_locked_) {
    forget_in_children(handle_);
    if (process_ == process_id()) ::flock(handle_, LOCK_UN);
  }
  if (handle_ >= 0) ::close(handle_);
}

void OpenFile::lock(LockKind kind) {
  if (!std::exchange(is_locked_, true)) close_in_children(handle_);
  const int operation = kind == LockKind::Exclusive ? LOCK_EX : LOCK_SH;
  if (retry([&] { return ::flock(handle_, operation | LOCK_NB); }) == 0) return;
  if (errno == EAGAIN) fail_io(errno, name_, "another writer has %s open");
  fail_io(errno, name_, "cannot lock %s");
}

bool OpenFile::is_named(const std::string& path) const {
  struct stat held {};
  struct stat named {};
  if (::fstat(handle_, &held) != 0) fail_io(errno, name_, "cannot stat %s");
  if (::stat(path.c_str(), &named) != 0) return false;
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

std::size_t OpenFile::read_at(std::uint64_t offset, MutableBytes out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const off_t at = checked_offset(offset + done, name_);
    const ssize_t got = retry([&] { return ::pread(handle_, out.data() + done, out.size() - done, at); });
    if (got < 0) fail_io(errno, name_, "cannot read %s");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

// The last byte is asked for: what stands before it was most likely read with it.
bool OpenFile::is_cached([[maybe_unused]] std::uint64_t offset,
                         [[maybe_unused]] std::size_t n) const noexcept {
#if defined(__linux__) && defined(RWF_NOWAIT)
  char byte = 0;
  iovec vector{&byte, 1};
  const std::uint64_t at = offset + (n == 0 ? 0 : n - 1);
  return at <= static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()) &&
         ::preadv2(handle_, &vector, 1, static_cast<off_t>(at), RWF_NOWAIT) == 1;
#else
  return false;
#endif
}

void OpenFile::prefetch([[maybe_unused]] std::uint64_t offset,
                        [[maybe_unused]] std::size_t n) const noexcept {
#if defined(POSIX_FADV_WILLNEED)
  static_cast<void>(
      ::posix_fadvise(handle_, static_cast<off_t>(offset), static_cast<off_t>(n), POSIX_FADV_WILLNEED));
#elif defined(__APPLE__)
  radvisory ahead{static_cast<off_t>(offset), static_cast<int>(std::min<std::size_t>(n, 1U << 30))};
  static_cast<void>(::fcntl(handle_, F_RDADVISE, &ahead));
#endif
}

void OpenFile::write_at(std::uint64_t offset, std::span<const Bytes> parts) {
  std::array<iovec, kMaxParts> vectors;
  std::size_t first = 0;  // first part not wholly written, of which `skip` bytes are
  std::size_t skip = 0;
  while (first < parts.size()) {
    const std::size_t count = std::min(parts.size() - first, kMaxParts);
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes part = parts[first + i].subspan(i == 0 ? skip : 0);
      vectors[i] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    const off_t at = checked_offset(offset, name_);
    const ssize_t got =
        retry([&] { return ::pwritev(handle_, vectors.data(), static_cast<int>(count), at); });
    if (got < 0) fail_io(errno, name_, "cannot write %s");
    offset += static_cast<std::uint64_t>(got);
    auto written = static_cast<std::size_t>(got);
    while (first < parts.size() && written >= parts[first].size() - skip) {
      written -= parts[first++].size() - skip;
      skip = 0;
    }
    skip += written;
  }
}

std::uint64_t OpenFile::size() const {
  struct stat info {};
  if (::fstat(handle_, &info) != 0) fail_io(errno, name_, "cannot stat %s");
  return static_cast<std::uint64_t>(info.st_size);
}

void OpenFile::truncate(std::uint64_t size) {
  const off_t to = checked_offset(size, name_);
  if (retry([&] { return ::ftruncate(handle_, to); }) != 0) fail_io(errno, name_, "cannot resize %s");
}

void OpenFile::sync_bytes() {
#if defined(__APPLE__)
  sync();
#else
  if (::fdatasync(handle_) != 0) fail_io(errno, name_, "cannot sync %s");
#endif
}

void OpenFile::sync() {
#if defined(__APPLE__)
  // fsync on macOS leaves data in the drive's cache; F_FULLFSYNC does not, but not every file system has it.
  if (::fcntl(handle_, F_FULLFSYNC) == 0) return;
#endif
  if (::fsync(handle_) != 0) fail_io(errno, name_, "cannot sync %s");
}

}  // namespace cdd
