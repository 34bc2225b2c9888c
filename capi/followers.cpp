#include "capi/followers.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/error.h"

namespace cdd::capi {

void need_path(const std::string& path) {
  if (path.empty()) fail(ErrorCode::InvalidArgument, "a reader of bytes in memory has nothing to follow");
}

// A file that was found replaced before the look gets no more rows after it.
bool has_news(Reader& reader, std::uint64_t seen) {
  const bool is_last = reader.storage().is_replaced();
  if (reader.rows() <= seen) reader.refresh();
  return reader.rows() > seen || is_last;
}

std::chrono::steady_clock::time_point end_of(std::int64_t timeout_ms) {
  constexpr std::int64_t kYear = std::int64_t{365} * 24 * 3600 * 1000;
  const std::int64_t ms = timeout_ms < 0 ? kYear : std::min(timeout_ms, kYear);
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
}

Followers::~Followers() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    wake_.signal();
  }
  thread_.join();
}

std::uint64_t Followers::follow(std::unique_ptr<Request> request, std::shared_ptr<Reader> reader,
                                const std::string& path, std::uint64_t seen, std::int64_t timeout_ms) {
  need_path(path);
  std::list<One> fresh;
  fresh.emplace_back(std::move(reader), path, seen, end_of(timeout_ms));
  const std::uint64_t ticket = queue_.expect(std::move(request));
  fresh.front().ticket = ticket;
  const std::lock_guard lock(mutex_);
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (...) {
    queue_.end(ticket, std::current_exception());
    return ticket;
  }
  incoming_.splice(incoming_.end(), fresh);
  wake_.signal();
  return ticket;
}

void Followers::forget(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) return;
  forgotten_.push_back(ticket);
  wake_.signal();
}

// What was given and taken back since. False: the queue closes.
bool Followers::take_in() noexcept {
  const std::lock_guard lock(mutex_);
  wake_.clear();
  followed_.splice(followed_.end(), incoming_);
  for (const std::uint64_t ticket : std::exchange(forgotten_, {})) {
    followed_.remove_if([&](const One& one) { return one.ticket == ticket; });
  }
  return !closing_;
}

// Looks, and says to the queue how it ended.
bool Followers::is_over(One& one) noexcept {
  std::exception_ptr error;
  try {
    if (!has_news(*one.reader, one.seen)) {
      if (Clock::now() < one.end) return false;
      error = std::make_exception_ptr(TimedOut());
    }
  } catch (...) {
    error = std::current_exception();
  }
  queue_.end(one.ticket, std::move(error));
  return true;
}

// Each that was told of a change, or whose time has come.
void Followers::look_at_all() noexcept {
  for (auto one = followed_.begin(); one != followed_.end();) {
    if (one->is_told) {
      one->watch.clear();
    } else if (Clock::now() < std::min(one->next_look, one->end)) {
      ++one;
      continue;
    }
    one->is_told = false;
    if (is_over(*one)) {
      one = followed_.erase(one);
    } else {
      one->next_look = Clock::now() + std::chrono::milliseconds(one->watch.step_ms());
      ++one;
    }
  }
}

void Followers::sleep() {
  std::vector<Waited> waited{{wake_.handle()}};
  auto until = Clock::time_point::max();
  for (const One& one : followed_) {
    waited.push_back({one.watch.handle()});
    until = std::min({until, one.next_look, one.end});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  wait_any(waited, followed_.empty() ? -1 : std::max<std::int64_t>(left, 0));
  auto at = waited.begin();
  for (One& one : followed_) one.is_told = (++at)->is_signalled;
}

void Followers::run() noexcept {
  while (take_in()) {
    look_at_all();
    try {
      sleep();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
}

}  // namespace cdd::capi
