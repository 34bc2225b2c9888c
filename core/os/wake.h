// What one thread sleeps on, alone or in the select, poll or epoll of an event loop, until others wake it.
//
// signal() may be called from any thread and a signal handler. Signals are not counted: many before a clear()
// are one. Closed on exec; in a forked child the handle is the parent's too, so a child makes its own.
#pragma once

#include <cstdint>
#include <span>

namespace cdd {

class Wake {
 public:
  Wake();  // Throws Error{Io} where the system has no handle left.
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void signal() noexcept;
  void clear() noexcept;

  // Whether it was signalled, after at most so many milliseconds; negative: however long it takes.
  bool wait(std::int64_t timeout_ms) const noexcept;

  // A descriptor that is readable while signalled; on Windows an event.
  std::intptr_t handle() const noexcept { return read_; }

 private:
  std::intptr_t read_;
  std::intptr_t write_;  // the same where the system has one handle for both
};

// A handle of a Wake or a FileWatch that wait_any() sleeps on; -1 is passed over.
struct Waited {
  std::intptr_t handle;
  bool is_signalled = false;
};

// Sleeps until one of the handles is signalled, at most so many milliseconds (negative: however long), and
// says of each whether it is. Windows watches the first 64: later ones are left to their owners' timers.
void wait_any(std::span<Waited> all, std::int64_t timeout_ms);

}  // namespace cdd
