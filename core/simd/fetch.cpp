#include "core/simd/fetch.h"

#include <hwy/cache_control.h>

namespace cdd {

void fetch_ahead(const void* bytes, std::size_t count) noexcept {
  constexpr std::size_t kLine = 64;
  const auto* const begin = static_cast<const char*>(bytes);
  for (std::size_t at = 0; at < count; at += kLine) hwy::Prefetch(begin + at);
}

}  // namespace cdd
