#include "core/async/queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/base/error.h"
#include "core/threads/latch.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace cdd {
namespace {

class Call final : public Request {
 public:
  explicit Call(std::function<void()> what) : what_(std::move(what)) {}

 private:
  void work() override { what_(); }
  std::function<void()> what_;
};

std::unique_ptr<Request> call(std::function<void()> what) { return std::make_unique<Call>(std::move(what)); }

ErrorCode code_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code();
  }
}

TEST(Queue, GivesBackEachRequestOnce) {
  Queue queue;
  std::atomic<int> ran{0};
  std::set<std::uint64_t> tickets;
  for (int i = 0; i < 500; ++i) tickets.insert(queue.submit(call([&] { ++ran; })));
  EXPECT_EQ(tickets.size(), 500U);
  EXPECT_FALSE(tickets.contains(0));
  for (std::size_t taken = 0; taken < 500;) {
    for (const auto& request : queue.take(64, -1)) {
      EXPECT_EQ(request->error(), nullptr);
      EXPECT_EQ(tickets.erase(request->ticket()), 1U);
      ++taken;
    }
  }
  EXPECT_EQ(ran, 500);
  EXPECT_TRUE(tickets.empty());
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_TRUE(queue.take(1, 0).empty());
  EXPECT_TRUE(queue.take(1, 5).empty());
}

// A queue waits for its requests as it ends: what they use is made before it.
TEST(Queue, WakesOnceForMany) {
  Latch go(1);
  Queue queue;
  Strand strand;
  queue.submit(call([&] { go.wait(); }), &strand);
  for (int i = 0; i < 63; ++i) queue.submit(call([] {}), &strand);
  EXPECT_EQ(queue.wakes(), 0U);
  go.count_down();
  Jobs::shared().wait_until_idle(strand);
  EXPECT_EQ(queue.wakes(), 1U);
  EXPECT_EQ(queue.take(100, -1).size(), 64U);
}

TEST(Queue, HandsShortOnesOverTogether) {
  Latch all_there(1);
  Queue queue;
  const auto threads = static_cast<int>(Jobs::kMaxThreads);
  for (int i = 0; i < threads; ++i) queue.submit(call([&] { all_there.wait(); }));  // until 64 wait behind
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 64; ++i) {
    auto request = call([] {});
    request->set_short();
    order.push_back(queue.submit(std::move(request)));
  }
  EXPECT_EQ(queue.wakes(), 0U);
  all_there.count_down();
  std::set<std::uint64_t> ended;
  std::size_t turns = 0;
  while (queue.size() > 0) {  // a loop that is always faster than the threads
    if (!queue.wait(20'000)) FAIL() << "nothing ended";
    for (const auto& request : queue.take(100, 0)) ended.insert(request->ticket());
    ++turns;
  }
  for (const std::uint64_t ticket : order) EXPECT_TRUE(ended.contains(ticket));
  EXPECT_LE(queue.wakes(), Jobs::kMaxThreads + 64 / 8 + Jobs::kMaxThreads);
  EXPECT_EQ(turns, queue.wakes());
}

TEST(Queue, DoesNotKeepALongOneWithShortOnes) {
  Latch all_there(1), go(1);
  Queue queue;
  const auto threads = static_cast<int>(Jobs::kMaxThreads);
  for (int i = 0; i < threads; ++i) queue.submit(call([&] { all_there.wait(); }));
  auto request = call([] {});
  request->set_short();
  const std::uint64_t quick = queue.submit(std::move(request));
  for (int i = 0; i < threads; ++i) queue.submit(call([&] { go.wait(); }));  // each thread will be in one
  all_there.count_down();
  std::set<std::uint64_t> ended;
  while (!ended.contains(quick)) {
    const auto taken = queue.take(100, 20'000);
    ASSERT_FALSE(taken.empty());
    for (const auto& one : taken) ended.insert(one->ticket());
  }
  go.count_down();
}

TEST(Queue, TakesInWhatOthersDo) {
  Queue queue;
  const std::uint64_t first = queue.expect(call([] { FAIL(); }));
  const std::uint64_t second = queue.expect(call([] { FAIL(); }));
  const std::uint64_t third = queue.expect(call([] { FAIL(); }));
  queue.expect(call([] { FAIL(); }));
  EXPECT_EQ(queue.size(), 4U);
  EXPECT_TRUE(queue.take(10, 0).empty());
  EXPECT_TRUE(queue.end(second, {}));
  EXPECT_FALSE(queue.end(second, {}));
  EXPECT_FALSE(queue.cancel(second));
  EXPECT_TRUE(queue.cancel(first));
  EXPECT_FALSE(queue.end(first, {}));
  EXPECT_TRUE(queue.end(third, std::make_exception_ptr(Error(ErrorCode::Io, "gone"))));
  const auto ended = queue.take(10, -1);
  ASSERT_EQ(ended.size(), 3U);
  EXPECT_EQ(ended[0]->error(), nullptr);
  EXPECT_EQ(code_of(ended[1]->error()), ErrorCode::Cancelled);
  EXPECT_EQ(code_of(ended[2]->error()), ErrorCode::Io);
  queue.finish();  // does not wait for what nobody will end
  ASSERT_EQ(queue.take(10, 0).size(), 1U);
}

TEST(Queue, KeepsTheOrderOfAStrand) {
  Queue queue;
  Strand strand;
  std::vector<int> order;
  for (int i = 0; i < 300; ++i) queue.submit(call([&order, i] { order.push_back(i); }), &strand);
  Jobs::shared().wait_until_idle(strand);
  ASSERT_EQ(order.size(), 300U);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Queue, CarriesErrors) {
  Queue queue;
  queue.submit(call([] { fail(ErrorCode::Checksum, "damaged"); }));
  const auto taken = queue.take(1, -1);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(code_of(taken[0]->error()), ErrorCode::Checksum);
}

TEST(Queue, CancelsWhatHasNotBegun) {
  Latch begun(1), go(1);
  Queue queue;
  Strand strand;
  const std::uint64_t runs = queue.submit(call([&] {
                                            begun.count_down();
                                            go.wait();
                                          }),
                                          &strand);
  const std::uint64_t waits = queue.submit(call([] { FAIL(); }), &strand);
  begun.wait();
  EXPECT_FALSE(queue.cancel(runs));
  EXPECT_TRUE(queue.cancel(waits));
  EXPECT_FALSE(queue.cancel(waits));
  EXPECT_FALSE(queue.cancel(12345));
  const auto cancelled = queue.take(10, -1);
  ASSERT_EQ(cancelled.size(), 1U);
  EXPECT_EQ(cancelled[0]->ticket(), waits);
  EXPECT_EQ(code_of(cancelled[0]->error()), ErrorCode::Cancelled);
  go.count_down();
  EXPECT_EQ(queue.take(10, -1).size(), 1U);
  Jobs::shared().wait_until_idle(strand);
}

TEST(Queue, RefusesMoreThanItsLimit) {
  Queue queue(3);
  for (int i = 0; i < 3; ++i) queue.submit(call([] {}));
  EXPECT_THROW(queue.submit(call([] {})), Error);
  while (queue.size() > 0) queue.take(1, -1);
  queue.submit(call([] {}));
}

TEST(Queue, EndsWhileWorkIsUnderWay) {
  std::atomic<int> ran{0};
  for (int i = 0; i < 200; ++i) {
    Queue queue;
    for (int k = 0; k < 20; ++k) queue.submit(call([&] { ++ran; }));
  }
  EXPECT_LE(ran, 4000);
}

TEST(Queue, CallsWakeBesides) {
  std::atomic<int> calls{0};
  Queue queue(10, [&] { ++calls; });
  queue.submit(call([] {}));
  EXPECT_EQ(queue.take(1, -1).size(), 1U);
  EXPECT_EQ(calls, 1);
}

#if !defined(_WIN32)
TEST(Queue, IsTheParentsInAForkedChild) {
  Latch go(1);
  Queue queue;
  queue.submit(call([&] { go.wait(); }));
  const pid_t child = ::fork();
  if (child == 0) {
    int bad = 0;
    try {
      queue.submit(call([] {}));
      bad = 1;
    } catch (const Error& error) {
      bad = error.code() == ErrorCode::Closed ? 0 : 2;
    }
    Queue own;
    own.submit(call([] {}));
    if (own.take(1, 5000).size() != 1) bad = 3;
    ::_exit(bad);
  }
  go.count_down();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(queue.take(1, -1).size(), 1U);
}
#endif

}  // namespace
}  // namespace cdd
