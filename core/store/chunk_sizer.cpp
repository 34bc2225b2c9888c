#include "core/store/chunk_sizer.h"

#include <algorithm>

namespace cdd {
namespace {

constexpr double kFirstGuessRatio = 4;       // of raw to stored bytes, before anything was measured
constexpr double kShortEnoughToRetry = 0.7;  // of the target
constexpr double kLongEnoughToRetry = 2;
constexpr std::uint32_t kGroupChunks = 16;
constexpr double kSmoothing = 0.75;     // weight of a group once the size has settled
constexpr std::uint32_t kRowGrain = 8;  // sizes above this are multiples of it, as kernels like

}  // namespace

ChunkSizer::ChunkSizer(const RowLayout& layout, std::uint32_t fixed_rows, std::uint32_t target_bytes,
                       std::uint64_t max_raw_bytes)
    : fixed_(fixed_rows != 0), target_bytes_(target_bytes) {
  const std::uint64_t most = std::max<std::uint64_t>(1, max_raw_bytes / layout.row_bytes());
  max_rows_ =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(most, kMaxChunkRawBytes / layout.row_bytes()));
  rows_ = fixed_ ? fixed_rows : limit(kFirstGuessRatio * target_bytes / layout.row_bytes());
}

std::uint32_t ChunkSizer::limit(double rows) const noexcept {
  const double bounded = std::clamp(rows, 1.0, static_cast<double>(max_rows_));
  const auto whole = static_cast<std::uint32_t>(bounded);
  return whole > kRowGrain ? whole / kRowGrain * kRowGrain : whole;
}

std::uint32_t ChunkSizer::ahead() const noexcept {
  if (fixed_) return kGroupChunks;
  return settled_ ? kGroupChunks - group_chunks_ : 1;
}

bool ChunkSizer::accept(std::uint32_t record_bytes) noexcept {
  if (fixed_) return true;
  if (settled_) {
    group_bytes_ += record_bytes;
    if (++group_chunks_ < kGroupChunks) return true;
    const double ideal =
        static_cast<double>(rows_) * target_bytes_ * kGroupChunks / static_cast<double>(group_bytes_);
    rows_ = limit(rows_ + kSmoothing * (std::clamp(ideal, rows_ / 2.0, rows_ * 2.0) - rows_));
    group_chunks_ = 0;
    group_bytes_ = 0;
    return true;
  }
  const double ideal = static_cast<double>(rows_) * target_bytes_ / record_bytes;
  if (record_bytes < kShortEnoughToRetry * target_bytes_) {
    const std::uint32_t grown = limit(std::min(ideal, 2.0 * rows_));
    if (grown > rows_) {
      rows_ = grown;
      return false;
    }
  }
  if (record_bytes > kLongEnoughToRetry * target_bytes_) {
    const std::uint32_t shrunk = limit(ideal);
    if (shrunk < rows_) {
      rows_ = shrunk;
      return false;
    }
  }
  rows_ = limit(ideal);
  settled_ = true;
  return true;
}

}  // namespace cdd
