// The memory of a writer: how much of it there is, decided before any is taken; planes of one size, in a free
// list, all taken when the list is made.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/tiles/tile_codec.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {

struct MemoryPlan {
  std::size_t planes = 0;
  std::size_t layers = 0;         // of which the tables are kept
  std::uint64_t plane_bytes = 0;  // of all planes
  std::uint64_t other_bytes = 0;  // tables, and what `threads` threads keep to encode

  std::uint64_t bytes() const noexcept { return plane_bytes + other_bytes; }

  // `memory_bytes` 0: planes of 1.25 layers, and of at least a layer and a slab. Throws InvalidArgument that
  // says how much is needed where it is less than that.
  static MemoryPlan make(const Tiling& tiling, const TileCodec& codec, std::uint64_t memory_bytes,
                         unsigned threads);
};

class Planes {
 public:
  // `stride` is a multiple of kPlaneAlignment. Throws std::bad_alloc.
  Planes(std::size_t count, std::size_t stride);

  // `n` planes, or none and false. Waits for nothing but the list itself, allocates nothing.
  bool take(std::size_t n, std::byte** out) noexcept;
  void give_back(std::byte* plane) noexcept;

  // For one thread that found too few: returns when `n` are free, or wake() was called since news() said
  // `seen`.
  void wait(std::size_t n, std::uint64_t seen) noexcept;
  std::uint64_t news() const noexcept;
  void wake() noexcept;

  std::size_t count() const noexcept { return count_; }
  std::size_t in_use() const noexcept;
  std::size_t most_in_use() const noexcept;

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  const std::size_t count_;
  std::unique_ptr<std::byte[], Free> memory_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;  // never grows beyond its first size
  std::condition_variable changed_;
  std::size_t wanted_ = 0;
  std::uint64_t news_ = 0;
  std::size_t most_in_use_ = 0;
};

}  // namespace cdd::tiles
