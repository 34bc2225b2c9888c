// NUMERIC, reading: the header of one stream and the walk over its blocks. Everything is checked against the
// payload here, so that kernels get only blocks that lie within it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/codec/numeric/format.h"

namespace cdd::numeric {

// `next_patch`, `next_block` and `next_byte` say how far they are taken.
struct Stream {
  simd::NumericConversion conversion;
  simd::NumericBins bins;
  Predictor predictor;
  bool has_bins;
  std::uint8_t exception_width;
  std::uint32_t first_item;  // of a row
  std::uint32_t reference;   // Stream, StreamPrevious
  std::uint64_t exception_base;
  std::size_t n_table;  // 0: the integers are no indices
  std::uint64_t table_first;
  PackedArray table_gaps;
  std::size_t table_at;     // in the decoder's tables
  PackedArray starts;       // what the predictor needs of the values before each segment
  PackedArray differences;  // Second
  PackedArray widths;       // of each block's values, or of its selectors
  PackedArray bases;        // without bins
  PackedArray sizes;        // with bins
  PackedArray exceptions;   // of each block
  std::size_t n_patches;
  PackedArray patch_positions;
  PackedArray patch_bits;
  Bytes data;
  std::size_t next_patch;
  std::size_t next_block;
  std::size_t next_byte;
};

// Takes the header and the data of stream number `self`. Throws Error{Corrupt}.
Stream take_stream(ByteReader& in, const Items& items, const Shape& shape, std::uint32_t self);

// The next block of a stream. Throws Error{Corrupt}.
simd::NumericBlock take_block(const Shape& shape, Stream& stream);

}  // namespace cdd::numeric
