#include <poll.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#elif defined(__APPLE__) || defined(__FreeBSD__)
#include <fcntl.h>
#include <sys/event.h>
#include <sys/time.h>
#define CDD_HAS_KQUEUE
#endif

#include <algorithm>
#include <cerrno>

#include "core/os/file_watch.h"

namespace cdd {

#if defined(__linux__)
namespace {

// Whether every write to the file, whoever does it, is this kernel's and raises an event: of local file
// systems that is known, of others (network, FUSE, overlays) it is not.
bool tells_of_all(const std::string& path) {
  constexpr std::uint32_t kXfs = 0x58465342, kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e;
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) return false;
  switch (static_cast<std::uint32_t>(found.f_type)) {
    case EXT4_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case kXfs:
    case kZfs:
    case kBcachefs:
      return true;
    default:
      return false;
  }
}

}  // namespace

FileWatch::FileWatch(const std::string& path) : handle_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (handle_ < 0) return;
  // A replaced file loses its name: IN_ATTRIB when its last link goes, IN_MOVE_SELF when it is renamed.
  constexpr std::uint32_t kEvents = IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF;
  if (::inotify_add_watch(static_cast<int>(handle_), path.c_str(), kEvents) >= 0) {
    if (tells_of_all(path)) steps_ = kEventsCome;
    step_ms_ = steps_.first_ms;
    return;
  }
  ::close(static_cast<int>(handle_));
  handle_ = -1;
}

FileWatch::~FileWatch() {
  if (handle_ >= 0) ::close(static_cast<int>(handle_));
}

void FileWatch::clear() noexcept {
  step_ms_ = steps_.first_ms;
  char events[4096];
  while (::read(static_cast<int>(handle_), events, sizeof events) > 0 || errno == EINTR) {
  }
}
#elif defined(CDD_HAS_KQUEUE)
FileWatch::FileWatch(const std::string& path) : handle_(::kqueue()) {
  if (handle_ < 0) return;
  const int file = ::open(path.c_str(), O_EVTONLY | O_CLOEXEC);
  struct kevent change {};
  EV_SET(&change, static_cast<uintptr_t>(file), EVFILT_VNODE, EV_ADD | EV_CLEAR,
         NOTE_WRITE | NOTE_EXTEND | NOTE_DELETE | NOTE_RENAME | NOTE_ATTRIB, 0, nullptr);
  if (file >= 0 && ::kevent(static_cast<int>(handle_), &change, 1, nullptr, 0, nullptr) == 0) {
    file_ = file;
    return;
  }
  if (file >= 0) ::close(file);
  ::close(static_cast<int>(handle_));
  handle_ = -1;
}

FileWatch::~FileWatch() {
  if (file_ >= 0) ::close(static_cast<int>(file_));
  if (handle_ >= 0) ::close(static_cast<int>(handle_));
}

void FileWatch::clear() noexcept {
  step_ms_ = steps_.first_ms;
  struct kevent events[8];
  const struct timespec now {};
  while (::kevent(static_cast<int>(handle_), nullptr, 0, events, 8, &now) > 0) {
  }
}
#else
FileWatch::FileWatch(const std::string&) {}

FileWatch::~FileWatch() = default;

void FileWatch::clear() noexcept { step_ms_ = steps_.first_ms; }
#endif

bool FileWatch::wait(std::int64_t most_ms) {
  const std::int64_t step = most_ms < 0 ? step_ms() : std::min(step_ms(), most_ms);
  pollfd polled{static_cast<int>(handle_), POLLIN, 0};  // a negative descriptor is passed over
  if (::poll(&polled, 1, static_cast<int>(step)) <= 0) return false;
  clear();
  return true;
}

}  // namespace cdd
