#include <windows.h>

#include "core/os/pages.h"

namespace cdd {

std::byte* Pages::map(std::size_t bytes) noexcept {
  return static_cast<std::byte*>(::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

std::byte* Pages::remap(std::byte*, std::size_t, std::size_t) noexcept { return nullptr; }

bool Pages::spare(std::byte*, std::size_t) noexcept { return false; }

void Pages::unmap(std::byte* data, std::size_t) noexcept { ::VirtualFree(data, 0, MEM_RELEASE); }

}  // namespace cdd
