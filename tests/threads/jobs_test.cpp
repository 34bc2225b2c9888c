#include "core/threads/jobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "core/threads/latch.h"

namespace cdd::test {
namespace {

// Its threads never end, so it must not either.
Jobs& new_jobs(unsigned threads) { return *new Jobs(threads); }

template <class Work>
class JobOf final : public Job {
 public:
  explicit JobOf(Work work) : work_(std::move(work)) {}

 private:
  void run() noexcept override { work_(); }
  Work work_;
};

TEST(Jobs, NoThreadBeforeTheFirstJobAndOneForJobsInTurn) {
  Jobs& jobs = new_jobs(4);
  EXPECT_EQ(jobs.threads(), 0u);
  std::atomic<int> runs{0};
  JobOf job([&] { ++runs; });
  Strand strand;
  for (int i = 1; i <= 5; ++i) {
    jobs.submit(job, strand);
    jobs.wait_until_idle(strand);
    EXPECT_EQ(runs, i);
  }
  EXPECT_GE(jobs.threads(), 1u);
}

TEST(Jobs, LaterJobsRunInTheOrderInWhichTheyAreDueAndMayBeTakenBack) {
  using Clock = std::chrono::steady_clock;
  Jobs& jobs = new_jobs(2);
  Strand strand;
  std::vector<int> order;
  Latch done(3);
  const auto work_of = [&](int number) {
    return [&, number] {
      order.push_back(number);
      done.count_down();
    };
  };
  JobOf first(work_of(1)), second(work_of(2)), third(work_of(3)), never(work_of(4));
  const auto now = Clock::now();
  jobs.submit_later(third, strand, now + std::chrono::milliseconds(90));
  jobs.submit_later(never, strand, now + std::chrono::milliseconds(30));
  jobs.submit_later(second, strand, now + std::chrono::milliseconds(60));
  jobs.submit_later(first, strand, now - std::chrono::seconds(1));
  jobs.wait_until_idle(strand);  // but for those that are not due
  EXPECT_TRUE(jobs.take_back(never));
  EXPECT_FALSE(jobs.take_back(never));
  done.wait();
  jobs.wait_until_idle(strand);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_GE(Clock::now() - now, std::chrono::milliseconds(90));
  EXPECT_FALSE(jobs.take_back(third));
}

TEST(Jobs, ALaterJobDoesNotWaitForOneThatBlocks) {
  Jobs& jobs = new_jobs(2);
  Strand one, other;
  Latch go(1), begun(1), done(1);
  JobOf blocks([&] {
    begun.count_down();
    go.wait();
  });
  JobOf later([&] { done.count_down(); });
  JobOf idle([] {});
  jobs.submit(idle);
  jobs.submit_later(later, other, std::chrono::steady_clock::now() + std::chrono::milliseconds(30));
  jobs.submit(blocks, one);
  begun.wait();
  if (jobs.threads() == 2) done.wait();  // the one that is left looks at the clock
  go.count_down();
  done.wait();
  jobs.wait_until_idle(one);
  jobs.wait_until_idle(other);
}

TEST(Jobs, ThreadsGrowToTheirLimitWhileJobsBlock) {
  Jobs& jobs = new_jobs(3);
  Latch go(1), begun(3), done(7);
  const auto work = [&] {
    if (!begun.try_wait()) begun.count_down();
    go.wait();
    done.count_down();
  };
  // The first three to run count `begun` down; those after them find it counted.
  std::deque<JobOf<decltype(work)>> all;
  for (int i = 0; i < 7; ++i) jobs.submit(all.emplace_back(work));
  begun.wait();
  EXPECT_EQ(jobs.threads(), 3u);
  go.count_down();
  done.wait();
  EXPECT_EQ(jobs.threads(), 3u);
}

TEST(Jobs, AStrandKeepsItsOrderAndRunsOneAtATime) {
  Jobs& jobs = new_jobs(4);
  constexpr int kJobs = 200;
  struct OfStrand {
    Strand strand;
    std::vector<int> order;
    std::atomic<int> inside{0};
    std::atomic<bool> overlapped{false};
  };
  std::vector<OfStrand> strands(3);
  const auto work_of = [&](OfStrand& s, int i) {
    return [&s, i] {
      if (s.inside.fetch_add(1) != 0) s.overlapped = true;
      s.order.push_back(i);
      s.inside.fetch_sub(1);
    };
  };
  std::deque<JobOf<decltype(work_of(strands[0], 0))>> all;
  for (int i = 0; i < kJobs; ++i) {
    for (OfStrand& s : strands) jobs.submit(all.emplace_back(work_of(s, i)), s.strand);
  }
  for (OfStrand& s : strands) {
    jobs.wait_until_idle(s.strand);
    EXPECT_FALSE(s.overlapped);
    ASSERT_EQ(s.order.size(), std::size_t{kJobs});
    for (int i = 0; i < kJobs; ++i) EXPECT_EQ(s.order[static_cast<std::size_t>(i)], i);
  }
}

TEST(Jobs, WhatHasNotBegunIsTakenBack) {
  Jobs& jobs = new_jobs(1);
  Latch go(1), begun(1);
  std::atomic<int> ran{0};
  JobOf first([&] {
    begun.count_down();
    go.wait();
  });
  JobOf second([&] { ran += 1; });
  JobOf third([&] { ran += 10; });
  JobOf loose([&] { ran += 100; });
  Strand strand;
  EXPECT_FALSE(jobs.take_back(first));
  jobs.submit(first, strand);
  begun.wait();
  jobs.submit(second, strand);
  jobs.submit(third, strand);
  jobs.submit(loose);
  EXPECT_FALSE(jobs.take_back(first));
  EXPECT_TRUE(jobs.take_back(second));
  EXPECT_FALSE(jobs.take_back(second));
  EXPECT_TRUE(jobs.take_back(loose));
  go.count_down();
  jobs.wait_until_idle(strand);
  EXPECT_EQ(ran, 10);
}

TEST(Jobs, TakingBackTheFirstOfAStrandLetsTheNextOneRun) {
  Jobs& jobs = new_jobs(1);
  Latch go(1), begun(1);
  std::atomic<int> ran{0};
  JobOf block([&] {
    begun.count_down();
    go.wait();
  });
  JobOf first([&] { ran += 1; });
  JobOf second([&] { ran += 10; });
  Strand strand, empty;
  jobs.submit(block);
  begun.wait();
  jobs.submit(first, strand);
  jobs.submit(second, strand);
  EXPECT_TRUE(jobs.take_back(first));
  jobs.wait_until_idle(empty);
  go.count_down();
  jobs.wait_until_idle(strand);
  EXPECT_EQ(ran, 10);
}

TEST(Jobs, AJobMaySubmitItselfAndOthers) {
  Jobs& jobs = new_jobs(2);
  Strand strand;
  Latch done(1);
  int left = 1000;
  struct Again final : Job {
    Again(Jobs& j, Strand& s, int& n, Latch& d) : jobs(j), strand(s), left(n), done(d) {}
    void run() noexcept override {
      if (--left == 0) return done.count_down();
      jobs.submit(*this, strand);
    }
    Jobs& jobs;
    Strand& strand;
    int& left;
    Latch& done;
  } again(jobs, strand, left, done);
  jobs.submit(again, strand);
  done.wait();
  jobs.wait_until_idle(strand);
  EXPECT_EQ(left, 0);
}

#if !defined(_WIN32)
TEST(Jobs, AForkedChildHasItsOwn) {
  std::atomic<int> runs{0};
  JobOf job([&] { ++runs; });
  Strand strand;
  Jobs::shared().submit(job, strand);
  Jobs::shared().wait_until_idle(strand);
  Jobs* const parents = &Jobs::shared();
  const pid_t child = ::fork();
  if (child == 0) {
    Jobs& own = Jobs::shared();
    Strand fresh;
    own.submit(job, fresh);
    own.wait_until_idle(fresh);
    ::_exit(&own != parents && runs == 2 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(&Jobs::shared(), parents);
}
#endif

}  // namespace
}  // namespace cdd::test
