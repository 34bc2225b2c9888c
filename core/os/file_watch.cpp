#include "core/os/file_watch.h"

#include <algorithm>

namespace cdd {
namespace {

constexpr std::int64_t kMostMs = 250;

}  // namespace

std::int64_t FileWatch::step_ms() noexcept {
  const std::int64_t now = step_ms_;
  step_ms_ = std::min(2 * step_ms_, kMostMs);
  return now;
}

}  // namespace cdd
