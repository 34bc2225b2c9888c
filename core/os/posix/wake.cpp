#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <vector>

#include "core/base/error.h"
#include "core/os/wake.h"

namespace cdd {
namespace {

int descriptor(std::intptr_t handle) { return static_cast<int>(handle); }

}  // namespace

#if defined(__linux__)
Wake::Wake() : read_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), write_(read_) {
  if (read_ < 0) fail_io(errno, "", "cannot make an eventfd");
}
#else
Wake::Wake() {
  int ends[2];
  if (::pipe(ends) != 0) fail_io(errno, "", "cannot make a pipe");
  for (const int end : ends) {
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  read_ = ends[0];
  write_ = ends[1];
}
#endif

Wake::~Wake() {
  if (write_ != read_) ::close(descriptor(write_));
  ::close(descriptor(read_));
}

// Full means signalled already.
void Wake::signal() noexcept {
  const int error = errno;
  const std::uint64_t one = 1;
  while (::write(descriptor(write_), &one, write_ == read_ ? sizeof one : 1) < 0 && errno == EINTR) {
  }
  errno = error;
}

void Wake::clear() noexcept {
  char bytes[64];
  for (;;) {
    const ssize_t got = ::read(descriptor(read_), bytes, sizeof bytes);
    if (got == static_cast<ssize_t>(sizeof bytes) || (got < 0 && errno == EINTR)) continue;
    return;
  }
}

bool Wake::wait(std::int64_t timeout_ms) const noexcept {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms < 0 ? 0 : timeout_ms);
  pollfd polled{descriptor(read_), POLLIN, 0};
  for (std::int64_t left = timeout_ms;;) {
    const int step = left < 0 ? -1 : left > INT_MAX ? INT_MAX : static_cast<int>(left);
    if (::poll(&polled, 1, step) > 0) return true;
    if (timeout_ms < 0) continue;
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    left = rest.count();
    if (left <= 0) return false;
  }
}

void wait_any(std::span<Waited> all, std::int64_t timeout_ms) {
  std::vector<pollfd> polled;
  polled.reserve(all.size());
  for (const Waited& one : all) polled.push_back({descriptor(one.handle), POLLIN, 0});
  const auto step = timeout_ms < 0 ? -1 : static_cast<int>(std::min<std::int64_t>(timeout_ms, INT_MAX));
  ::poll(polled.data(), static_cast<nfds_t>(polled.size()), step);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].is_signalled = polled[i].revents != 0;
}

}  // namespace cdd
