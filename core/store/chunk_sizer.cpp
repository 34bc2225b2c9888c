#include "core/store/chunk_sizer.h"

#include <algorithm>

namespace cdd {
namespace {

constexpr double kFirstGuessRatio = 4;       // of raw to stored bytes, before anything was measured
constexpr double kShortEnoughToRetry = 0.7;  // of the target
constexpr double kLongEnoughToRetry = 2;
constexpr double kLongEnoughToUnsettle = 4;
constexpr std::uint32_t kGroupChunks = 16;
constexpr double kFarOff = 2;           // times the target, or a part of it: a group then ends early
constexpr double kSmoothing = 0.5;      // weight of a group once the size has settled
constexpr double kMostChange = 4;       // that a group may ask for
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
  if (whole <= kRowGrain) return whole;
  const std::uint32_t near = (whole + kRowGrain / 2) / kRowGrain * kRowGrain;
  return near <= max_rows_ ? near : near - kRowGrain;
}

std::uint32_t ChunkSizer::ahead() const noexcept {
  if (fixed_) return kGroupChunks;
  return settled_ ? kGroupChunks - group_chunks_ : 1;
}

bool ChunkSizer::accept(std::uint32_t record_bytes) noexcept {
  if (fixed_) return true;
  if (refuses(record_bytes)) return false;
  if (settled_) {
    follow(record_bytes);
  } else {
    rows_ = limit(static_cast<double>(rows_) * target_bytes_ / record_bytes);
    settled_ = true;
  }
  return true;
}

bool ChunkSizer::refuses(std::uint32_t record_bytes) noexcept {
  if (fixed_) return false;
  const double ideal = static_cast<double>(rows_) * target_bytes_ / record_bytes;
  // Rows that were too many are never tried again: how a record grows with its rows may be any jump.
  if (record_bytes < kShortEnoughToRetry * target_bytes_ && !has_shrunk_ && !settled_) {
    const std::uint32_t grown = limit(std::min(ideal, 2.0 * rows_));
    if (grown > rows_) {
      rows_ = grown;
      return true;
    }
  }
  if (record_bytes > (settled_ ? kLongEnoughToUnsettle : kLongEnoughToRetry) * target_bytes_) {
    const std::uint32_t shrunk = limit(ideal);
    if (shrunk < rows_) {
      rows_ = shrunk;
      has_shrunk_ = true;
      settled_ = false;
      group_chunks_ = 0;
      group_bytes_ = 0;
      return true;
    }
  }
  return false;
}

// Changes rows_ at the end of a group.
void ChunkSizer::follow(std::uint32_t record_bytes) noexcept {
  group_bytes_ += record_bytes;
  ++group_chunks_;
  const double off = static_cast<double>(group_bytes_) / group_chunks_ / target_bytes_;
  if (group_chunks_ < kGroupChunks && off < kFarOff && off > 1 / kFarOff) return;
  const double wanted = std::clamp(1 / off, 1 / kMostChange, kMostChange);
  rows_ = limit(rows_ + kSmoothing * (wanted - 1) * rows_);
  group_chunks_ = 0;
  group_bytes_ = 0;
}

}  // namespace cdd
