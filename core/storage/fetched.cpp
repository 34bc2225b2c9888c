#include "core/storage/fetched.h"

#include <algorithm>
#include <mutex>

#include "core/os/fork_gate.h"

namespace cdd {

std::optional<Bytes> FetchedStorage::held(std::uint64_t offset, std::size_t n) const {
  const ForkGate gate;
  const std::shared_lock lock(mutex_);
  for (const Held& range : held_) {
    const std::uint64_t size = range.bytes.size() - kScratchPadding;
    if (offset < range.offset || offset - range.offset > size || n > size - (offset - range.offset)) continue;
    return Bytes(range.bytes).subspan(static_cast<std::size_t>(offset - range.offset), n);
  }
  return std::nullopt;
}

void FetchedStorage::hold(std::vector<Held> ranges) const {
  for (Held& range : ranges) range.bytes.resize(range.bytes.size() + kScratchPadding);
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  for (Held& range : ranges) held_.push_back(std::move(range));
}

std::uint64_t FetchedStorage::size() const {
  std::uint64_t size = size_.load(std::memory_order_relaxed);
  if (size == ~std::uint64_t{0}) size_.store(size = source_->size(), std::memory_order_relaxed);
  return size;
}

Bytes FetchedStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  const std::uint64_t size = this->size();
  if (offset >= size) return {};
  n = static_cast<std::size_t>(std::min<std::uint64_t>(n, size - offset));
  if (n == 0) return {};
  for (;;) {
    if (const auto found = held(offset, n)) return *found;
    const MutableBytes out = scratch.get(n).first(n);
    std::vector<Held> kept = source_->read(offset, out);
    if (kept.empty()) return out;
    hold(std::move(kept));
  }
}

bool FetchedStorage::is_cached(std::uint64_t offset, std::size_t n) const noexcept {
  return held(offset, n).has_value();
}

}  // namespace cdd
