// How much memory a writer takes: decided before any of it is taken.
#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace cdd::tiles
