#include "core/store/executor.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/storage/file.h"
#include "core/storage/fork_gate.h"

#if defined(CDD_HAS_TBB)
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#endif

namespace cdd {
namespace {

constexpr unsigned kMaxThreads = 1024;

unsigned default_threads() {
  if (const char* const text = std::getenv("CDD_THREADS")) {
    const long asked = std::strtol(text, nullptr, 10);
    if (asked > 0 && asked <= long{kMaxThreads}) return static_cast<unsigned>(asked);
  }
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

unsigned usable_threads() {
  const Setting& s = setting();
  return s.process.load(std::memory_order_relaxed) == process_id() ? s.threads.load(std::memory_order_relaxed)
                                                                   : 1;
}

#if defined(CDD_HAS_TBB)
// The arena of the present number of threads; calls that still use an older one keep it alive.
std::shared_ptr<tbb::task_arena> arena(unsigned threads) {
  static std::mutex mutex;
  static std::shared_ptr<tbb::task_arena> current;
  static std::uint64_t owner = 0;
  const ForkGate gate;
  const std::lock_guard lock(mutex);
  if (current && owner != process_id()) {
    // Inherited by fork without its threads: taking it apart would wait for them, so it is left as it is.
    static std::vector<std::shared_ptr<tbb::task_arena>>& inherited =
        *new std::vector<std::shared_ptr<tbb::task_arena>>;
    inherited.push_back(std::move(current));
    current.reset();
  }
  if (!current || current->max_concurrency() != static_cast<int>(threads)) {
#if !defined(CDD_EXTERNAL_TBB)
    // TBB itself would not go beyond the number of cores, even when asked to. A TBB that others use too keeps
    // the limit they set.
    static std::unique_ptr<tbb::global_control> limit;
    limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, threads);
#endif
    current = std::make_shared<tbb::task_arena>(static_cast<int>(threads));
    owner = process_id();
  }
  return current;
}
#endif

}  // namespace

void set_threads(unsigned threads) {
  if (threads > kMaxThreads) fail(ErrorCode::InvalidArgument, "%u threads, at most %u", threads, kMaxThreads);
  setting().threads.store(threads == 0 ? default_threads() : threads);
  setting().process.store(process_id());
}

unsigned threads() noexcept { return has_threads() ? usable_threads() : 1; }

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
    arena(threads)->execute([&] { tbb::parallel_for(std::size_t{0}, n, [&](std::size_t i) { work(i); }); });
    return;
  }
#endif
  for (std::size_t i = 0; i < n; ++i) work(i);
}

}  // namespace cdd
