// Memory that is going to be read is asked for early.
#pragma once

#include <cstddef>

namespace cdd {

// Has the processor fetch these bytes into its caches, where it can; returns at once. Any address will do.
void fetch_ahead(const void* bytes, std::size_t count) noexcept;

}  // namespace cdd
