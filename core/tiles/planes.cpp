#include "core/tiles/planes.h"

#include <algorithm>
#include <new>

#include "core/os/memory.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {

void Planes::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{kPlaneAlignment});
}

Planes::Planes(std::size_t count, std::size_t stride)
    : count_(count),
      memory_(static_cast<std::byte*>(::operator new[](count* stride, std::align_val_t{kPlaneAlignment}))) {
  use_large_pages(memory_.get(), count * stride);
  free_.reserve(count);
  for (std::size_t i = count; i-- > 0;) free_.push_back(memory_.get() + i * stride);
}

bool Planes::take(std::size_t n, std::byte** out) noexcept {
  const std::lock_guard lock(mutex_);
  if (free_.size() < n) return false;
  std::copy_n(free_.rbegin(), n, out);
  free_.resize(free_.size() - n);
  most_in_use_ = std::max(most_in_use_, count_ - free_.size());
  return true;
}

void Planes::give_back(std::byte* plane) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(plane);
  if (wanted_ != 0 && free_.size() >= wanted_) changed_.notify_all();
}

void Planes::wait(std::size_t n, std::uint64_t seen) noexcept {
  std::unique_lock lock(mutex_);
  wanted_ = n;
  changed_.wait(lock, [&] { return free_.size() >= n || news_ != seen; });
  wanted_ = 0;
}

std::uint64_t Planes::news() const noexcept {
  const std::lock_guard lock(mutex_);
  return news_;
}

void Planes::wake() noexcept {
  const std::lock_guard lock(mutex_);
  ++news_;
  changed_.notify_all();
}

std::size_t Planes::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return count_ - free_.size();
}

std::size_t Planes::most_in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return most_in_use_;
}

}  // namespace cdd::tiles
