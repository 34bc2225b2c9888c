#include "core/os/file_watch.h"

#include <algorithm>

namespace cdd {

std::int64_t FileWatch::step_ms() noexcept {
  const std::int64_t now = step_ms_;
  step_ms_ = std::min(2 * step_ms_, steps_.most_ms);
  return now;
}

}  // namespace cdd
