// Reads boxes of an array of tiles: cdd's own, or one that others wrote, sharded or with a file a chunk.
// Only the tiles that a box touches are read and decoded, several at once.
//
// Any number of threads may read. What a reader sees grows with refresh() alone. A shard's index is kept, and
// its file open, for the shards last used.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "core/format/zarr/array_metadata.h"
#include "core/tiles/files.h"

namespace cdd::tiles {

class TileReader {
 public:
  // Throws Error{Io, ENOENT} where there is no zarr.json, else what is wrong with it.
  explicit TileReader(std::unique_ptr<ArrayFiles> files);
  ~TileReader();

  // Looks again at zarr.json and forgets the indexes. Whether the shape has changed. Reads that are under way
  // go on with what they began with.
  bool refresh();

  std::shared_ptr<const zarr::ArrayMetadata> metadata() const;

  // The items from `start` on, `count` along each dimension, in row-major order into `out`: exactly as many
  // bytes as those have. OutOfRange where the box leaves the array, InvalidArgument for the wrong size of
  // `out`. Error{Corrupt, Checksum, ...} names the tile.
  void read(std::span<const std::uint64_t> start, std::span<const std::uint64_t> count,
            MutableBytes out) const;

  // Bytes of the tiles that an index names, of all shards; how many tiles, and how many are not stored.
  struct Stored {
    std::uint64_t bytes = 0, tiles = 0, absent_tiles = 0;
  };
  Stored stored() const;

 private:
  class View;  // of the array as it was at the last refresh
  std::shared_ptr<const View> view() const;

  const std::unique_ptr<ArrayFiles> files_;
  mutable std::mutex mutex_;
  std::shared_ptr<const View> view_;
};

}  // namespace cdd::tiles
