// What both sides of a frame of blosc know: its flags, and how it is cut into blocks and streams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/scratch.h"
#include "core/codec/blosc/frame.h"
#include "core/codec/blosc/stream_plan.h"

namespace cdd::blosc {

inline constexpr std::uint8_t kVersion = 2, kCodecVersion = 1;
inline constexpr std::uint8_t kByteShuffle = 1, kStored = 2, kBitShuffle = 4, kUnsplit = 16;
inline constexpr unsigned kLz4Format = 1, kZstdFormat = 4;

inline constexpr std::size_t kLeastStreamBytes = 128;  // shorter streams are not split

// The blocks of one frame. A last block that is shorter than the others is never split.
struct Blocks {
  std::size_t bytes, block, item;
  bool is_split;

  std::size_t count() const noexcept { return (bytes + block - 1) / block; }
  std::size_t size_of(std::size_t i) const noexcept { return std::min(block, bytes - i * block); }
  std::size_t streams_of(std::size_t i) const noexcept {
    return is_split && size_of(i) == block && item <= kMaxStreams && block / item >= kLeastStreamBytes ? item
                                                                                                       : 1;
  }
};

// Levels of zstd above 1: those that blosc's have, and one before them. One that takes longer is not always
// smaller.
inline constexpr int kSlowLevels[] = {2, 3, 5, 7, 9, 11, 13, 15, 22};

// Above level 1 of zstd.
inline bool is_slow(const Options& options) {
  return options.compressor == Compressor::Zstd && options.level > 1;
}
inline Options at_level_1(Options options) {
  options.level = std::min(options.level, 1);
  return options;
}

inline constexpr std::size_t kShortStreamBytes = 16 << 10;

// Equal blocks, since shorter ones are not split, and of a multiple of 8 items, since others have no bits to
// shuffle. Where the size cannot be cut so, a last one of few items is shorter.
Blocks cut(std::size_t bytes, const Options& options, Layout layout = Layout::Short);

// Whether blosc shuffles the bits of a block of this size at all.
inline bool has_bit_planes(std::size_t block, std::size_t item) {
  return block / item % 8 == 0 && block >= item;
}

// What a thread keeps of one block, shuffled and on the way there or back.
struct BlockBuffers {
  Scratch shuffled, bytes;
  Scratch tried;  // compressed, to see how many bytes it takes
};
BlockBuffers& block_buffers();

}  // namespace cdd::blosc
