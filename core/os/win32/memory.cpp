#include "core/os/memory.h"

namespace cdd {

void use_large_pages(void*, std::size_t) noexcept {}

bool take_pages(void*, std::size_t) noexcept { return false; }

}  // namespace cdd
