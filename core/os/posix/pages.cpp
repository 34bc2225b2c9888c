#include <sys/mman.h>

#include <cstdint>

#include "core/os/pages.h"

namespace cdd {

std::byte* Pages::map(std::size_t bytes) noexcept {
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return nullptr;
#if defined(MADV_HUGEPAGE)
  // Only advice: where the system has no huge pages, small ones serve.
  ::madvise(address, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(address);
}

std::byte* Pages::remap([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t bytes,
                        [[maybe_unused]] std::size_t wanted) noexcept {
#if defined(MREMAP_MAYMOVE)
  void* const address = ::mremap(data, bytes, wanted, MREMAP_MAYMOVE);
  if (address != MAP_FAILED) return static_cast<std::byte*>(address);
#endif
  return nullptr;
}

bool Pages::spare([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(MADV_FREE)
  return ::madvise(data, bytes, MADV_FREE) == 0;
#else
  return false;
#endif
}

void Pages::unmap(std::byte* data, std::size_t bytes) noexcept { ::munmap(data, bytes); }

}  // namespace cdd
