// What went wrong in the background of a writer, and whether it can be tried again; how long its stages took.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "core/base/error.h"

namespace cdd::tiles {

struct Failure {
  std::exception_ptr error;  // to be thrown to the caller
  bool poisons;              // false: the disk was full, and nothing is lost
};
Failure looked_at(const std::exception_ptr& error) noexcept;

// Its text, as far as there is memory for it.
std::string text_of(const std::exception_ptr& error) noexcept;

// A failed sync may have lost what was written before it, so it cannot be tried again, whatever it says.
struct SyncFailed {
  Error error;
};

template <class Sync>
void synced(Sync&& sync) {
  try {
    sync();
  } catch (const Error& error) {
    throw SyncFailed{error};
  }
}

// Adds the time of its life, in nanoseconds.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<std::uint64_t>& total) noexcept : total_(total) {}
  ~Stopwatch() {
    const auto passed = std::chrono::steady_clock::now() - start_;
    total_ += static_cast<std::uint64_t>(std::chrono::nanoseconds(passed).count());
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::atomic<std::uint64_t>& total_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace cdd::tiles
