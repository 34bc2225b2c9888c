#include "core/os/shared_pages.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "core/os/fork_gate.h"
#include "core/os/memory.h"

namespace cdd {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kFirstRegion = std::size_t{64} << 10;
constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kLargest = std::size_t{8} << 10;  // what is larger has pages of its own

struct Free {
  Free* next;
};

// Blocks of one size that were given back.
struct Kept {
  std::size_t bytes;
  Free* first;
};

struct Shared {
  std::mutex mutex;
  std::vector<Kept> kept;  // few sizes
  std::byte* at = nullptr;
  std::byte* end = nullptr;
  std::size_t next_region = kFirstRegion;
};

// It is there as long as the process, as a reader may be.
Shared& shared() {
  static Shared& one = *new Shared;
  return one;
}

std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

Free*& kept_of(Shared& all, std::size_t bytes) {
  for (Kept& one : all.kept) {
    if (one.bytes == bytes) return one.first;
  }
  return all.kept.emplace_back(Kept{bytes, nullptr}).first;
}

// Each region is twice as large as the last, up to a large page.
void add_region(Shared& all) {
  const std::size_t bytes = all.next_region;
  all.at = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{bytes}));
  all.end = all.at + bytes;
  if (bytes == kLargePage) use_large_pages(all.at, bytes);
  all.next_region = std::min(2 * bytes, kLargePage);
}

}  // namespace

// A sanitizer sees what is used after its end only when each block comes from the heap.
#if defined(__SANITIZE_ADDRESS__)
void* take_shared(std::size_t bytes) { return ::operator new (rounded(bytes), std::align_val_t{kLine}); }
void give_shared(void* memory, std::size_t) noexcept { ::operator delete (memory, std::align_val_t{kLine}); }
#else
void* take_shared(std::size_t bytes) {
  bytes = rounded(bytes);
  if (bytes > kLargest) return ::operator new (bytes, std::align_val_t{kLine});
  Shared& all = shared();
  const ForkGate gate;
  const std::lock_guard lock(all.mutex);
  Free*& kept = kept_of(all, bytes);
  if (kept != nullptr) {
    Free* const block = kept;
    kept = block->next;
    return block;
  }
  if (static_cast<std::size_t>(all.end - all.at) < bytes) add_region(all);
  all.at += bytes;
  return all.at - bytes;
}

void give_shared(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  bytes = rounded(bytes);
  if (bytes > kLargest) return ::operator delete (memory, std::align_val_t{kLine});
  Shared& all = shared();
  const ForkGate gate;
  const std::lock_guard lock(all.mutex);
  Free*& kept = kept_of(all, bytes);  // known since it was taken
  kept = new (memory) Free{kept};
}
#endif

}  // namespace cdd
