#include "core/tiles/memory_plan.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/format/zarr/shard_index.h"

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

}  // namespace cdd::tiles
