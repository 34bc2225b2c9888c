// Frames of blosc 1, by our own zstd and LZ4: a header of 16 bytes, where each block starts, and the blocks
// as one or several streams. Every reader of blosc takes them; read are those of zstd and LZ4 that others
// wrote.
//
// Blocks are compressed alone, after a shuffle of their bytes or bits; their bytes may lie in several places.
// Decoding is total: any bytes give an error or exactly the bytes asked for.
#pragma once

#include <cstddef>
#include <span>

#include "core/base/bytes.h"
#include "core/codec/compressor.h"
#include "core/format/zarr/array_metadata.h"

namespace cdd::blosc {

inline constexpr std::size_t kHeaderBytes = 16;

struct Options {
  Compressor compressor = Compressor::Zstd;
  int level = 1;  // as compress() has it
  zarr::BloscShuffle shuffle = zarr::BloscShuffle::Byte;
  std::size_t item_bytes = 1;  // 1 to 16
  // Streams of which a sample shrinks by less than 9 % are stored as they are: the noise of a sensor takes
  // most of the compressor's time and gives little.
  bool skips_noise = false;
};

// Most bytes that encode writes for `bytes` bytes of content, its working room included.
std::size_t encode_bound(std::size_t bytes, const Options& options);

// Encodes the `parts`, one after the other and `bytes` in all (over 0, below 2^31 - 64 KiB, a multiple of the
// item), into `out` of encode_bound bytes; returns the size, at most bytes + kHeaderBytes.
std::size_t encode(std::span<const Bytes> parts, std::size_t bytes, const Options& options, MutableBytes out);

// Bytes that this thread keeps for encode() or decode() of frames of this content.
std::size_t scratch_bytes(std::size_t bytes, const Options& options);

// Decodes exactly out.size() bytes. Error{Corrupt} for damage, Error{Unsupported} for other compressors.
void decode(Bytes frame, MutableBytes out);

// The same by blocks, in any order, each by any thread.
class Decoder {
 public:
  // Of a frame that holds `bytes`. Throws as decode() does.
  Decoder(Bytes frame, std::size_t bytes);
  std::size_t blocks() const noexcept { return (bytes_ + block_ - 1) / block_; }
  // Of `out`, which is for the whole content, the part that is this block.
  void decode(std::size_t block, MutableBytes out) const;

 private:
  Bytes frame_;
  unsigned flags_ = 0;
  std::size_t item_ = 0, bytes_, block_ = 1;
  Compressor compressor_ = Compressor::None;
};

}  // namespace cdd::blosc
