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
  done_[static_cast<std::size_t>(tile)] = 1;
  for (std::uint64_t s = 0; s < tiling_->layer_slabs(); ++s) {
    std::byte*& plane = planes_[static_cast<std::size_t>(s * tiles() + tile)];
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
// makes, would leave one thread with several at the end. The system lets one thread at a time write a file,
// so each thread has a part of the layer, and thereby most often shards, of its own, and helps others, from
// their ends, once that is done.
void CpuEncoder::encode(Layer& layer, bool whole, TileSink& sink) {
  struct Part {
    std::atomic<std::uint64_t> taken{0};     // tiles, by anybody
    std::atomic<std::uint64_t> from_end{0};  // of these
  };
  const std::uint64_t tiles = layer.tiles();
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(threads(), tiles));
  std::vector<Part> parts(n);
  std::atomic<bool> has_failed{false};
  for_each(n, [&](std::size_t own) {
    try {
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t p = (own + k) % n;
        const std::uint64_t first = tiles * p / n, last = tiles * (p + 1) / n;
        for (std::uint64_t at = first; parts[p].taken++ < last - first && !has_failed; ++at) {
          encode_tile(layer, p == own ? at : last - ++parts[p].from_end, whole, sink);
        }
      }
    } catch (...) {
      has_failed = true;
      throw;
    }
  });
}

}  // namespace cdd::tiles
