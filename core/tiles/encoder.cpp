#include "core/tiles/encoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/base/of_thread.h"
#include "core/threads/for_each.h"

namespace cdd::tiles {

Layer::Layer(const Tiling& tiling, Planes& planes, const std::byte* fill)
    : tiling_(&tiling),
      pool_(&planes),
      fill_(fill),
      planes_(static_cast<std::size_t>(tiling.layer_tiles() * tiling.layer_slabs()), nullptr),
      done_(static_cast<std::size_t>(tiling.layer_tiles()), 0) {}

void Layer::begin(std::uint64_t number) noexcept {
  number_ = number;
  frames_ = 0;
  std::fill(done_.begin(), done_.end(), static_cast<unsigned char>(0));
}

bool Layer::take_slab(std::uint64_t slab) noexcept {
  std::byte** const planes = planes_.data() + slab * tiles();
  if (!pool_->take(static_cast<std::size_t>(tiles()), planes)) return false;
  fill_padding(*tiling_, fill_, planes);
  return true;
}

bool Layer::parts_of(std::uint64_t tile, std::vector<Bytes>& parts) const {
  const auto bytes = static_cast<std::size_t>(tiling_->plane_bytes());
  parts.clear();
  bool is_fill = true;
  for (std::uint64_t s = 0; s < tiling_->layer_slabs(); ++s) {
    const std::byte* const plane = slab(s)[tile];
    parts.emplace_back(plane == nullptr ? fill_ : plane, bytes);
    is_fill = is_fill && (plane == nullptr || std::memcmp(plane, fill_, bytes) == 0);
  }
  return is_fill;
}

void Layer::set_done(std::uint64_t tile) noexcept {
  done_[tile] = 1;
  for (std::uint64_t s = 0; s < tiling_->layer_slabs(); ++s) {
    std::byte*& plane = planes_[s * tiles() + tile];
    if (plane != nullptr) pool_->give_back(std::exchange(plane, nullptr));
  }
}

void CpuEncoder::encode_tile(Layer& layer, std::uint64_t tile, bool whole, TileSink& sink) const {
  if (layer.is_done(tile)) return;
  struct Lists {
    std::vector<Bytes> planes, parts;
  };
  thread_local OfThread<Lists> lists;
  if (layer.parts_of(tile, lists.value.planes)) {
    sink.put_fill(tile);
  } else {
    sink.put(tile, codec_.encode(lists.value.planes, lists.value.parts));
  }
  if (whole) layer.set_done(tile);
}

// Tiles may take milliseconds: each goes to the thread that is free first. Ranges of them, which for_each()
// makes, would leave one thread with several at the end. Tiles that are encoded at the same time are far from
// each other, so that they are most often of other shards: the system lets one thread at a time write a file.
void CpuEncoder::encode(Layer& layer, bool whole, TileSink& sink) {
  const std::uint64_t tiles = layer.tiles();
  const std::uint64_t parts = std::min<std::uint64_t>(threads(), tiles);
  const std::uint64_t places = parts * ((tiles + parts - 1) / parts);
  std::atomic<std::uint64_t> next{0};
  for_each(static_cast<std::size_t>(parts), [&](std::size_t) {
    try {
      for (std::uint64_t i = next++; i < places; i = next++) {
        const std::uint64_t part = i % parts, tile = tiles * part / parts + i / parts;
        if (tile < tiles * (part + 1) / parts) encode_tile(layer, tile, whole, sink);
      }
    } catch (...) {
      next = places;
      throw;
    }
  });
}

}  // namespace cdd::tiles
