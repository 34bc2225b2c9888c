// Who does the work of for_each().
#include "core/threads/for_each.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "core/threads/alone.h"

namespace cdd::test {
namespace {

// The threads that did 64 pieces of work of a millisecond each.
std::set<std::thread::id> workers() {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for_each(64, [&](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  return seen;
}

TEST(ForEach, AThreadThatWorksAloneUsesNoOthersAndOthersStillDo) {
  const std::set<std::thread::id> this_one{std::this_thread::get_id()};
  set_threads(4);
  work_alone(true);
  EXPECT_EQ(threads(), 1U);
  EXPECT_EQ(workers(), this_one);
  std::thread([] {
    EXPECT_EQ(threads(), has_threads() ? 4U : 1U);
    EXPECT_GT(workers().size(), has_threads() ? 1U : 0U);
  }).join();
  work_alone(false);
  EXPECT_EQ(threads(), has_threads() ? 4U : 1U);
  EXPECT_GT(workers().size(), has_threads() ? 1U : 0U);
  set_threads(0);
}

// Whoever fails last: the small ones here take longer.
TEST(ForEach, ThrowsTheErrorOfTheSmallestPieceForAnyNumberOfThreads) {
  for (const unsigned n : {1U, 2U, 4U, 7U}) {
    set_threads(n);
    for (int turn = 0; turn < 20; ++turn) {
      std::atomic<unsigned> lower{0};
      try {
        for_each(64, [&](std::size_t i) {
          if (i < 40) std::this_thread::sleep_for(std::chrono::microseconds(20 * (40 - i)));
          if (i < 11) ++lower;
          if (i >= 11 && i % 3 == 2) throw static_cast<int>(i);
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const int piece) {
        EXPECT_EQ(piece, 11) << n << " threads";
      }
      EXPECT_EQ(lower, 11U);
    }
  }
  set_threads(0);
}

}  // namespace
}  // namespace cdd::test
