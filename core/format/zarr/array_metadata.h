// zarr.json of an array, as far as cdd writes or reads it: a struct and back.
//
// Read is also what others wrote: sharded arrays, or plain ones (each chunk a file), with the codecs below.
// What the struct cannot say is Error{Unsupported} that names it; what is no zarr v3 array is Error{Corrupt}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/dtype.h"
#include "core/base/json.h"

namespace cdd::zarr {

// What zarr's readers take at most: TensorStore refuses 33.
inline constexpr std::size_t kMaxRank = 32;

enum class Packing : std::uint8_t { Raw, Blosc, Zstd };
enum class BloscShuffle : std::uint8_t { None = 0, Byte = 1, Bit = 2 };

// How one tile is stored: bytes (little-endian), then what packs them, then a CRC-32C or none.
struct TileCoding {
  Packing packing = Packing::Raw;
  std::string blosc_compressor = "zstd";  // of Blosc: "zstd" or "lz4"; readers find it in each frame, too
  int level = 1;                          // of Blosc: 0 to 9; of Zstd: zstd's own
  BloscShuffle shuffle = BloscShuffle::Byte;
  bool has_check = false;
};

struct ArrayMetadata {
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> shard;  // zarr's outer chunk
  std::vector<std::uint64_t> tile;   // zarr's inner chunk; equal to `shard` where is_sharded is false
  bool is_sharded = true;
  bool index_at_end = false;
  bool index_has_check = true;
  DType dtype;
  std::vector<std::byte> fill;  // one item
  TileCoding coding;
  bool has_v2_keys = false;  // "3.0.1" instead of "c/3/0/1"
  char key_separator = '/';
  std::vector<std::optional<std::string>> dimension_names;  // none, or one a dimension
  Json attributes = Json::object();

  std::string dump() const;
  static ArrayMetadata parse(const Json& json);

  // The key of the shard with these indexes.
  std::string key_of(const std::vector<std::uint64_t>& shard_index) const;
};

}  // namespace cdd::zarr
