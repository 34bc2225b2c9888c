#include <windows.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/error.h"
#include "core/os/wake.h"

namespace cdd {
namespace {

HANDLE event(std::intptr_t handle) { return reinterpret_cast<HANDLE>(handle); }

}  // namespace

Wake::Wake()
    : read_(reinterpret_cast<std::intptr_t>(::CreateEventW(nullptr, TRUE, FALSE, nullptr))), write_(read_) {
  if (read_ == 0) fail_io(ENFILE, "", "cannot make an event");
}

Wake::~Wake() { ::CloseHandle(event(read_)); }

void Wake::signal() noexcept { ::SetEvent(event(write_)); }

void Wake::clear() noexcept { ::ResetEvent(event(read_)); }

bool Wake::wait(std::int64_t timeout_ms) const noexcept {
  constexpr std::int64_t kStep = 0x7fffffff;
  for (std::int64_t left = timeout_ms;;) {
    const DWORD step = timeout_ms < 0 ? INFINITE : static_cast<DWORD>(left < kStep ? left : kStep);
    if (::WaitForSingleObject(event(read_), step) == WAIT_OBJECT_0) return true;
    if (timeout_ms < 0) continue;
    left -= step;
    if (left <= 0) return false;
  }
}

void wait_any(std::span<Waited> all, std::int64_t timeout_ms) {
  std::array<HANDLE, MAXIMUM_WAIT_OBJECTS> handles;
  DWORD count = 0;
  for (const Waited& one : all) {
    if (one.handle != -1 && count < handles.size()) handles[count++] = event(one.handle);
  }
  const DWORD step =
      timeout_ms < 0 ? INFINITE : static_cast<DWORD>(std::min<std::int64_t>(timeout_ms, 0x7fffffff));
  if (count == 0) {
    ::Sleep(step);
  } else {
    ::WaitForMultipleObjects(count, handles.data(), FALSE, step);
  }
  DWORD at = 0;
  for (Waited& one : all) {
    one.is_signalled =
        one.handle != -1 && at < count && ::WaitForSingleObject(handles[at++], 0) == WAIT_OBJECT_0;
  }
}

}  // namespace cdd
