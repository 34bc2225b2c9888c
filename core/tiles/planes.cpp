#include "core/tiles/planes.h"

#include <algorithm>
#include <new>

#include "core/base/error.h"
#include "core/format/zarr/shard_index.h"
#include "core/os/memory.h"

namespace cdd::tiles {

MemoryPlan MemoryPlan::make(const Tiling& tiling, const TileCodec& codec, std::uint64_t memory_bytes,
                            unsigned threads) {
  using U64 = std::uint64_t;
  const U64 slabs_of_layer = tiling.layer_slabs();
  const U64 slab = tiling.layer_tiles() * tiling.plane_stride();
  const U64 index = zarr::shard_index_bytes(tiling.shard_tiles());
  const U64 fixed = tiling.plane_stride() + tiling.layer_tiles() * sizeof(Tiling::Place) +
                    tiling.row_shards() * index + index + threads * codec.scratch_bytes();
  const auto with = [&](U64 slabs) {
    MemoryPlan plan;
    plan.planes = static_cast<std::size_t>(slabs * tiling.layer_tiles());
    plan.layers = static_cast<std::size_t>((slabs + slabs_of_layer - 1) / slabs_of_layer + 1);
    plan.plane_bytes = slabs * slab;
    plan.other_bytes = fixed + plan.planes * sizeof(void*) +
                       plan.layers * tiling.layer_tiles() * (slabs_of_layer * sizeof(void*) + 1);
    return plan;
  };
  const U64 fewest = slabs_of_layer + 1;
  if (memory_bytes == 0) return with(std::max(fewest, slabs_of_layer + (slabs_of_layer + 3) / 4));
  const MemoryPlan least = with(fewest);
  if (memory_bytes < least.bytes()) {
    fail(ErrorCode::InvalidArgument, "memory_bytes is %llu, this array needs at least %llu",
         static_cast<unsigned long long>(memory_bytes), static_cast<unsigned long long>(least.bytes()));
  }
  U64 slabs = fewest + (memory_bytes - least.bytes()) / slab;
  while (with(slabs).bytes() > memory_bytes) --slabs;
  return with(slabs);
}

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
