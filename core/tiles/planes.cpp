#include "core/tiles/planes.h"

#include <algorithm>
#include <new>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/format/zarr/shard_index.h"
#include "core/os/memory.h"

namespace cdd::tiles {
namespace {

constexpr std::size_t kWarmBytes = std::size_t{2} << 20;  // at once: a large page where there are such

}  // namespace

MemoryPlan MemoryPlan::make(const Tiling& tiling, const TileCodec& codec, std::uint64_t memory_bytes,
                            unsigned threads, std::uint64_t elsewhere) {
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
  if (memory_bytes < least.bytes() + elsewhere) {
    fail(ErrorCode::InvalidArgument, "memory_bytes is %llu, this array needs at least %llu",
         static_cast<unsigned long long>(memory_bytes),
         static_cast<unsigned long long>(least.bytes() + elsewhere));
  }
  const U64 most = memory_bytes - elsewhere;
  U64 slabs = fewest + (most - least.bytes()) / slab;
  while (with(slabs).bytes() > most) --slabs;
  return with(slabs);
}

void Planes::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{kPlaneAlignment});
}

Planes::Planes(std::size_t count, std::size_t stride, std::size_t ahead)
    : count_(count),
      stride_(stride),
      memory_(static_cast<std::byte*>(::operator new[](count* stride, std::align_val_t{kPlaneAlignment}))),
      most_warm_(ahead * stride) {
  use_large_pages(memory_.get(), count * stride);
  free_.reserve(count);
  for (std::size_t i = count; i-- > 0;) free_.push_back(memory_.get() + i * stride);
}

void Planes::count_in_use() noexcept {
  const std::size_t in_use = count_ - free_.size();
  in_use_.store(in_use, std::memory_order_relaxed);
  if (in_use > most_in_use()) most_in_use_.store(in_use, std::memory_order_relaxed);
}

bool Planes::take(std::size_t n, std::byte** out) noexcept {
  const std::lock_guard lock(mutex_);
  if (free_.size() < n) return false;
  std::copy_n(free_.rbegin(), n, out);
  free_.resize(free_.size() - n);
  count_in_use();
  std::size_t taken = taken_.load(std::memory_order_relaxed);
  if (taken == count_ * stride_) return true;
  for (std::size_t i = 0; i < n; ++i) {
    taken = std::max(taken, static_cast<std::size_t>(out[i] - memory_.get()) + stride_);
  }
  taken_.store(taken, std::memory_order_relaxed);
  return true;
}

void Planes::give_back(std::byte* plane) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(plane);
  count_in_use();
  if (wanted_ != 0 && free_.size() >= wanted_) changed_.notify_all();
}

// Who fills planes may be faster, and warms what it comes to by itself: pages of planes that it has are its
// own.
std::size_t Planes::next_warm() const noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(memory_.get());
  const std::size_t behind =
      std::max(taken_.load(std::memory_order_relaxed), warm_.load(std::memory_order_relaxed));
  return static_cast<std::size_t>(align_up(base + behind, kWarmBytes) - base);
}

bool Planes::can_warm() const noexcept {
  return next_warm() < std::min(2 * taken_.load(std::memory_order_relaxed), most_warm_);
}

bool Planes::warm_some() noexcept {
  if (!can_warm()) return false;
  const std::size_t first = next_warm(), last = std::min(first + kWarmBytes, most_warm_);
  const bool is_warm = take_pages(memory_.get() + first, last - first);
  warm_.store(is_warm ? last : most_warm_, std::memory_order_relaxed);
  return is_warm;
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

}  // namespace cdd::tiles
