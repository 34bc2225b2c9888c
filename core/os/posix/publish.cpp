#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/os/posix/retry.h"
#include "core/os/publish.h"

#if defined(__linux__) || defined(__APPLE__)
#include <sys/xattr.h>
#define CDD_HAS_XATTR
#endif

namespace cdd {

namespace {

constexpr int kMostLinks = 40;  // one behind the other, as many as Linux follows
constexpr std::size_t kMostLinkBytes = 4096;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The folder of a file that is to get its name there: opened before, since what cannot be opened cannot be
// synced. A folder that may be written and not read is let be, and so is a system that syncs no folders.
class Folder {
 public:
  Folder(const std::string& target, const std::string& name)
      : name_(name), fd_(retry([&] { return ::open(directory_of(target).c_str(), O_RDONLY | O_CLOEXEC); })) {
    if (fd_ < 0 && errno != EACCES) fail_io(errno, name_, "cannot open the folder of %s");
  }
  ~Folder() {
    if (fd_ >= 0) ::close(fd_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void sync() const {
    if (fd_ < 0 || retry([&] { return ::fsync(fd_); }) == 0 || errno == EINVAL || errno == ENOTSUP) return;
    fail_io(errno, name_, "cannot sync the folder of %s");
  }

 private:
  const std::string& name_;
  const int fd_;
};

// One more link; empty where `path` is none.
std::string read_link(const std::string& path) {
  std::array<char, kMostLinkBytes> to;
  const ssize_t bytes = ::readlink(path.c_str(), to.data(), to.size());
  if (bytes <= 0) return {};
  const std::string link(to.data(), static_cast<std::size_t>(bytes));
  return link.front() == '/' ? link : directory_of(path) + "/" + link;
}

#ifdef CDD_HAS_XATTR
#if defined(__APPLE__)
ssize_t list_names(const char* path, char* out, std::size_t n) { return ::listxattr(path, out, n, 0); }
ssize_t get_value(const char* path, const char* name, void* out, std::size_t n) {
  return ::getxattr(path, name, out, n, 0, 0);
}
void set_value(int fd, const char* name, const void* value, std::size_t n) {
  ::fsetxattr(fd, name, value, n, 0, 0);
}
#else
ssize_t list_names(const char* path, char* out, std::size_t n) { return ::listxattr(path, out, n); }
ssize_t get_value(const char* path, const char* name, void* out, std::size_t n) {
  return ::getxattr(path, name, out, n);
}
void set_value(int fd, const char* name, const void* value, std::size_t n) {
  static_cast<void>(::fsetxattr(fd, name, value, n, 0));
}
#endif

// Access lists are among them. Those that the system refuses, as a label that it gives itself, stay behind.
void copy_extended_attributes(const char* from, int to) {
  const ssize_t bytes = list_names(from, nullptr, 0);
  if (bytes <= 0) return;
  std::vector<char> names(static_cast<std::size_t>(bytes) + 1);  // ends with 0 whatever was found
  if (list_names(from, names.data(), static_cast<std::size_t>(bytes)) != bytes) return;
  for (const char* name = names.data(); *name != '\0'; name += std::char_traits<char>::length(name) + 1) {
    const ssize_t size = get_value(from, name, nullptr, 0);
    if (size < 0) continue;
    std::vector<char> value(static_cast<std::size_t>(size));
    if (get_value(from, name, value.data(), value.size()) == size)
      set_value(to, name, value.data(), value.size());
  }
}
#else
void copy_extended_attributes(const char*, int) {}
#endif

}  // namespace

std::string followed(const std::string& path) {
  std::string at = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    std::string next = read_link(at);
    if (next.empty()) return at;
    at = std::move(next);
  }
  fail_io(ELOOP, path, "cannot follow %s, a link");
}

NewName::NewName(const std::string& path) : path_(path), target_(followed(path)) {
  struct stat info {};
  is_taken_ = ::lstat(path.c_str(), &info) == 0;
  has_old_file_ = ::stat(target_.c_str(), &info) == 0;
  is_taken_ = is_taken_ || has_old_file_;  // somebody may have created it in between
  if (has_old_file_ && S_ISDIR(info.st_mode)) fail_io(EISDIR, path_, "cannot create %s");
  if (has_old_file_ && !S_ISREG(info.st_mode)) fail_io(EINVAL, path_, "%s is not a regular file");
  temporary_ = temporary_beside(target_);
}

NewName::~NewName() {
  if (!temporary_.empty() && process_ == process_id()) ::unlink(temporary_.c_str());
}

// Owner first, since a change of it takes bits of the mode away; the mode last, since it is part of an access
// list, too. Only who may set an owner keeps it; a group can be kept by its members.
void NewName::keep_attributes(const OpenFile& file) const noexcept {
  struct stat old {};
  if (!has_old_file_ || ::stat(target_.c_str(), &old) != 0) return;
  const int fd = file.handle();
  constexpr uid_t kSameOwner = static_cast<uid_t>(-1);
  const bool has_owner = ::fchown(fd, old.st_uid, old.st_gid) == 0;
  const bool has_group = has_owner || ::fchown(fd, kSameOwner, old.st_gid) == 0;
  try {
    copy_extended_attributes(target_.c_str(), fd);
  } catch (const std::bad_alloc&) {  // they stay behind
  }
  // No file is to run as somebody whom its old one did not name.
  static_cast<void>(::fchmod(fd, old.st_mode & (has_owner ? 07777 : has_group ? 03777 : 01777)));
}

bool NewName::take(OpenFile& file) {
  const Folder folder(target_, path_);
  file.sync();
  if (::link(temporary_.c_str(), target_.c_str()) == 0) {
    ::unlink(temporary_.c_str());
  } else {
    // Where there are no hard links (FAT, some network mounts) the look and the rename are two steps.
    const bool has_no_links = errno == EPERM || errno == ENOTSUP || errno == ENOSYS;
    if (errno != EEXIST && !has_no_links) fail_io(errno, path_, "cannot create %s");
    if (errno == EEXIST || ::access(target_.c_str(), F_OK) == 0) return false;
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_io(errno, path_, "cannot create %s");
  }
  temporary_.clear();
  folder.sync();
  return true;
}

void NewName::replace(OpenFile& file) {
  const Folder folder(target_, path_);
  file.sync();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_io(errno, path_, "cannot create %s");
  temporary_.clear();
  folder.sync();
}

void replace_file(const std::string& from, const std::string& to) {
  const Folder folder(to, to);
  if (::rename(from.c_str(), to.c_str()) != 0) fail_io(errno, to, "cannot replace %s");
  folder.sync();
}

}  // namespace cdd
