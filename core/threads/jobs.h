// Threads that may block: jobs that wait for a disk, a lock or one another. for_each() is for work that only
// computes.
//
// A job is an object of its user, so that submitting allocates nothing but where a thread is started. No
// thread exists before the first job; one is started where a job waits and none is idle, up to kMaxThreads
// (CDD_ASYNC_THREADS, 1 to 64, in the environment). Where the system gives none, the submitting thread does
// the job. The threads and their queue are never destroyed, so nothing they touch may be.
//
// A forked child has none of its parent's threads: shared() makes new ones there, and jobs that waited in the
// parent are the parent's. Whoever inherits an object with jobs asks process_id() first.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace cdd {

class Jobs;
class Strand;

// One piece of work. It must live until run() was left or it was taken back, and is in one queue at most;
// run() may submit it again, and may end its life.
class Job {
 public:
  explicit Job(const void* batch = nullptr) noexcept : batch_(batch) {}  // see take_next()
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

 protected:
  ~Job() = default;

 private:
  friend class Jobs;
  friend class JobQueue;
  virtual void run() noexcept = 0;

  const void* const batch_;
  Job* next_ = nullptr;
  Strand* strand_ = nullptr;
  std::chrono::steady_clock::time_point due_;  // of one that is later
  bool waits_ = false;
};

// First in, first out; of no use by itself.
class JobQueue {
 public:
  bool is_empty() const noexcept { return first_ == nullptr; }
  const Job* first() const noexcept { return first_; }
  Job* earliest() const noexcept;  // by when they are due
  void push(Job& job) noexcept;
  Job* pop() noexcept;
  bool remove(Job& job) noexcept;

 private:
  Job* first_ = nullptr;
  Job* last_ = nullptr;
};

// Jobs of one strand run one after the other, in the order in which they were submitted. It must outlive its
// jobs: wait_until_idle() before its end.
class Strand {
 public:
  Strand() = default;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

 private:
  friend class Jobs;
  JobQueue waiting_;
  bool busy_ = false;  // one of its jobs runs, or waits in the threads' queue
};

class Jobs {
 public:
  static constexpr unsigned kMaxThreads = 4;

  // Those of this process.
  static Jobs& shared();

  explicit Jobs(unsigned max_threads) noexcept : max_threads_(max_threads) {}
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Has the job run in one of the threads, soon. Any thread may call, also from within a job.
  void submit(Job& job) noexcept { enqueue(job, nullptr); }
  void submit(Job& job, Strand& strand) noexcept { enqueue(job, &strand); }

  // The same once `when` is there, or as soon as a thread is free after that. Where the system gives no
  // thread at all it does not happen. Such a job is none that wait_until_idle() waits for before it is due.
  void submit_later(Job& job, Strand& strand, std::chrono::steady_clock::time_point when) noexcept;

  // True: the job had not begun, and will not; it may be destroyed. False: it runs, has run, or never was
  // submitted.
  bool take_back(Job& job) noexcept;

  // The job that would begin next, which is then its taker's to run at once, in a thread of these; null
  // unless it is of this batch and of no strand. For jobs so short that handing over their results costs
  // more.
  Job* take_next(const void* batch) noexcept;

  // Returns when no job of the strand waits or runs. Not to be called from one of them.
  void wait_until_idle(Strand& strand) noexcept;

  // Threads that there are now.
  unsigned threads() const noexcept;

 private:
  void enqueue(Job& job, Strand* strand) noexcept;
  bool make_ready(Job& job) noexcept;
  void make_due_ready() noexcept;
  bool start_thread() noexcept;
  void work() noexcept;
  void run_next(std::unique_lock<std::mutex>& lock) noexcept;

  const unsigned max_threads_;
  mutable std::mutex mutex_;
  std::condition_variable job_waits_;
  std::condition_variable strand_idle_;
  JobQueue ready_, later_;
  std::size_t n_ready_ = 0;
  unsigned threads_ = 0;
  unsigned idle_ = 0;
};

}  // namespace cdd
