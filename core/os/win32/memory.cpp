#include "core/os/memory.h"

namespace cdd {

void use_large_pages(void*, std::size_t) noexcept {}

}  // namespace cdd
