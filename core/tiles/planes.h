// The memory of a writer: how much of it there is, decided before any is taken; planes of one size, in a free
// list, all taken when the list is made. The system gives their pages when they are first used.
#pragma once

#include <atomic>
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

  // `memory_bytes` 0: planes of 1.25 layers, and of at least a layer and a slab. `elsewhere` of it are no
  // part of this plan. Throws InvalidArgument that says how much is needed where it is less than that.
  static MemoryPlan make(const Tiling& tiling, const TileCodec& codec, std::uint64_t memory_bytes,
                         unsigned threads, std::uint64_t elsewhere = 0);
};

class Planes {
 public:
  // `stride` is a multiple of kPlaneAlignment. The first `ahead` planes can be warmed. Throws std::bad_alloc.
  Planes(std::size_t count, std::size_t stride, std::size_t ahead = 0);

  // `n` planes, or none and false. Waits for nothing but the list itself, allocates nothing.
  bool take(std::size_t n, std::byte** out) noexcept;
  void give_back(std::byte* plane) noexcept;

  // The first use of memory is the dearest: other threads may do it ahead of who takes planes and fills them.
  // Warms the next few pages behind all planes that were taken so far; false where none are to be warmed
  // before more are taken. It is never more than was taken already: a stream may end early. One thread at a
  // time.
  bool warm_some() noexcept;
  bool can_warm() const noexcept;

  // For one thread that found too few: returns when `n` are free, or wake() was called since news() said
  // `seen`.
  void wait(std::size_t n, std::uint64_t seen) noexcept;
  std::uint64_t news() const noexcept;
  void wake() noexcept;

  std::size_t count() const noexcept { return count_; }
  // Without the lock of the list, which a forked child may have found taken.
  std::size_t in_use() const noexcept { return in_use_.load(std::memory_order_relaxed); }
  std::size_t most_in_use() const noexcept { return most_in_use_.load(std::memory_order_relaxed); }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };
  void count_in_use() noexcept;
  std::size_t next_warm() const noexcept;

  const std::size_t count_, stride_;
  std::unique_ptr<std::byte[], Free> memory_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;  // never grows beyond its first size
  std::condition_variable changed_;
  std::size_t wanted_ = 0;
  std::uint64_t news_ = 0;
  std::atomic<std::size_t> in_use_{0}, most_in_use_{0};

  // Bytes from the start of the memory: of planes that were taken, that are warm, that may ever be.
  std::atomic<std::size_t> taken_{0}, warm_{0};
  const std::size_t most_warm_;
};

}  // namespace cdd::tiles
