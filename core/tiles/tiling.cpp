#include "core/tiles/tiling.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;

constexpr U64 kSlabBytes = 256 << 10;   // what slabs of several frames aim at
constexpr U64 kSmallPlaneBytes = 4096;  // smaller planes would waste their alignment

unsigned long long n(U64 value) { return value; }

constexpr U64 ceil_div(U64 a, U64 b) noexcept { return a / b + (a % b != 0); }

void check_dimension(const Dimension& dimension, std::size_t d) {
  const auto refuse = [&](const char* what) {
    fail(ErrorCode::InvalidArgument, "dimension %zu has %s", d, what);
  };
  if (dimension.size == 0 && d != 0) refuse("size 0: only dimension 0 may be unbounded");
  if (dimension.tile == 0) refuse("a tile of 0 elements");
  if (dimension.shard_tiles == 0) refuse("a shard of 0 tiles");
  U64 whole = 0;
  const U64 tiles = ceil_div(dimension.size, dimension.tile);
  if (!checked_mul(tiles, dimension.tile, &whole) ||
      !checked_mul(ceil_div(tiles, dimension.shard_tiles), dimension.shard_tiles, &whole)) {
    fail(ErrorCode::InvalidArgument,
         "dimension %zu of %llu elements in tiles of %llu and shards of %llu tiles is beyond 64 bits", d,
         n(dimension.size), n(dimension.tile), n(dimension.shard_tiles));
  }
}

// Multiplies `product` and says which dimension made it too large.
void grow(U64& product, U64 factor, U64 most, const char* what, std::size_t d) {
  U64 result = 0;
  if (!checked_mul(product, factor, &result) || result > most) {
    fail(ErrorCode::InvalidArgument, "%s: %llu times %llu of dimension %zu is more than the limit of %llu",
         what, n(product), n(factor), d, n(most));
  }
  product = result;
}

// How many frames a slab has where a tile is one run of the input.
U64 frames_together(U64 layer_frames, U64 frame_bytes) noexcept {
  for (U64 frames = std::min(layer_frames, std::max<U64>(1, kSlabBytes / frame_bytes)); frames > 0;
       --frames) {
    if (layer_frames % frames != 0) continue;
    return frames * frame_bytes < kSmallPlaneBytes ? layer_frames : frames;
  }
  return layer_frames;
}

}  // namespace

Tiling Tiling::make(std::vector<Dimension> dimensions, std::size_t item_bytes) {
  if (dimensions.empty() || dimensions.size() > kMaxDimensions) {
    fail(ErrorCode::InvalidArgument, "an array of tiles has 1 to %zu dimensions, got %zu", kMaxDimensions,
         dimensions.size());
  }
  Tiling tiling;
  tiling.dimensions_ = std::move(dimensions);
  tiling.item_bytes_ = item_bytes;
  tiling.measure();
  tiling.make_axes();
  return tiling;
}

void Tiling::measure() {
  for (std::size_t d = 0; d < rank(); ++d) check_dimension(dimensions_[d], d);
  frame_bytes_ = tile_bytes_ = item_bytes_;
  layer_tiles_ = row_shards_ = shard_tiles_ = 1;
  U64 index_bytes = 16;
  U64 layer_bytes = item_bytes_;
  for (std::size_t d = 0; d < rank(); ++d) {
    const Dimension& dimension = dimensions_[d];
    grow(tile_bytes_, dimension.tile, kMaxTileBytes, "bytes of a tile", d);
    grow(index_bytes, dimension.shard_tiles, kMaxIndexBytes, "bytes of a shard's index", d);
    shard_tiles_ *= dimension.shard_tiles;
    const U64 padded = d == 0 ? dimension.tile : tiles_along(d) * dimension.tile;
    grow(layer_bytes, padded, kMaxLayerBytes, "bytes of a layer of tiles", d);
    if (d == 0) continue;
    frame_bytes_ *= dimension.size;
    layer_tiles_ *= tiles_along(d);
    row_shards_ *= shards_along(d);
  }
  if (is_bounded()) {
    U64 bytes = frame_bytes_;
    grow(bytes, dimensions_[0].size, ~U64{0} >> 1, "bytes of the array", 0);
  }
}

// The last axis is counted in bytes, so that nothing below knows items.
void Tiling::make_axes() {
  for (std::size_t d = 1; d < rank(); ++d) {
    const Dimension& dimension = dimensions_[d];
    const SlabAxis axis{dimension.size, dimension.tile, tiles_along(d)};
    has_padding_ = has_padding_ || axis.size % axis.tile != 0;
    if (axis.size == 1 && axis.tile == 1) continue;
    if (!axes_.empty() && axis.tiles == 1 && axis.size == axis.tile) {
      axes_.back().size *= axis.size;
      axes_.back().tile *= axis.tile;
    } else {
      axes_.push_back(axis);
    }
  }
  if (axes_.empty()) axes_.push_back({1, 1, 1});
  axes_.back().size *= item_bytes_;
  axes_.back().tile *= item_bytes_;
  const bool is_one_run = axes_.size() == 1 && axes_[0].tiles == 1 && axes_[0].size == axes_[0].tile;
  if (!is_one_run) return;
  slab_frames_ = frames_together(layer_frames(), frame_bytes_);
  axes_[0].size = axes_[0].tile = slab_bytes();
}

U64 Tiling::plane_stride() const noexcept { return align_up(plane_bytes(), kPlaneAlignment); }

U64 Tiling::tiles_along(std::size_t d) const noexcept {
  return ceil_div(dimensions_[d].size, dimensions_[d].tile);
}

U64 Tiling::shards_along(std::size_t d) const noexcept {
  return ceil_div(tiles_along(d), dimensions_[d].shard_tiles);
}

Tiling::Place Tiling::place_of(U64 tile) const noexcept {
  Place place{0, 0};
  U64 shard_stride = 1, slot_stride = 1;
  for (std::size_t d = rank(); d-- > 1;) {
    const U64 index = tile % tiles_along(d);
    tile /= tiles_along(d);
    const U64 per_shard = dimensions_[d].shard_tiles;
    place.shard += index / per_shard * shard_stride;
    place.slot += index % per_shard * slot_stride;
    shard_stride *= shards_along(d);
    slot_stride *= per_shard;
  }
  return place;
}

std::string Tiling::shard_key(U64 row, U64 shard) const {
  std::vector<U64> indexes{row};
  for (std::size_t d = rank(); d-- > 1;) {
    indexes.insert(indexes.begin() + 1, shard % shards_along(d));
    shard /= shards_along(d);
  }
  std::string key = "c";
  for (const U64 index : indexes) key.append(1, '/').append(std::to_string(index));
  return key;
}

}  // namespace cdd::tiles
