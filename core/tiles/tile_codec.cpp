#include "core/tiles/tile_codec.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/of_thread.h"
#include "core/base/scratch.h"
#include "core/simd/crc32c.h"
#include "core/threads/for_each.h"

namespace cdd::tiles {
namespace {

using zarr::Packing;

constexpr int kLowestLevel = -7, kHighestLevel = 22;
constexpr std::size_t kCheckBytes = 4;
constexpr std::size_t kLeastShared = 512 << 10;  // a tile of which several threads decode parts

Scratch& encoded_bytes() {
  thread_local OfThread<Scratch> own;
  return own.value;
}
Scratch& gathered_bytes() {
  thread_local OfThread<Scratch> own;
  return own.value;
}

// Level 2 n - 1 of zstd is level n of blosc, up to 8; 9 is 22 of zstd.
int blosc_level(int zstd_level) {
  return zstd_level == kHighestLevel ? 9 : std::clamp((zstd_level + 1) / 2, 1, 8);
}

void check_level(const TileCodecOptions& options) {
  const int lowest = options.name == "zstd" ? kLowestLevel : 1;
  const int highest = options.name == "zstd" || options.name == "blosc-zstd" ? kHighestLevel : 1;
  if (options.zstd_level >= lowest && options.zstd_level <= highest) return;
  fail(ErrorCode::InvalidArgument, "zstd_level is %d, codec \"%s\" takes %d to %d", options.zstd_level,
       options.name.c_str(), lowest, highest);
}

// Blocks go by in groups, so that threads do not meet at every one of them.
void decode_shared(const blosc::Decoder& decoder, MutableBytes out) {
  const std::size_t blocks = decoder.blocks();
  const std::size_t groups = std::min(blocks, out.size() / (kLeastShared / 4));
  for_each(groups, [&](std::size_t g) {
    for (std::size_t i = blocks * g / groups; i < blocks * (g + 1) / groups; ++i) decoder.decode(i, out);
  });
}

}  // namespace

TileCodec::TileCodec(const zarr::TileCoding& coding, std::size_t item_bytes, std::uint64_t tile_bytes)
    : coding_(coding), item_bytes_(item_bytes), tile_bytes_(static_cast<std::size_t>(tile_bytes)) {}

TileCodec TileCodec::named(const TileCodecOptions& options, std::size_t item_bytes,
                           std::uint64_t tile_bytes) {
  zarr::TileCoding coding;
  const std::string& name = options.name;
  if (name == "auto" || name == "blosc-zstd" || name == "blosc-lz4") {
    coding.packing = Packing::Blosc;
    coding.blosc_compressor = name == "blosc-lz4" ? "lz4" : "zstd";
    coding.level = name == "blosc-lz4" ? 5 : blosc_level(options.zstd_level);
    coding.shuffle = options.shuffle;
    if (coding.shuffle == zarr::BloscShuffle::Byte && item_bytes == 1)
      coding.shuffle = zarr::BloscShuffle::None;
  } else if (name == "zstd") {
    coding.packing = Packing::Zstd;
    coding.level = options.zstd_level;
  } else if (name == "lz4") {
    fail(ErrorCode::InvalidArgument, "codec \"lz4\" alone is none of zarr's: \"blosc-lz4\" is");
  } else if (name != "raw") {
    fail(ErrorCode::InvalidArgument,
         "codec is one of \"auto\", \"blosc-zstd\", \"blosc-lz4\", \"zstd\", \"raw\", not \"%.40s\"",
         name.c_str());
  }
  check_level(options);
  coding.has_check = options.checksum < 0 ? name != "raw" : options.checksum != 0;
  TileCodec codec(coding, item_bytes, tile_bytes);
  codec.zstd_level_ = options.zstd_level;
  codec.skips_noise_ = name == "auto";
  return codec;
}

blosc::Options TileCodec::blosc_options() const noexcept {
  blosc::Options options;
  options.compressor = coding_.blosc_compressor == "lz4" ? Compressor::Lz4 : Compressor::Zstd;
  // Level n of blosc is acceleration 10 - n of LZ4.
  options.level = options.compressor == Compressor::Lz4 ? std::min(coding_.level - 10, -1) : zstd_level_;
  options.shuffle = coding_.shuffle;
  options.item_bytes = item_bytes_;
  options.skips_noise = skips_noise_;
  return options;
}

std::span<const Bytes> TileCodec::encode(std::span<const Bytes> planes, std::vector<Bytes>& parts) const {
  if (coding_.packing == Packing::Raw) return planes;
  parts.clear();
  if (coding_.packing == Packing::Blosc) {
    const blosc::Options options = blosc_options();
    const MutableBytes out = encoded_bytes().get(blosc::encode_bound(tile_bytes_, options));
    parts.push_back(out.first(blosc::encode(planes, tile_bytes_, options, out)));
    return parts;
  }
  Bytes tile = planes[0];
  if (planes.size() > 1) {
    const MutableBytes together = gathered_bytes().get(tile_bytes_).first(tile_bytes_);
    std::size_t done = 0;
    for (const Bytes plane : planes) {
      std::memcpy(together.data() + done, plane.data(), plane.size());
      done += plane.size();
    }
    tile = together;
  }
  const MutableBytes out = encoded_bytes().get(compress_bound(Compressor::Zstd, tile_bytes_));
  parts.push_back(out.first(compress(Compressor::Zstd, tile, out, coding_.level)));
  return parts;
}

void TileCodec::decode(Bytes stored, MutableBytes out, bool is_alone) const {
  if (coding_.has_check) {
    if (stored.size() < kCheckBytes)
      fail(ErrorCode::Corrupt, "%zu stored bytes, its check alone has 4", stored.size());
    const Bytes payload = stored.first(stored.size() - kCheckBytes);
    if (simd::crc32c(payload.data(), payload.size()) !=
        load<std::uint32_t>(payload.data() + payload.size())) {
      fail(ErrorCode::Checksum, "its CRC-32C does not hold");
    }
    stored = payload;
  }
  switch (coding_.packing) {
    case Packing::Blosc:
      if (!is_alone || out.size() < kLeastShared) return blosc::decode(stored, out);
      return decode_shared(blosc::Decoder(stored, out.size()), out);
    case Packing::Zstd:
      return decompress(Compressor::Zstd, stored, out);
    case Packing::Raw:
      break;
  }
  if (stored.size() != out.size()) {
    fail(ErrorCode::Corrupt, "%zu stored bytes, a tile has %zu", stored.size(), out.size());
  }
  std::memcpy(out.data(), stored.data(), out.size());
}

std::uint64_t TileCodec::scratch_bytes() const noexcept {
  if (coding_.packing == Packing::Raw) return 0;
  if (coding_.packing == Packing::Zstd) {
    const std::size_t context = coding_.level > 1 ? zstd_context_bytes(coding_.level, tile_bytes_) : 0;
    return tile_bytes_ + compress_bound(Compressor::Zstd, tile_bytes_) + context;
  }
  const blosc::Options options = blosc_options();
  return blosc::encode_bound(tile_bytes_, options) + blosc::scratch_bytes(tile_bytes_, options);
}

std::uint32_t check_of(std::span<const Bytes> parts) noexcept {
  std::uint32_t check = 0;
  for (const Bytes part : parts) check = simd::crc32c(part.data(), part.size(), check);
  return check;
}

}  // namespace cdd::tiles
