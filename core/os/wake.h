// What one thread sleeps on, alone or in the select, poll or epoll of an event loop, until others wake it.
//
// signal() may be called from any thread and a signal handler. Signals are not counted: many before a clear()
// are one. Closed on exec; in a forked child the handle is the parent's too, so a child makes its own.
#pragma once

#include <cstdint>

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

}  // namespace cdd
