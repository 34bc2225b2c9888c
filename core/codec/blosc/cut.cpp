// How tiles are cut into blocks, and blocks into streams.
#include "core/codec/blosc/blocks.h"

namespace cdd::blosc {
namespace {

using zarr::BloscShuffle;

constexpr std::size_t kBlockBytes = 256 << 10;
// Others give LZ4 streams of 128 KB, up to blocks of 1 MB. Blocks that are cut equal may be a little shorter
// than wanted.
constexpr std::size_t kLz4StreamBytes = 192 << 10, kWideBlockBytes = 1536 << 10;
constexpr std::size_t kLongStreamBytes = 64 << 10, kWholeBlockBytes = 256 << 10;
constexpr std::size_t kSlowBlockBytes = 2 << 20;  // above level 1, where zstd is to find what it can

// What c-blosc has for LZ4.
constexpr std::size_t kPlainLz4Bytes = 1 << 20, kPlainLz4StreamBytes = 128 << 10;
constexpr std::size_t kPlainLz4Least = 64 << 10;

// Each stream of zstd has headers: several shorter ones take more than all their bytes as one.
constexpr std::size_t kLeastSplitZstd = 4096;

bool splits(std::size_t block, const Options& options, Layout layout) {
  // What is found in one byte of the items helps with the next.
  if (is_slow(options) || layout == Layout::Whole) return false;
  if (options.shuffle == BloscShuffle::None || options.item_bytes == 1) return false;
  return options.compressor == Compressor::Lz4 || block / options.item_bytes >= kLeastSplitZstd;
}

// As c-blosc does.
Blocks cut_plain(std::size_t bytes, const Options& options) {
  const std::size_t item = options.item_bytes;
  const bool is_lz4 = options.compressor == Compressor::Lz4;
  const std::size_t wide = std::clamp(kPlainLz4StreamBytes * item, kPlainLz4Least, kPlainLz4Bytes);
  const std::size_t zstd = is_slow(options) ? kSlowBlockBytes : kPlainZstdBytes;
  const std::size_t most = (is_lz4 ? wide : zstd) / item * item;
  return {bytes, std::min(bytes, most), item, is_lz4};
}

}  // namespace

Blocks cut(std::size_t bytes, const Options& options, Layout layout) {
  if (layout == Layout::Plain) return cut_plain(bytes, options);
  const std::size_t unit = 8 * options.item_bytes;
  std::size_t most = kBlockBytes;
  if (options.compressor == Compressor::Lz4) {
    const std::size_t wide = std::min(kLz4StreamBytes * options.item_bytes, kWideBlockBytes);
    const std::size_t least = options.item_bytes > 2 ? wide : kBlockBytes;
    const std::size_t count = std::max<std::size_t>(bytes / least, 1);
    most = ((bytes + count - 1) / count + unit - 1) / unit * unit;
  } else {
    const std::size_t stream = layout == Layout::Short ? kShortStreamBytes : kLongStreamBytes;
    most = is_slow(options) ? kSlowBlockBytes
           : layout == Layout::Whole
               ? kWholeBlockBytes
               : std::clamp(stream * options.item_bytes, 2 * kShortStreamBytes, kBlockBytes);
  }
  const std::size_t fewest = (bytes + most - 1) / most;
  const bool is_one = bytes <= most && (options.shuffle != BloscShuffle::Bit || bytes < unit);
  std::size_t block = is_one ? bytes : bytes / fewest / unit * unit;
  for (std::size_t n = fewest; n <= 2 * fewest; ++n) {
    if (bytes % n != 0 || bytes / n % unit != 0) continue;
    block = bytes / n;
    break;
  }
  return {bytes, block, options.item_bytes, splits(block, options, layout)};
}

}  // namespace cdd::blosc
