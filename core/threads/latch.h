// What threads sleep on until something has happened so and so often, as std::latch is. Where the system has
// no futex (MinGW) libstdc++'s loses the wake-up of a thread that is just about to sleep: it looks at the
// value before it takes the lock that the waking thread does not take at all.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace cdd {

class Latch {
 public:
  explicit Latch(std::size_t count) noexcept : left_(count) {}

  // At most `count` times. The mutex is held to the end: a thread that waited may free the latch at once.
  void count_down() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }
  bool try_wait() const {
    const std::lock_guard lock(mutex_);
    return left_ == 0;
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::size_t left_;
};

}  // namespace cdd
