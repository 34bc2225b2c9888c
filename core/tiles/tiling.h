// How an array is cut: element (i0, i1, ...) lies in tile (i0 / n0, i1 / n1, ...) at (i0 % n0, i1 % n1, ...).
// Numbers only; nothing is allocated for pixels and no file is known here.
//
// Dimension 0 is the slowest. A *frame* is one index of it; a *layer* holds the tiles of one index of tiles
// of dimension 0, n0 frames. What arrives in one piece is a *slab*: one frame, or several where the frames of
// a tile lie together anyway (one tile a layer, without padding). A *plane* is the part of a tile that comes
// from one slab. A tile is its planes, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cdd::tiles {

inline constexpr std::size_t kMaxDimensions = 64;
inline constexpr std::uint64_t kMaxTileBytes = (std::uint64_t{1} << 31) - (64 << 10) - 1;
inline constexpr std::uint64_t kMaxIndexBytes = (std::uint64_t{1} << 30) - 1;
inline constexpr std::uint64_t kMaxLayerBytes = std::uint64_t{1} << 46;
inline constexpr std::size_t kPlaneAlignment = 64;

struct Dimension {
  std::uint64_t size = 0;  // 0: unbounded, for dimension 0 alone
  std::uint64_t tile = 0;
  std::uint64_t shard_tiles = 0;  // tiles of a shard along this dimension
  std::string name;               // empty: none
};

// A dimension of a slab after size-1 dimensions went and neighbours were fused.
struct SlabAxis {
  std::uint64_t size;   // of the last axis: bytes; else runs
  std::uint64_t tile;   // likewise
  std::uint64_t tiles;  // ceil(size / tile)
};

class Tiling {
 public:
  // Throws InvalidArgument, naming the dimension, for a rank of 0 or over 64, a zero, or a product beyond the
  // limits above or 64 bits.
  static Tiling make(std::vector<Dimension> dimensions, std::size_t item_bytes);

  const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }
  std::size_t rank() const noexcept { return dimensions_.size(); }
  std::size_t item_bytes() const noexcept { return item_bytes_; }
  bool is_bounded() const noexcept { return dimensions_[0].size != 0; }

  std::uint64_t frame_bytes() const noexcept { return frame_bytes_; }
  std::uint64_t tile_bytes() const noexcept { return tile_bytes_; }
  std::uint64_t layer_frames() const noexcept { return dimensions_[0].tile; }
  std::uint64_t layer_tiles() const noexcept { return layer_tiles_; }  // M
  std::uint64_t layer_slabs() const noexcept { return layer_frames() / slab_frames_; }
  std::uint64_t slab_frames() const noexcept { return slab_frames_; }
  std::uint64_t slab_bytes() const noexcept { return frame_bytes_ * slab_frames_; }
  std::uint64_t plane_bytes() const noexcept { return tile_bytes_ / layer_slabs(); }
  // Bytes from one plane to the next in memory.
  std::uint64_t plane_stride() const noexcept;
  const std::vector<SlabAxis>& axes() const noexcept { return axes_; }
  // True where a plane has elements that no frame fills.
  bool has_padding() const noexcept { return has_padding_; }

  // Of a shard: tiles in it, and of its layer of tiles.
  std::uint64_t shard_tiles() const noexcept { return shard_tiles_; }
  std::uint64_t shard_layers() const noexcept { return dimensions_[0].shard_tiles; }
  // Shards beside one another, those of one index of shards along dimension 0.
  std::uint64_t row_shards() const noexcept { return row_shards_; }

  // Tiles along dimension d >= 1.
  std::uint64_t tiles_along(std::size_t d) const noexcept;
  std::uint64_t shards_along(std::size_t d) const noexcept;

  // Where tile `tile` of a layer lies: the shard beside the others, and its place among the shard's tiles of
  // the first layer; each further layer of the shard adds shard_layer_tiles().
  struct Place {
    std::uint64_t shard;
    std::uint64_t slot;
  };
  Place place_of(std::uint64_t tile) const noexcept;
  std::uint64_t shard_layer_tiles() const noexcept { return shard_tiles_ / shard_layers(); }

  // "c/3/0/1": the key of shard `shard` of row `row`.
  std::string shard_key(std::uint64_t row, std::uint64_t shard) const;

 private:
  Tiling() = default;
  void measure();
  void make_axes();

  std::vector<Dimension> dimensions_;
  std::vector<SlabAxis> axes_;
  std::size_t item_bytes_ = 0;
  std::uint64_t frame_bytes_ = 0, tile_bytes_ = 0, layer_tiles_ = 0, slab_frames_ = 1;
  std::uint64_t shard_tiles_ = 0, row_shards_ = 0;
  bool has_padding_ = false;
};

// Copies bytes [position, position + bytes.size()) of a slab to their places: planes[t] is that of tile t.
void scatter(const Tiling& tiling, std::uint64_t position, std::span<const std::byte> bytes,
             std::byte* const* planes) noexcept;

// Fills what no frame fills in the planes of a slab with bytes of `fill`, a plane of fill values.
void fill_padding(const Tiling& tiling, const std::byte* fill, std::byte* const* planes) noexcept;

// Bytes [first, last) of a plane are filled from `fill`, in the planes of all tiles, where a slab has been
// given its first `position` bytes only.
void fill_rest(const Tiling& tiling, std::uint64_t position, const std::byte* fill,
               std::byte* const* planes) noexcept;

namespace reference {
// Item by item, from the definition above and nothing else.
void scatter(const Tiling& tiling, std::uint64_t position, std::span<const std::byte> bytes,
             std::byte* const* planes) noexcept;
}  // namespace reference

}  // namespace cdd::tiles
