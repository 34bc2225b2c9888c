// A layer of tiles, and who encodes it: this cut is where a GPU may take over. The writer, its shards and its
// journal know encoders only by it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/bytes.h"
#include "core/tiles/planes.h"
#include "core/tiles/tile_codec.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {

// The planes of a layer of tiles, as far as they have arrived.
class Layer {
 public:
  Layer(const Tiling& tiling, Planes& planes, const std::byte* fill);

  void begin(std::uint64_t number) noexcept;
  std::uint64_t number() const noexcept { return number_; }
  std::uint64_t tiles() const noexcept { return tiling_->layer_tiles(); }

  // Whole frames that have arrived.
  std::uint64_t frames() const noexcept { return frames_; }
  void set_frames(std::uint64_t frames) noexcept { frames_ = frames; }

  // Takes the planes of the next slab; false where there are too few.
  bool take_slab(std::uint64_t slab) noexcept;
  std::byte* const* slab(std::uint64_t slab) const noexcept { return planes_.data() + slab * tiles(); }

  // The planes of a tile in their order; planes that have not arrived are fill values. True where all of it
  // is fill values.
  bool parts_of(std::uint64_t tile, std::vector<Bytes>& parts) const;

  // Whether tile `tile` has been stored with all its frames, so that its planes are given back.
  bool is_done(std::uint64_t tile) const noexcept { return done_[static_cast<std::size_t>(tile)] != 0; }
  void set_done(std::uint64_t tile) noexcept;

 private:
  const Tiling* tiling_;
  Planes* pool_;
  const std::byte* fill_;
  std::uint64_t number_ = 0, frames_ = 0;
  std::vector<std::byte*> planes_;  // slab by slab
  std::vector<unsigned char> done_;
};

// Takes the encoded tiles of one layer, from any thread and in any order.
class TileSink {
 public:
  virtual ~TileSink() = default;
  // `parts` are what a TileCodec makes, without the check; they may change once put() has returned.
  virtual void put(std::uint64_t tile, std::span<const Bytes> parts) = 0;
  // The tile is fill values all over, and need not be stored.
  virtual void put_fill(std::uint64_t tile) = 0;
};

class TileEncoder {
 public:
  virtual ~TileEncoder() = default;
  // Puts every tile of `layer` that is not done yet, and sets it done where `whole`. When it returns all have
  // been put; when it throws some have.
  virtual void encode(Layer& layer, bool whole, TileSink& sink) = 0;
};

// Several tiles at once, one a thread.
class CpuEncoder final : public TileEncoder {
 public:
  explicit CpuEncoder(TileCodec codec) : codec_(std::move(codec)) {}
  void encode(Layer& layer, bool whole, TileSink& sink) override;

 private:
  void encode_tile(Layer& layer, std::uint64_t tile, bool whole, TileSink& sink) const;

  TileCodec codec_;
};

}  // namespace cdd::tiles
