#include "core/async/queue.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace cdd {

namespace {

std::exception_ptr cancelled() {
  return std::make_exception_ptr(Error(ErrorCode::Cancelled, "cancelled before it had begun"));
}

}  // namespace

struct Queue::Entry final : Job {
  Entry(Queue& to, std::unique_ptr<Request> what) : queue(to), request(std::move(what)) {}
  ~Entry() = default;

  void run() noexcept override {
    try {
      request->work();
    } catch (...) {
      request->error_ = std::current_exception();
    }
    queue.ended(*this);  // and is no more
  }

  Queue& queue;
  std::unique_ptr<Request> request;
};

Queue::Queue(std::size_t most_requests, std::function<void()> wake)
    : most_requests_(most_requests), on_wake_(std::move(wake)) {
  done_.reserve(64);
}

// What a child inherits is the parent's to finish: its entries are left as they are.
Queue::~Queue() {
  finish();
  for (auto& [ticket, entry] : under_way_) static_cast<void>(entry.release());
}

void Queue::finish() noexcept {
  if (process_ != process_id()) return;
  std::unique_lock lock(mutex_);
  for (auto at = under_way_.begin(); at != under_way_.end();) {
    if (!Jobs::shared().take_back(*at->second)) {
      ++at;
      continue;
    }
    at->second->request->error_ = cancelled();
    done_.push_back(std::move(at->second->request));
    at = under_way_.erase(at);
  }
  none_runs_.wait(lock, [&] { return under_way_.empty(); });
}

void Queue::check_process() const {
  if (process_ != process_id()) {
    fail(ErrorCode::Closed, "this queue belongs to the process that made it: make another in a forked child");
  }
}

std::uint64_t Queue::submit(std::unique_ptr<Request> request, Strand* strand) {
  check_process();
  Entry* entry = nullptr;
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    if (under_way_.size() + done_.size() >= most_requests_) {
      fail(ErrorCode::Limit, "the queue is full: %zu requests are under way or wait to be taken",
           most_requests_);
    }
    done_.reserve(under_way_.size() + done_.size() + 1);  // so that an end needs no memory
    ticket = ++last_ticket_;
    request->ticket_ = ticket;
    entry =
        under_way_.emplace(ticket, std::make_unique<Entry>(*this, std::move(request))).first->second.get();
  }
  if (strand != nullptr) {
    Jobs::shared().submit(*entry, *strand);
  } else {
    Jobs::shared().submit(*entry);
  }
  return ticket;
}

// Signals while it holds the lock: afterwards the queue may be gone.
void Queue::ended(Entry& entry) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = under_way_.find(entry.request->ticket());
  const bool was_empty = done_.empty();
  done_.push_back(std::move(entry.request));
  under_way_.erase(at);
  if (was_empty) {
    ++wakes_;
    wake_.signal();
    if (on_wake_) on_wake_();
  }
  if (under_way_.empty()) none_runs_.notify_all();
}

bool Queue::cancel(std::uint64_t ticket) {
  check_process();
  Entry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto at = under_way_.find(ticket);
    if (at == under_way_.end() || !Jobs::shared().take_back(*at->second)) return false;
    entry = at->second.get();
    entry->request->error_ = cancelled();
  }
  ended(*entry);
  return true;
}

std::vector<std::unique_ptr<Request>> Queue::take(std::size_t at_most, std::int64_t timeout_ms) {
  check_process();
  std::vector<std::unique_ptr<Request>> taken;
  if (at_most == 0 || (timeout_ms != 0 && !wake_.wait(timeout_ms))) return taken;
  const std::lock_guard lock(mutex_);
  const std::size_t count = std::min(at_most, done_.size());
  const auto end = done_.begin() + static_cast<std::ptrdiff_t>(count);
  taken.assign(std::make_move_iterator(done_.begin()), std::make_move_iterator(end));
  done_.erase(done_.begin(), end);
  if (done_.empty()) wake_.clear();
  return taken;
}

std::size_t Queue::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return under_way_.size() + done_.size();
}

std::uint64_t Queue::wakes() const noexcept {
  const std::lock_guard lock(mutex_);
  return wakes_;
}

}  // namespace cdd
