#include "core/async/queue.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <utility>

#include "core/base/error.h"

namespace cdd {

namespace {

std::exception_ptr cancelled() {
  return std::make_exception_ptr(Error(ErrorCode::Cancelled, "cancelled before it had begun"));
}

}  // namespace

struct Queue::Entry final : Job {
  static constexpr std::size_t kMostAtOnce = 8;

  // Short ones of a queue are a batch.
  Entry(Queue& to, std::unique_ptr<Request> what, bool by_others)
      : Job(what->is_short_ ? &to : nullptr), queue(to), request(std::move(what)), is_expected(by_others) {}
  ~Entry() = default;

  void run() noexcept override {
    Queue& to = queue;
    const bool is_short = request->is_short_;
    std::array<Entry*, kMostAtOnce> done;
    std::size_t count = 0;
    for (Entry* next = this; next != nullptr;) {
      next->work();
      done[count++] = next;
      if (!is_short || count == kMostAtOnce) break;
      next = static_cast<Entry*>(Jobs::shared().take_next(&to));
    }
    to.ended({done.data(), count});  // and they are no more, nor need the queue be
  }

  void work() noexcept {
    try {
      request->work();
    } catch (...) {
      request->error_ = std::current_exception();
    }
  }

  Queue& queue;
  std::unique_ptr<Request> request;
  const bool is_expected;
};

// What a forked child leaves as it is: a thread of the parent's may have been changing it.
struct Queue::State {
  std::mutex mutex;
  std::condition_variable none_runs;
  std::uint64_t last_ticket = 0;
  std::uint64_t wakes = 0;
  Entries under_way;
  std::vector<std::unique_ptr<Request>> done;
};

Queue::Queue(std::size_t most_requests, std::function<void()> wake)
    : most_requests_(most_requests), on_wake_(std::move(wake)), state_(std::make_unique<State>()) {
  state_->done.reserve(64);
}

Queue::~Queue() {
  finish();
  if (process_ != process_id()) static_cast<void>(state_.release());
}

bool Queue::take_back(Entry& entry) noexcept {
  if (!entry.is_expected && !Jobs::shared().take_back(entry)) return false;
  entry.request->error_ = cancelled();
  return true;
}

void Queue::finish() noexcept {
  if (process_ != process_id()) return;
  std::unique_lock lock(state_->mutex);
  for (auto at = state_->under_way.begin(); at != state_->under_way.end();) {
    const auto next = std::next(at);
    if (take_back(*at->second)) move_to_done(at);
    at = next;
  }
  state_->none_runs.wait(lock, [&] { return state_->under_way.empty(); });
}

void Queue::check_process() const {
  if (process_ != process_id()) {
    fail(ErrorCode::Closed, "this queue belongs to the process that made it: make another in a forked child");
  }
}

std::uint64_t Queue::add(std::unique_ptr<Request> request, bool is_expected, Entry** added) {
  check_process();
  const std::lock_guard lock(state_->mutex);
  if (state_->under_way.size() + state_->done.size() >= most_requests_) {
    fail(ErrorCode::Limit, "the queue is full: %zu requests are under way or wait to be taken",
         most_requests_);
  }
  state_->done.reserve(state_->under_way.size() + state_->done.size() + 1);  // so that an end needs no memory
  request->ticket_ = ++state_->last_ticket;
  auto entry = std::make_unique<Entry>(*this, std::move(request), is_expected);
  if (added != nullptr) *added = entry.get();
  state_->under_way.emplace(state_->last_ticket, std::move(entry));
  return state_->last_ticket;
}

std::uint64_t Queue::submit(std::unique_ptr<Request> request, Strand* strand) {
  Entry* entry = nullptr;
  const std::uint64_t ticket = add(std::move(request), false, &entry);
  if (strand != nullptr) {
    Jobs::shared().submit(*entry, *strand);
  } else {
    Jobs::shared().submit(*entry);
  }
  return ticket;
}

std::uint64_t Queue::expect(std::unique_ptr<Request> request) { return add(std::move(request), true); }

// With the lock held, which signals as well: afterwards the queue may be gone.
void Queue::move_to_done(Entries::iterator at) noexcept {
  const bool was_empty = state_->done.empty();
  state_->done.push_back(std::move(at->second->request));
  state_->under_way.erase(at);
  if (was_empty) {
    ++state_->wakes;
    wake_.signal();
    if (on_wake_) on_wake_();
  }
  if (state_->under_way.empty()) state_->none_runs.notify_all();
}

void Queue::ended(std::span<Entry* const> entries) noexcept {
  const std::lock_guard lock(state_->mutex);
  for (Entry* const entry : entries) move_to_done(state_->under_way.find(entry->request->ticket()));
}

bool Queue::end(std::uint64_t ticket, std::exception_ptr error) noexcept {
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->under_way.find(ticket);
  if (at == state_->under_way.end()) return false;
  at->second->request->error_ = std::move(error);
  move_to_done(at);
  return true;
}

bool Queue::cancel(std::uint64_t ticket) {
  check_process();
  const std::lock_guard lock(state_->mutex);
  const auto at = state_->under_way.find(ticket);
  if (at == state_->under_way.end() || !take_back(*at->second)) return false;
  move_to_done(at);
  return true;
}

std::vector<std::unique_ptr<Request>> Queue::take(std::size_t at_most, std::int64_t timeout_ms) {
  check_process();
  std::vector<std::unique_ptr<Request>> taken;
  if (at_most == 0 || (timeout_ms != 0 && !wake_.wait(timeout_ms))) return taken;
  const std::lock_guard lock(state_->mutex);
  const std::size_t count = std::min(at_most, state_->done.size());
  const auto end = state_->done.begin() + static_cast<std::ptrdiff_t>(count);
  taken.assign(std::make_move_iterator(state_->done.begin()), std::make_move_iterator(end));
  state_->done.erase(state_->done.begin(), end);
  if (state_->done.empty()) wake_.clear();
  return taken;
}

std::size_t Queue::size() const noexcept {
  if (process_ != process_id()) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->under_way.size() + state_->done.size();
}

std::uint64_t Queue::wakes() const noexcept {
  if (process_ != process_id()) return 0;
  const std::lock_guard lock(state_->mutex);
  return state_->wakes;
}

}  // namespace cdd
