#include "core/threads/for_each.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/os/process.h"
#include "core/threads/alone.h"
#include "core/threads/latch.h"

#if defined(CDD_HAS_TBB)
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace cdd {
namespace {

// The number that CDD_THREADS is, 0 where it is not set; nothing where it is none.
std::optional<unsigned> threads_of_environment() noexcept {
  const char* const text = std::getenv("CDD_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  const char* const end = text + std::strlen(text);
  unsigned asked = 0;
  const auto [stop, error] = std::from_chars(text, end, asked);
  if (error != std::errc{} || stop != end || asked > kMostThreads) return std::nullopt;
  return asked;
}

unsigned default_threads() {
  if (const unsigned asked = threads_of_environment().value_or(0); asked > 0) return asked;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : cores;
}

struct Setting {
  std::atomic<unsigned> threads{default_threads()};
  std::atomic<std::uint64_t> process{process_id()};  // that may use them
};

Setting& setting() {
  static Setting instance;
  return instance;
}

thread_local bool is_alone = false;

unsigned usable_threads() {
  if (is_alone) return 1;
  const Setting& s = setting();
  return s.process.load(std::memory_order_relaxed) == process_id() ? s.threads.load(std::memory_order_relaxed)
                                                                   : 1;
}

#if defined(CDD_HAS_TBB)
// Whether this process may use oneTBB, which the first process to ask does. A process forked off that one may
// not: what other threads were doing in oneTBB at that moment will never be finished.
bool may_use_tbb() {
  static std::atomic<std::uint64_t> owner{0};
  std::uint64_t found = 0;
  return owner.compare_exchange_strong(found, process_id()) || found == process_id();
}

// How many more threads the system gives at this moment, up to `most`. oneTBB starts one from another, where
// nobody can catch that the system refuses it.
unsigned startable_threads(unsigned most) {
  Latch end(1);
  std::vector<std::thread> started;
  try {
    started.reserve(most);
    while (started.size() < most) started.emplace_back([&] { end.wait(); });
  } catch (const std::exception&) {
    // Those are all.
  }
  end.count_down();
  for (std::thread& thread : started) thread.join();
  return static_cast<unsigned>(started.size());
}

// The arena of the present number of threads; calls that still use an older one keep it alive. Nothing here
// is ever destroyed: a forked child would do it, too, when it ends.
std::shared_ptr<tbb::task_arena> arena(unsigned threads) {
  static std::mutex& mutex = *new std::mutex;
  static auto& current = *new std::shared_ptr<tbb::task_arena>;
  static unsigned made_for = 0;
  const std::lock_guard lock(mutex);
  if (made_for != threads) {
    const unsigned had = 1 + startable_threads(threads - 1);
#if !defined(CDD_EXTERNAL_TBB)
    // TBB itself would not go beyond the number of cores, even when asked to. A TBB that others use too keeps
    // the limit they set.
    static auto& limit = *new std::unique_ptr<tbb::global_control>;
    limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, had);
#endif
    auto fresh = std::make_shared<tbb::task_arena>(static_cast<int>(had));
    fresh->initialize();  // one that failed to would keep its next user waiting for ever
    current = std::move(fresh);
    made_for = threads;
  }
  return current;
}

// Calls work(i) for those i that are not beyond a failed one, so that the exception that is thrown in the end
// is that of the smallest i, whichever thread came first: what a caller is told does not depend on luck.
class InOrder {
 public:
  explicit InOrder(const std::function<void(std::size_t)>& work) : work_(work) {}

  void call(std::size_t i) noexcept {
    if (i > failed_.load(std::memory_order_relaxed)) return;
    try {
      work_(i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (i > failed_.load(std::memory_order_relaxed)) return;
      failed_.store(i, std::memory_order_relaxed);
      error_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> failed_{std::size_t(-1)};  // the smallest so far
  std::mutex mutex_;
  std::exception_ptr error_;
};

// False where oneTBB has no memory or no thread, and nothing was begun.
bool for_each_in_arena(unsigned threads, std::size_t n, InOrder& work) {
  std::atomic<bool> began{false};
  try {
    arena(threads)->execute([&] {
      tbb::parallel_for(std::size_t{0}, n, [&](std::size_t i) {
        // Written once: the threads would pass its cache line around for nothing.
        if (!began.load(std::memory_order_relaxed)) began.store(true, std::memory_order_relaxed);
        work.call(i);
      });
    });
  } catch (...) {
    if (began) throw;
    return false;
  }
  return true;
}

// The same as oneTBB does, with threads that live as long as the call.
bool for_each_in_new_threads(unsigned threads, std::size_t n, InOrder& work) {
  std::atomic<std::size_t> next{0};
  const auto take_some = [&]() noexcept {
    for (std::size_t i = next++; i < n; i = next++) work.call(i);
  };
  std::vector<std::thread> others;
  try {
    while (others.size() + 1 < std::min<std::size_t>(threads, n)) others.emplace_back(take_some);
  } catch (const std::exception&) {
    // No more threads to be had: those that are there do all of it.
  }
  take_some();
  for (std::thread& other : others) other.join();
  return true;
}
#endif

}  // namespace

void set_threads(unsigned threads) {
  if (threads > kMostThreads)
    fail(ErrorCode::InvalidArgument, "%u threads, at most %u are allowed", threads, kMostThreads);
  setting().threads.store(threads == 0 ? default_threads() : threads);
  setting().process.store(process_id());
}

void work_alone(bool alone) noexcept { is_alone = alone; }

unsigned threads() noexcept { return has_threads() ? usable_threads() : 1; }

bool understands_environment() noexcept { return threads_of_environment().has_value(); }

bool has_threads() noexcept {
#if defined(CDD_HAS_TBB)
  return true;
#else
  return false;
#endif
}

void for_each(std::size_t n, const std::function<void(std::size_t)>& work) {
#if defined(CDD_HAS_TBB)
  const unsigned threads = usable_threads();
  if (n > 1 && threads > 1) {
    InOrder in_order(work);
    if (may_use_tbb() ? for_each_in_arena(threads, n, in_order)
                      : for_each_in_new_threads(threads, n, in_order))
      return in_order.rethrow();
  }
#endif
  for (std::size_t i = 0; i < n; ++i) work(i);
}

}  // namespace cdd
