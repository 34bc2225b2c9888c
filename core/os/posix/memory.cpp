#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "core/os/memory.h"

namespace cdd {

void use_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kLargePage = std::uintptr_t{2} << 20;
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) + kLargePage - 1) & ~(kLargePage - 1);
  const auto last = (reinterpret_cast<std::uintptr_t>(memory) + bytes) & ~(kLargePage - 1);
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

// Only whole pages: the bytes at both ends come with their first use.
bool take_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(__linux__)
  constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE of Linux 5.14, which headers may not know
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) & ~(page - 1);
  const auto last = (reinterpret_cast<std::uintptr_t>(memory) + bytes) & ~(page - 1);
  return first >= last || ::madvise(reinterpret_cast<void*>(first), last - first, kPopulateWrite) == 0;
#else
  return false;
#endif
}

}  // namespace cdd
