#include "core/async/task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cdd {
namespace {

Task<int> one() { co_return 1; }
Task<void> fail_with(const char* text) {
  throw std::runtime_error(text);
  co_return;
}

// Goes on in a thread of its own, which ends afterwards.
// Threads that are joined when the test ends: MinGW's library hangs over detached ones that end at once.
struct InThread {
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    const std::lock_guard lock(mutex);
    threads.emplace_back([waiting] { waiting.resume(); });
  }
  void await_resume() const noexcept {}

  static void join_all() {
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  static inline std::mutex mutex;
  static inline std::vector<std::thread> threads;
};

TEST(Task, GivesItsValue) { EXPECT_EQ(sync_wait(one()), 1); }

TEST(Task, MovesWhatCannotBeCopied) {
  const auto made = sync_wait(
      []() -> Task<std::unique_ptr<std::string>> { co_return std::make_unique<std::string>("x"); }());
  EXPECT_EQ(*made, "x");
}

TEST(Task, ThrowsWhereItIsAwaited) {
  const auto outer = []() -> Task<std::string> {
    try {
      co_await fail_with("inside");
    } catch (const std::runtime_error& error) {
      co_return error.what();
    }
    co_return "nothing was thrown";
  };
  EXPECT_EQ(sync_wait(outer()), "inside");
  EXPECT_THROW(sync_wait(fail_with("outside")), std::runtime_error);
}

TEST(Task, DoesNothingUnlessAwaited) {
  bool ran = false;
  {
    const auto task = [](bool* flag) -> Task<void> {
      *flag = true;
      co_return;
    }(&ran);
  }
  EXPECT_FALSE(ran);
}

Task<std::uint64_t> sum_of(std::uint64_t n) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) sum += static_cast<std::uint64_t>(co_await one());
  co_return sum;
}

TEST(Task, LoopOfAwaitsThatEndAtOnceTakesNoStack) { EXPECT_EQ(sync_wait(sum_of(1'000'000)), 1'000'000U); }

Task<std::uint64_t> nested(std::uint64_t depth) {
  if (depth == 0) co_return 0;
  co_return 1 + co_await nested(depth - 1);
}

TEST(Task, NestsTenThousandDeep) { EXPECT_EQ(sync_wait(nested(10'000)), 10'000U); }

Task<std::uint64_t> nested_in_threads(std::uint64_t depth) {
  co_await InThread{};
  if (depth == 0) co_return 0;
  co_return 1 + co_await nested_in_threads(depth - 1);
}

TEST(Task, GoesOnInTheThreadThatEnds) {
  EXPECT_EQ(sync_wait(nested_in_threads(100)), 100U);
  InThread::join_all();
}

TEST(WhenAll, RunsEachTaskOnce) {
  std::vector<std::atomic<int>> ran(1000);
  const auto count = [](std::atomic<int>* at) -> Task<void> {
    ++*at;
    co_return;
  };
  for (const std::size_t at_most : {0U, 1U, 7U, 2000U}) {
    for (auto& r : ran) r = 0;
    std::vector<Task<void>> tasks;
    for (auto& r : ran) tasks.push_back(count(&r));
    sync_wait(when_all(std::move(tasks), at_most));
    for (auto& r : ran) ASSERT_EQ(r, 1);
  }
}

TEST(WhenAll, OfNothingEndsAtOnce) { sync_wait(when_all({})); }

TEST(WhenAll, BeginsNoMoreThanAllowed) {
  std::atomic<int> begun{0};
  std::atomic<int> most{0};
  const auto work = [](std::atomic<int>* now, std::atomic<int>* highest) -> Task<void> {
    const int n = ++*now;
    for (int seen = *highest; seen < n && !highest->compare_exchange_weak(seen, n);) {
    }
    co_await InThread{};
    --*now;
  };
  std::vector<Task<void>> tasks;
  for (int i = 0; i < 200; ++i) tasks.push_back(work(&begun, &most));
  sync_wait(when_all(std::move(tasks), 3));
  InThread::join_all();
  EXPECT_EQ(begun, 0);
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

TEST(WhenAll, EndsAllAndThrowsTheFirstError) {
  std::atomic<int> ended{0};
  const auto work = [](std::atomic<int>* count, bool fails) -> Task<void> {
    co_await InThread{};
    ++*count;
    if (fails) throw std::runtime_error("one of them");
  };
  std::vector<Task<void>> tasks;
  for (int i = 0; i < 50; ++i) tasks.push_back(work(&ended, i % 10 == 3));
  EXPECT_THROW(sync_wait(when_all(std::move(tasks), 4)), std::runtime_error);
  InThread::join_all();
  EXPECT_EQ(ended, 50);
}

TEST(WhenAll, OfAMillionThatEndAtOnceTakesNoStack) {
  std::vector<Task<void>> tasks;
  tasks.reserve(1'000'000);
  std::uint64_t sum = 0;
  const auto add = [](std::uint64_t* to) -> Task<void> {
    ++*to;
    co_return;
  };
  for (int i = 0; i < 1'000'000; ++i) tasks.push_back(add(&sum));
  sync_wait(when_all(std::move(tasks), 1));
  EXPECT_EQ(sum, 1'000'000U);
}

}  // namespace
}  // namespace cdd
