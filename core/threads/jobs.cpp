#include "core/threads/jobs.h"

#include <atomic>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "core/os/process.h"

namespace cdd {
namespace {

constexpr unsigned kMostThreads = 64;

unsigned default_threads() noexcept {
  const char* const text = std::getenv("CDD_ASYNC_THREADS");
  if (text == nullptr) return Jobs::kMaxThreads;
  const char* const end = text + std::strlen(text);
  unsigned asked = 0;
  const auto [stop, error] = std::from_chars(text, end, asked);
  return error == std::errc{} && stop == end && asked > 0 && asked <= kMostThreads ? asked
                                                                                   : Jobs::kMaxThreads;
}

struct OfProcess {
  explicit OfProcess(std::uint64_t id) : process(id) {}
  const std::uint64_t process;
  Jobs jobs{default_threads()};
};

}  // namespace

void JobQueue::push(Job& job) noexcept {
  job.next_ = nullptr;
  (last_ == nullptr ? first_ : last_->next_) = &job;
  last_ = &job;
}

Job* JobQueue::pop() noexcept {
  Job* const job = first_;
  if (job == nullptr) return nullptr;
  first_ = job->next_;
  if (first_ == nullptr) last_ = nullptr;
  return job;
}

bool JobQueue::remove(Job& job) noexcept {
  Job* before = nullptr;
  for (Job* at = first_; at != nullptr; before = std::exchange(at, at->next_)) {
    if (at != &job) continue;
    (before == nullptr ? first_ : before->next_) = job.next_;
    if (last_ == &job) last_ = before;
    return true;
  }
  return false;
}

Job* JobQueue::earliest() const noexcept {
  Job* found = first_;
  for (Job* at = first_; at != nullptr; at = at->next_) {
    if (at->due_ < found->due_) found = at;
  }
  return found;
}

// Without a lock, since a fork could leave that locked in the child.
Jobs& Jobs::shared() {
  static std::atomic<OfProcess*> current{nullptr};
  OfProcess* found = current.load(std::memory_order_acquire);
  while (found == nullptr || found->process != process_id()) {
    auto fresh = std::make_unique<OfProcess>(process_id());
    if (current.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) {
      return fresh.release()->jobs;
    }
  }
  return found->jobs;
}

// False: it waits for another job of its strand.
bool Jobs::make_ready(Job& job) noexcept {
  Strand* const strand = job.strand_;
  if (strand != nullptr && std::exchange(strand->busy_, true)) {
    strand->waiting_.push(job);
    return false;
  }
  ready_.push(job);
  ++n_ready_;
  return true;
}

void Jobs::enqueue(Job& job, Strand* strand) noexcept {
  std::unique_lock lock(mutex_);
  job.strand_ = strand;
  job.waits_ = true;
  if (!make_ready(job)) return;
  if (n_ready_ <= idle_ || start_thread()) {
    lock.unlock();
    job_waits_.notify_one();
  } else if (threads_ == 0) {
    run_next(lock);  // no thread is to be had
  }
}

void Jobs::submit_later(Job& job, Strand& strand, std::chrono::steady_clock::time_point when) noexcept {
  {
    const std::lock_guard lock(mutex_);
    job.strand_ = &strand;
    job.waits_ = true;
    job.due_ = when;
    later_.push(job);
    if (idle_ == 0) start_thread();
  }
  job_waits_.notify_one();  // who waits for nothing in particular
}

// One that is idle takes the first; there may be more.
void Jobs::make_due_ready() noexcept {
  const auto now = std::chrono::steady_clock::now();
  for (Job* job = later_.earliest(); job != nullptr && job->due_ <= now; job = later_.earliest()) {
    later_.remove(*job);
    if (make_ready(*job) && n_ready_ > 1) job_waits_.notify_one();
  }
}

// Where all that there may be are busy, one of them comes to the job in its time.
bool Jobs::start_thread() noexcept {
  if (threads_ == max_threads_) return false;
  try {
    std::thread([this] { work(); }).detach();
  } catch (const std::exception&) {
    return false;
  }
  ++threads_;
  return true;
}

void Jobs::work() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    for (;;) {
      if (!later_.is_empty()) make_due_ready();
      if (!ready_.is_empty()) break;
      if (const Job* const next = later_.earliest(); next != nullptr) {
        const auto due = next->due_;  // the job may be taken back meanwhile, and be no more
        job_waits_.wait_until(lock, due);
      } else {
        job_waits_.wait(lock);
      }
    }
    --idle_;
    if (!later_.is_empty()) {  // another one looks at the clock now
      idle_ > 0 ? job_waits_.notify_one() : static_cast<void>(start_thread());
    }
    run_next(lock);
  }
}

// The first job that is ready, and then lets its strand's next one follow at the end of the queue, so that a
// busy strand does not keep others waiting.
void Jobs::run_next(std::unique_lock<std::mutex>& lock) noexcept {
  Job* const job = ready_.pop();
  if (job == nullptr) return;
  --n_ready_;
  job->waits_ = false;
  Strand* const strand = job->strand_;
  lock.unlock();
  job->run();  // and may be no more
  lock.lock();
  if (strand == nullptr) return;
  Job* const next = strand->waiting_.pop();
  if (next == nullptr) {
    strand->busy_ = false;
    strand_idle_.notify_all();
    return;
  }
  ready_.push(*next);
  ++n_ready_;
  if (threads_ == 0) run_next(lock);
}

bool Jobs::take_back(Job& job) noexcept {
  const std::lock_guard lock(mutex_);
  if (!job.waits_) return false;
  if (job.strand_ != nullptr && job.strand_->waiting_.remove(job)) {
    job.waits_ = false;
    return true;
  }
  if (later_.remove(job)) {
    job.waits_ = false;
    return true;
  }
  if (!ready_.remove(job)) return false;
  --n_ready_;
  job.waits_ = false;
  if (Strand* const strand = job.strand_; strand != nullptr) {
    if (Job* const next = strand->waiting_.pop(); next != nullptr) {
      ready_.push(*next);
      ++n_ready_;
    } else {
      strand->busy_ = false;
      strand_idle_.notify_all();
    }
  }
  return true;
}

Job* Jobs::take_next(const void* batch) noexcept {
  const std::lock_guard lock(mutex_);
  const Job* const next = ready_.first();
  if (next == nullptr || next->batch_ != batch || next->strand_ != nullptr) return nullptr;
  --n_ready_;
  Job* const taken = ready_.pop();
  taken->waits_ = false;
  return taken;
}

void Jobs::wait_until_idle(Strand& strand) noexcept {
  std::unique_lock lock(mutex_);
  strand_idle_.wait(lock, [&] { return !strand.busy_; });
}

unsigned Jobs::threads() const noexcept {
  const std::lock_guard lock(mutex_);
  return threads_;
}

}  // namespace cdd
