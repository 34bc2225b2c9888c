#include "core/storage/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <utility>

static_assert(sizeof(off_t) == 8, "files beyond 2 GiB need 64-bit offsets");

namespace cdd {
namespace {

constexpr std::size_t kMaxParts = 64;  // of one pwritev; POSIX promises no more than 16, Linux and macOS 1024

template <class Call>
auto retry(Call&& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

int open_or_fail(const std::string& path, int flags) {
  const int fd = retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  if (fd < 0) fail_io(errno, path, "cannot open %s");
  return fd;
}

off_t checked_offset(std::uint64_t offset, const std::string& path) {
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) {
    char text[48];
    std::snprintf(text, sizeof text, "offset 0x%llx in %%s", static_cast<unsigned long long>(offset));
    fail_io(EFBIG, path, text);
  }
  return static_cast<off_t>(offset);
}

void lock_or_fail(int fd, const std::string& path, int kind = LOCK_EX) {
  if (retry([&] { return ::flock(fd, kind | LOCK_NB); }) == 0) return;
  if (errno == EAGAIN) fail_io(errno, path, "another writer has %s open");
  fail_io(errno, path, "cannot lock %s");
}

bool is_still_named(int fd, const std::string& path) {
  struct stat held {};
  struct stat named {};
  if (::fstat(fd, &held) != 0) fail_io(errno, path, "cannot stat %s");
  if (::stat(path.c_str(), &named) != 0) return false;
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

// What is at `path`, nothing if nothing is. Devices, pipes and folders are no place for a store, nor is a
// link that leads nowhere.
std::optional<struct stat> check_regular(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    const int error = errno;
    if (::lstat(path.c_str(), &info) == 0) fail_io(error, path, "cannot follow %s, a link");
    return std::nullopt;
  }
  if (S_ISDIR(info.st_mode)) fail_io(EISDIR, path, "cannot open %s");
  if (!S_ISREG(info.st_mode)) fail_io(EINVAL, path, "%s is not a regular file");
  return info;
}

// `path` with links followed, so that a link keeps leading to what it leads to.
std::string resolved(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string out(real);
  std::free(real);
  return out;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name beside `path` that nobody else is likely to take: process numbers alone repeat, in containers
// always.
std::string temporary_beside(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  std::random_device random;
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".%08x%08x.tmp", random(), random());
  // A long name leaves no room for the suffix: NAME_MAX is 255 nearly everywhere.
  return directory_of(path) + "/." + name.substr(0, 200) + suffix;
}

// The folder of a file that is to get its name there: opened before, since what cannot be opened cannot be
// synced. A folder that may be written and not read is let be, and so is a system that syncs no folders.
class Folder {
 public:
  explicit Folder(const std::string& path)
      : path_(path), fd_(retry([&] { return ::open(directory_of(path).c_str(), O_RDONLY | O_CLOEXEC); })) {
    if (fd_ < 0 && errno != EACCES) fail_io(errno, path, "cannot open the folder of %s");
  }
  ~Folder() {
    if (fd_ >= 0) ::close(fd_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void sync() const {
    if (fd_ < 0 || retry([&] { return ::fsync(fd_); }) == 0 || errno == EINVAL || errno == ENOTSUP) return;
    fail_io(errno, path_, "cannot sync the folder of %s");
  }

 private:
  const std::string path_;
  const int fd_;
};

}  // namespace

std::unique_ptr<FileStorage> FileStorage::open(const std::string& path, Access access) {
  for (;;) {
    check_regular(path);  // first, since opening a FIFO would wait for its other end
    const int fd = open_or_fail(path, access == Access::Append ? O_RDWR : O_RDONLY);
    std::unique_ptr<FileStorage> file(new FileStorage(fd, path));
    if (access == Access::Read) return file;
    close_in_children(file->handle_);
    lock_or_fail(fd, path, access == Access::Append ? LOCK_EX : LOCK_SH);
    // Another writer may have replaced the file between open and lock: then this handle is to a dead one.
    if (is_still_named(fd, path)) return file;
  }
}

std::unique_ptr<FileStorage> FileStorage::create(const std::string& path, bool replace) {
  std::unique_ptr<FileStorage> old;
  const std::optional<struct stat> present = check_regular(path);
  if (present) {
    if (!replace) fail_io(EEXIST, path, "cannot create %s");
    old = open(path, Access::Append);
  }
  std::string target = resolved(path);
  std::string temporary = temporary_beside(target);
  const int fd =
      retry([&] { return ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (fd < 0) fail_io(errno, path, "cannot create %s");
  std::unique_ptr<FileStorage> file(new FileStorage(fd, path));
  file->target_ = std::move(target);
  file->temporary_ = std::move(temporary);
  file->replace_ = replace;
  file->replaced_ = std::move(old);
  if (present && ::fchmod(fd, present->st_mode & 07777) != 0) {
    fail_io(errno, path, "cannot give %s its permissions");
  }
  close_in_children(file->handle_);
  lock_or_fail(fd, path);
  return file;
}

// Whatever has the name by now is replaced only if it was to be, and while no writer has it.
void FileStorage::publish() {
  if (temporary_.empty()) return;
  const Folder folder(target_);
  if (::fsync(handle_) != 0) fail_io(errno, path_, "cannot sync %s");
  if (replaced_ && !is_still_named(replaced_->handle_, target_)) replaced_.reset();
  if (!replaced_ && ::link(temporary_.c_str(), target_.c_str()) == 0) {
    ::unlink(temporary_.c_str());
  } else {
    if (!replaced_) lock_what_is_there(errno);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_io(errno, path_, "cannot create %s");
  }
  temporary_.clear();
  replaced_.reset();
  folder.sync();
}

// After a link that failed: where there are no hard links (FAT, some network mounts) the look and the rename
// are two steps.
void FileStorage::lock_what_is_there(int error) {
  const bool has_no_links = error == EPERM || error == ENOTSUP || error == ENOSYS;
  if (error != EEXIST && !has_no_links) fail_io(error, path_, "cannot create %s");
  if (::access(target_.c_str(), F_OK) != 0) return;
  if (!replace_) fail_io(EEXIST, path_, "cannot create %s");
  replaced_ = open(target_, Access::Append);
}

// A forked child leaves lock and temporary name alone. The owner ends the lock in so many words: a child may
// be about to let go of it.
FileStorage::~FileStorage() {
  forget_in_children(handle_);
  if (process_ == process_id()) {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    ::flock(handle_, LOCK_UN);
  }
  if (handle_ >= 0) ::close(handle_);
}

Bytes FileStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  const MutableBytes out = scratch.get(n);
  std::size_t done = 0;
  while (done < n) {
    const off_t at = checked_offset(offset + done, path_);
    const ssize_t got = retry([&] { return ::pread(handle_, out.data() + done, n - done, at); });
    if (got < 0) fail_io(errno, path_, "cannot read %s");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return out.first(done);
}

void FileStorage::write_at(std::uint64_t offset, std::span<const Bytes> parts) {
  std::array<iovec, kMaxParts> vectors;
  std::size_t first = 0;  // first part not wholly written, of which `skip` bytes are
  std::size_t skip = 0;
  while (first < parts.size()) {
    const std::size_t count = std::min(parts.size() - first, kMaxParts);
    for (std::size_t i = 0; i < count; ++i) {
      const Bytes part = parts[first + i].subspan(i == 0 ? skip : 0);
      vectors[i] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    const off_t at = checked_offset(offset, path_);
    const ssize_t got =
        retry([&] { return ::pwritev(handle_, vectors.data(), static_cast<int>(count), at); });
    if (got < 0) fail_io(errno, path_, "cannot write %s");
    offset += static_cast<std::uint64_t>(got);
    auto written = static_cast<std::size_t>(got);
    while (first < parts.size() && written >= parts[first].size() - skip) {
      written -= parts[first++].size() - skip;
      skip = 0;
    }
    skip += written;
  }
}

std::uint64_t FileStorage::size() const {
  struct stat info {};
  if (::fstat(handle_, &info) != 0) fail_io(errno, path_, "cannot stat %s");
  return static_cast<std::uint64_t>(info.st_size);
}

void FileStorage::truncate(std::uint64_t size) {
  const off_t to = checked_offset(size, path_);
  if (retry([&] { return ::ftruncate(handle_, to); }) != 0) fail_io(errno, path_, "cannot resize %s");
}

void FileStorage::sync() {
#if defined(__APPLE__)
  // fsync on macOS leaves data in the drive's cache; F_FULLFSYNC does not, but not every file system has it.
  if (::fcntl(handle_, F_FULLFSYNC) == 0) return;
  const int result = ::fsync(handle_);
#else
  const int result = ::fdatasync(handle_);
#endif
  if (result != 0) fail_io(errno, path_, "cannot sync %s");
}

}  // namespace cdd
