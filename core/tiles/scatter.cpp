// Where the bytes of a slab go. The odometer moves once per group of rows whose runs go to the same tiles.
#include <algorithm>
#include <cstring>

#include "core/simd/tiles/scatter.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;

// Of one row (an index of all axes but the last): the first of its tiles, and its place in their planes.
struct Row {
  U64 tile = 0;    // number of the tile of its first run
  U64 offset = 0;  // bytes from the start of a plane
  U64 more = 1;    // rows from here on, this one included, that go to the same tiles at the next places
};

Row find_row(const Tiling& tiling, U64 row) noexcept {
  const auto& axes = tiling.axes();
  Row found;
  U64 tile_stride = axes.back().tiles;
  U64 offset_stride = axes.back().tile;
  for (std::size_t a = axes.size() - 1; a-- > 0;) {
    const SlabAxis& axis = axes[a];
    const U64 index = row % axis.size;
    row /= axis.size;
    const U64 inside = index % axis.tile;
    if (a + 2 == axes.size()) found.more = std::min(axis.tile - inside, axis.size - index);
    found.tile += index / axis.tile * tile_stride;
    found.offset += inside * offset_stride;
    tile_stride *= axis.tiles;
    offset_stride *= axis.tile;
  }
  return found;
}

// Part of one row, from byte `x` of it on.
void scatter_part(const SlabAxis& last, const Row& row, U64 x, std::span<const std::byte> bytes,
                  std::byte* const* planes) noexcept {
  while (!bytes.empty()) {
    const U64 inside = x % last.tile;
    const U64 take = std::min<U64>(last.tile - inside, bytes.size());
    std::memcpy(planes[row.tile + x / last.tile] + row.offset + inside, bytes.data(), take);
    x += take;
    bytes = bytes.subspan(static_cast<std::size_t>(take));
  }
}

}  // namespace

void scatter(const Tiling& tiling, U64 position, std::span<const std::byte> bytes,
             std::byte* const* planes) noexcept {
  const SlabAxis& last = tiling.axes().back();
  while (!bytes.empty()) {
    const U64 x = position % last.size;
    const Row row = find_row(tiling, position / last.size);
    U64 take = 0;
    if (x == 0 && bytes.size() >= last.size) {
      const U64 rows = std::min<U64>(row.more, bytes.size() / last.size);
      simd::scatter_rows(bytes.data(), rows, last.size, last.tile, planes + row.tile, row.offset);
      take = rows * last.size;
    } else {
      take = std::min<U64>(last.size - x, bytes.size());
      scatter_part(last, row, x, bytes.first(static_cast<std::size_t>(take)), planes);
    }
    position += take;
    bytes = bytes.subspan(static_cast<std::size_t>(take));
  }
}

// Walks the rows of each plane that sticks out: those beyond the array are filled whole, others at their end.
void fill_padding(const Tiling& tiling, const std::byte* fill, std::byte* const* planes) noexcept {
  if (!tiling.has_padding()) return;
  const auto& axes = tiling.axes();
  const U64 run = axes.back().tile;
  const U64 plane_rows = tiling.plane_bytes() / run;
  for (U64 t = 0; t < tiling.layer_tiles(); ++t) {
    const U64 first = t % axes.back().tiles * run;
    const U64 kept_of_run = std::min(run, axes.back().size - first);
    for (U64 r = 0; r < plane_rows; ++r) {
      U64 tile = t / axes.back().tiles, row = r;
      bool is_outside = false;
      for (std::size_t a = axes.size() - 1; a-- > 0;) {
        is_outside = is_outside || tile % axes[a].tiles * axes[a].tile + row % axes[a].tile >= axes[a].size;
        tile /= axes[a].tiles;
        row /= axes[a].tile;
      }
      const U64 kept = is_outside ? 0 : kept_of_run;
      if (kept < run) std::memcpy(planes[t] + r * run + kept, fill + r * run + kept, run - kept);
    }
  }
}

void fill_rest(const Tiling& tiling, U64 position, const std::byte* fill, std::byte* const* planes) noexcept {
  const SlabAxis& last = tiling.axes().back();
  while (position < tiling.slab_bytes()) {
    U64 x = position % last.size;
    const Row row = find_row(tiling, position / last.size);
    position += last.size - x;
    while (x < last.size) {
      const U64 inside = x % last.tile;
      const U64 take = std::min(last.tile - inside, last.size - x);
      const U64 at = row.offset + inside;
      std::memcpy(planes[row.tile + x / last.tile] + at, fill + at, take);
      x += take;
    }
  }
}

namespace reference {

void scatter(const Tiling& tiling, U64 position, std::span<const std::byte> bytes,
             std::byte* const* planes) noexcept {
  const auto& dimensions = tiling.dimensions();
  for (const std::byte byte : bytes) {
    const U64 item = position / tiling.item_bytes();
    // The frame within its slab, then the other dimensions from the last one.
    U64 left = item, tile = 0, inside = 0, tile_stride = 1, inside_stride = 1;
    for (std::size_t d = tiling.rank(); d-- > 1;) {
      const U64 index = left % dimensions[d].size;
      left /= dimensions[d].size;
      tile += index / dimensions[d].tile * tile_stride;
      inside += index % dimensions[d].tile * inside_stride;
      tile_stride *= tiling.tiles_along(d);
      inside_stride *= dimensions[d].tile;
    }
    inside += left * inside_stride;
    planes[tile][inside * tiling.item_bytes() + position % tiling.item_bytes()] = byte;
    ++position;
  }
}

}  // namespace reference
}  // namespace cdd::tiles
