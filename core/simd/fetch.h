// Memory that is going to be read is asked for early.
#pragma once

#include <hwy/cache_control.h>

#include <cstddef>

namespace cdd {

// Has the processor fetch these bytes into its caches, where it can; returns at once. Any address will do.
inline void fetch_ahead(const void* bytes, std::size_t count) noexcept {
  constexpr std::size_t kLine = 64;
  const auto* const begin = static_cast<const char*>(bytes);
  for (std::size_t at = 0; at < count; at += kLine) hwy::Prefetch(begin + at);
#if defined(__GNUC__)
  // GCC leaves out calls of functions that do nothing but this: it holds that they have no effect.
  asm volatile("");
#endif
}

}  // namespace cdd
