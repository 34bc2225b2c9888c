// Options of a writer as zarr.json has them, and back.
#include <algorithm>

#include "core/format/zarr/data_type.h"
#include "core/simd/crc32c.h"
#include "core/threads/for_each.h"
#include "core/tiles/tile_writer.h"

namespace cdd::tiles {

zarr::ArrayMetadata metadata_of(const TileOptions& options, const Tiling& tiling, const TileCodec& codec,
                                std::uint64_t frames) {
  if (tiling.rank() > zarr::kMaxRank) {
    fail(ErrorCode::InvalidArgument, "%zu dimensions, a zarr array has at most %zu", tiling.rank(),
         zarr::kMaxRank);
  }
  zarr::ArrayMetadata metadata;
  metadata.dtype = options.dtype;
  metadata.coding = codec.coding();
  metadata.index_at_end = options.index_at_end;
  metadata.attributes = options.attributes;
  metadata.fill = options.fill;
  metadata.fill.resize(options.dtype.item_bytes());
  bool has_names = false;
  for (std::size_t d = 0; d < tiling.rank(); ++d) {
    const Dimension& dimension = tiling.dimensions()[d];
    metadata.shape.push_back(d == 0 ? frames : dimension.size);
    metadata.tile.push_back(dimension.tile);
    metadata.shard.push_back(dimension.tile * dimension.shard_tiles);
    has_names = has_names || !dimension.name.empty();
    metadata.dimension_names.push_back(dimension.name.empty() ? std::nullopt : std::optional(dimension.name));
  }
  if (!has_names) metadata.dimension_names.clear();
  return metadata;
}

std::uint32_t fingerprint_of(zarr::ArrayMetadata metadata) {
  metadata.shape[0] = 0;
  metadata.attributes = Json::object();
  const std::string text = metadata.dump();
  return simd::crc32c(as_bytes(text.data()), text.size());
}

TileOptions options_of(const zarr::ArrayMetadata& metadata, const TileOptions& given, std::uint64_t bound) {
  if (!metadata.is_sharded || metadata.has_v2_keys || metadata.key_separator != '/' ||
      !metadata.index_has_check) {
    fail(ErrorCode::Unsupported, "only sharded arrays with cdd's own keys and indexes are gone on with");
  }
  TileOptions options = given;
  options.dtype = metadata.dtype;
  options.fill = metadata.fill;
  options.index_at_end = metadata.index_at_end;
  options.attributes = metadata.attributes;
  options.dimensions.clear();
  for (std::size_t d = 0; d < metadata.shape.size(); ++d) {
    Dimension dimension{
        d == 0 ? bound : metadata.shape[d], metadata.tile[d], metadata.shard[d] / metadata.tile[d], {}};
    if (!metadata.dimension_names.empty()) dimension.name = metadata.dimension_names[d].value_or("");
    options.dimensions.push_back(std::move(dimension));
  }
  const zarr::TileCoding& coding = metadata.coding;
  TileCodecOptions& codec = options.codec;
  codec.checksum = coding.has_check ? 1 : 0;
  codec.shuffle = coding.shuffle;
  switch (coding.packing) {
    case zarr::Packing::Raw:
      codec.name = "raw";
      codec.zstd_level = 1;
      break;
    case zarr::Packing::Zstd:
      codec.name = "zstd";
      codec.zstd_level = coding.level;
      break;
    case zarr::Packing::Blosc:
      if (coding.blosc_compressor != "zstd" && coding.blosc_compressor != "lz4") {
        fail(ErrorCode::Unsupported, "its compressor is blosc's %.40s, written are zstd and lz4",
             coding.blosc_compressor.c_str());
      }
      // Which of two codecs it was leaves no trace where the level is that of both.
      codec.name = coding.blosc_compressor == "lz4" ? "blosc-lz4"
                   : coding.level == 1              ? given.codec.name == "blosc-zstd" ? "blosc-zstd" : "auto"
                                                    : "blosc-zstd";
      codec.zstd_level = codec.name != "blosc-zstd" ? 1
                         : coding.level >= 9        ? 22
                                                    : std::max(2 * coding.level - 1, 1);
      break;
  }
  return options;
}

std::uint64_t bytes_needed(const TileOptions& options, unsigned threads) {
  const Tiling tiling = Tiling::make(options.dimensions, options.dtype.item_bytes());
  const TileCodec codec = TileCodec::named(options.codec, tiling.item_bytes(), tiling.tile_bytes());
  static_cast<void>(metadata_of(options, tiling, codec, 0));  // refuses what zarr cannot say
  return MemoryPlan::make(tiling, codec, options.memory_bytes, threads, options.memory_elsewhere).bytes();
}

}  // namespace cdd::tiles
