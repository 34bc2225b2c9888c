// One tile between its planes and its stored bytes: what packs them, and the check behind.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/codec/blosc/frame.h"
#include "core/format/zarr/array_metadata.h"

namespace cdd::tiles {

// What `codec=` names.
struct TileCodecOptions {
  std::string name = "auto";  // "auto", "blosc-zstd", "blosc-lz4", "zstd", "raw"
  int zstd_level = 1;         // -7 to 22 for "zstd", 1 to 22 for "blosc-zstd", 1 for "auto"
  zarr::BloscShuffle shuffle = zarr::BloscShuffle::Byte;
  int checksum = -1;  // 0: none, 1: a CRC-32C a tile, -1: where tiles are compressed
};

class TileCodec {
 public:
  // As a reader finds it in zarr.json.
  TileCodec(const zarr::TileCoding& coding, std::size_t item_bytes, std::uint64_t tile_bytes);
  // Throws InvalidArgument for a name, level or shuffle that there is not.
  static TileCodec named(const TileCodecOptions& options, std::size_t item_bytes, std::uint64_t tile_bytes);

  const zarr::TileCoding& coding() const noexcept { return coding_; }

  // What is to be stored of a tile whose bytes are `planes`, one after the other, but for the check. The
  // result holds views of `planes` or of memory of this thread that the next call uses again; `parts` is
  // working room.
  std::span<const Bytes> encode(std::span<const Bytes> planes, std::vector<Bytes>& parts) const;

  // The bytes of a tile, out.size() of them, from all that is stored of it. Error{Checksum, Corrupt,
  // Unsupported}. `is_alone`: no other tile is decoded at the same time, so that blocks of a large one are.
  void decode(Bytes stored, MutableBytes out, bool is_alone = false) const;

  // Most memory that a thread keeps to encode or decode.
  std::uint64_t scratch_bytes() const noexcept;

 private:
  blosc::Options blosc_options() const noexcept;

  zarr::TileCoding coding_;
  std::size_t item_bytes_;
  std::size_t tile_bytes_;
  int zstd_level_ = 1;
  bool skips_noise_ = false;
};

// The CRC-32C of parts, one after the other.
std::uint32_t check_of(std::span<const Bytes> parts) noexcept;

}  // namespace cdd::tiles
