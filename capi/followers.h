// Readers that are followed through a queue: one thread sleeps for all of them, so that none of the threads
// that read does.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/async/queue.h"
#include "core/os/file_watch.h"
#include "core/os/wake.h"
#include "core/store/reader.h"

namespace cdd::capi {

// No row came in time.
class TimedOut final : public std::exception {
 public:
  const char* what() const noexcept override { return "no row came in time"; }
};

// Throws InvalidArgument for a reader of bytes in memory, which has no path.
void need_path(const std::string& path);

// Whether there are more rows than `seen` now, or no more will come since the path names another file.
bool has_news(Reader& reader, std::uint64_t seen);

// When so many milliseconds are over; in a year for a negative number.
std::chrono::steady_clock::time_point end_of(std::int64_t timeout_ms);

// Lives shorter than its queue. What a forked child inherits must be left as it is: its thread is not there.
class Followers {
 public:
  explicit Followers(Queue& queue) noexcept : queue_(queue) {}
  ~Followers();
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  // `request` ends when has_news(), with TimedOut after so many milliseconds (negative: never). Returns its
  // ticket. Throws as Queue::expect(), InvalidArgument where the reader has no path.
  std::uint64_t follow(std::unique_ptr<Request> request, std::shared_ptr<Reader> reader,
                       const std::string& path, std::uint64_t seen, std::int64_t timeout_ms);

  // Lets go of a reader whose request was taken back.
  void forget(std::uint64_t ticket);

 private:
  using Clock = std::chrono::steady_clock;
  struct One {
    One(std::shared_ptr<Reader> followed, const std::string& path, std::uint64_t rows, Clock::time_point over)
        : reader(std::move(followed)), watch(path), seen(rows), end(over) {}

    std::shared_ptr<Reader> reader;
    FileWatch watch;
    std::uint64_t ticket = 0;
    std::uint64_t seen;
    Clock::time_point end;
    Clock::time_point next_look{};
    bool is_told = false;  // by the system, of a change
  };

  void run() noexcept;
  bool take_in() noexcept;
  void look_at_all() noexcept;
  bool is_over(One& one) noexcept;
  void sleep();

  Queue& queue_;
  Wake wake_;
  std::mutex mutex_;
  bool closing_ = false;
  std::list<One> incoming_;
  std::vector<std::uint64_t> forgotten_;
  std::list<One> followed_;  // the thread's alone
  std::thread thread_;
};

}  // namespace cdd::capi
