// Coroutines of the core: Task<T>, when_all() to run several, sync_wait() to get back into ordinary code.
//
// A Task does nothing until it is awaited, and then runs in the awaiting thread until it waits for something;
// it goes on in the thread that what it waited for ended in. An exception leaves a Task where it is awaited.
// A Task is awaited once, by one coroutine. One that is destroyed before it was awaited never ran; one that
// has begun must be awaited to its end.
//
// Nothing here transfers symmetrically: gcc before 13 makes calls of what should be jumps, so that a loop of
// awaits that end at once would overflow the stack, and some versions of MSVC wrote to frames that were gone.
// Instead the awaiting side resumes the awaited one as a plain call, and the two meet in one atomic exchange:
// whoever comes second goes on. So a chain of N tasks within each other that all wait takes N frames of stack
// when it ends, and a loop of awaits takes none.
//
// No lock, ForkGate or scratch memory may be held over a co_await: the thread afterwards may be another one.
#pragma once

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/threads/latch.h"

namespace cdd {

template <class T = void>
class Task;

namespace async_detail {

// What both kinds of promise share: who waits, and the meeting of the two sides.
struct PromiseBase {
  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      PromiseBase& promise = ended.promise();
      const std::coroutine_handle<> waiting = promise.waiting;
      // After a first exchange the frame belongs to the other side, which may have freed it by now.
      if (promise.met.exchange(true, std::memory_order_acq_rel)) waiting.resume();
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }

  std::coroutine_handle<> waiting;
  std::atomic<bool> met{false};
};

template <class T>
struct Promise : PromiseBase {
  Task<T> get_return_object() noexcept;
  void unhandled_exception() noexcept { result.template emplace<2>(std::current_exception()); }
  template <class Value>
  void return_value(Value&& value) {
    result.template emplace<1>(std::forward<Value>(value));
  }
  T take() {
    if (result.index() == 2) std::rethrow_exception(std::get<2>(result));
    return std::move(std::get<1>(result));
  }

  std::variant<std::monostate, T, std::exception_ptr> result;
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void unhandled_exception() noexcept { error = std::current_exception(); }
  void return_void() const noexcept {}
  void take() const {
    if (error) std::rethrow_exception(error);
  }

  std::exception_ptr error;
};

}  // namespace async_detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = async_detail::Promise<T>;

  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_.destroy();
  }

  // An object of its own, since gcc 12 copies what is awaited by name.
  struct Awaiter {
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiting) const {
      promise_type& promise = frame.promise();
      promise.waiting = waiting;
      frame.resume();
      return !promise.met.exchange(true, std::memory_order_acq_rel);
    }
    T await_resume() const { return frame.promise().take(); }

    std::coroutine_handle<promise_type> frame;
  };
  Awaiter operator co_await() const noexcept { return {frame_}; }

 private:
  friend promise_type;
  explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

namespace async_detail {

template <class T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

// A coroutine that nobody awaits: it begins at once and frees itself when it ends.
struct Detached {
  struct promise_type {
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // bodies catch
  };
};

template <class T>
using Outcome = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
Detached run_to(Task<T> task, std::optional<Outcome<T>>* value, std::exception_ptr* error, Latch* done) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await task;
      value->emplace();
    } else {
      value->emplace(co_await task);
    }
  } catch (...) {
    *error = std::current_exception();
  }
  done->count_down();
}

}  // namespace async_detail

// Runs `task` and sleeps until it has ended. Returns its value or throws its exception. Not for a thread that
// the task needs in order to go on.
template <class T>
T sync_wait(Task<T> task) {
  std::optional<async_detail::Outcome<T>> value;
  std::exception_ptr error;
  Latch done(1);
  async_detail::run_to(std::move(task), &value, &error, &done);
  done.wait();
  if (error) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<T>) return std::move(*value);
}

namespace async_detail {

// Several tasks of which at most so many have begun and not ended. Each task that ends begins the next one.
class Group {
 public:
  Group(std::vector<Task<void>> tasks, std::size_t at_most)
      : tasks_(std::move(tasks)),
        at_most_(at_most == 0 ? tasks_.size() : at_most),
        unended_(1) {}  // 1: begin()

  struct Awaiter {
    bool await_ready() const noexcept { return group.tasks_.empty(); }
    bool await_suspend(std::coroutine_handle<> waiting) const { return group.begin(waiting); }
    void await_resume() const {
      if (group.error_) std::rethrow_exception(group.error_);
    }

    Group& group;
  };
  Awaiter all() noexcept { return {*this}; }

 private:
  // Whether any is still under way.
  bool begin(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    const std::size_t lanes = std::min(at_most_, tasks_.size());
    unended_.fetch_add(lanes, std::memory_order_relaxed);
    for (std::size_t lane = 0; lane < lanes; ++lane) run_lane();
    return unended_.fetch_sub(1, std::memory_order_acq_rel) != 1;
  }

  // The tasks that begin one after the other in one place. A loop, not a chain: no stack is used up.
  Detached run_lane() {
    for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_.size();) {
      try {
        co_await tasks_[i];
      } catch (...) {
        if (!failed_.exchange(true, std::memory_order_acq_rel)) error_ = std::current_exception();
      }
    }
    if (unended_.fetch_sub(1, std::memory_order_acq_rel) == 1) waiting_.resume();
  }

  std::vector<Task<void>> tasks_;
  const std::size_t at_most_;
  std::coroutine_handle<> waiting_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> unended_;  // lanes, and begin() itself
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

}  // namespace async_detail

// Awaited, runs all `tasks`, of which at most `at_most` (0: any number) have begun and not ended at a time.
// All of them run and end, also when some throw; then the exception that came first is thrown.
inline Task<void> when_all(std::vector<Task<void>> tasks, std::size_t at_most = 0) {
  async_detail::Group group(std::move(tasks), at_most);
  co_await group.all();
}

}  // namespace cdd
