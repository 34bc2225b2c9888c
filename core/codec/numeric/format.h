// The payload of NUMERIC: how the items of a chunk fall into streams, segments and blocks, and the header of
// a stream. Shared by encode.cpp and decode.cpp. Specification: docs/formats/codecs/numeric.md, "NUMERIC
// (type 6)".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/row_layout.h"
#include "core/simd/bitpack.h"
#include "core/simd/numeric/numeric.h"

namespace cdd::numeric {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::uint32_t kMaxStreams = 256;
inline constexpr unsigned kMaxSegmentLog2 = 31;
inline constexpr unsigned kMaxExponent = 22;  // the largest power of ten that a double holds exactly
inline constexpr std::size_t kBlockValues = simd::kNumericBlockValues;
inline constexpr std::size_t kMaxBins = simd::kNumericMaxBins;

enum class Representation : std::uint8_t {
  Integer = 0,   // the item's bits
  Quotient = 1,  // a float as integer / 10^exponent
  Product = 2,   // a float as integer * 10^-exponent
  Ordered = 3,   // a float's bits in numerical order
};

// Byte 1 of the payload: log2 of a segment's rows, and whether a byte for each stream's first item follows.
inline constexpr unsigned kHasOrder = 0x80;

// Byte 0 of a stream: the representation and what its header holds.
inline constexpr unsigned kRepresentationMask = 0x07;
inline constexpr unsigned kHasStep = 0x08;
inline constexpr unsigned kHasPatches = 0x10;
inline constexpr unsigned kHasTable = 0x20;

// Byte 1 of a stream: the predictor and the packing.
enum class Predictor : std::uint8_t {
  None = 0,
  Previous = 1,
  Row = 2,
  Second = 3,
  Stream = 4,
  StreamPrevious = 5
};
inline constexpr unsigned kPredictorMask = 0x07;
inline constexpr unsigned kHasBins = 0x08;
inline constexpr unsigned kHasExceptions = 0x10;

inline constexpr double kPowersOfTen[kMaxExponent + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
inline constexpr double kInversePowersOfTen[kMaxExponent + 1] = {
    1e-0,  1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,  1e-8,  1e-9,  1e-10, 1e-11,
    1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22};

// What an item is to this codec: a complex number is two floats, a time an integer.
enum class ItemClass : std::uint8_t { Int, Float16, Float32, Float64 };

struct Items {
  ItemClass item_class;
  bool is_signed;
  std::uint8_t bytes;     // of one item
  std::uint32_t per_row;  // items of one row
};

inline Items items_of(const RowLayout& layout) noexcept {
  const auto bytes = static_cast<std::uint8_t>(layout.item_bytes());
  switch (layout.dtype().kind()) {
    case Kind::Float16:
    case Kind::BFloat16:
      return {ItemClass::Float16, true, bytes, layout.row_items()};
    case Kind::Float32:
      return {ItemClass::Float32, true, bytes, layout.row_items()};
    case Kind::Float64:
      return {ItemClass::Float64, true, bytes, layout.row_items()};
    case Kind::Complex64:
      return {ItemClass::Float32, true, 4, 2 * layout.row_items()};
    case Kind::Complex128:
      return {ItemClass::Float64, true, 8, 2 * layout.row_items()};
    case Kind::Bool:
    case Kind::UInt8:
    case Kind::UInt16:
    case Kind::UInt32:
    case Kind::UInt64:
      return {ItemClass::Int, false, bytes, layout.row_items()};
    default:
      return {ItemClass::Int, true, bytes, layout.row_items()};
  }
}

// Stream s of S holds items s, s + S, s + 2 S, ... of each row: `width` values a row. A segment is
// 2^segment_log2 rows, the last one what is left; blocks of 256 values start anew in each segment.
struct Shape {
  std::uint32_t n_rows;
  std::uint32_t streams;
  std::uint32_t width;
  std::uint32_t segment_rows;
  std::uint32_t segments;
  std::size_t segment_blocks;  // of every segment but the last
  std::size_t blocks;

  Shape(const Items& items, std::uint32_t rows, std::uint32_t n_streams, unsigned segment_log2) noexcept
      : n_rows(rows), streams(n_streams), width(items.per_row / n_streams) {
    segment_rows =
        static_cast<std::uint32_t>(std::min(std::uint64_t{1} << segment_log2, std::uint64_t{rows}));
    segments = static_cast<std::uint32_t>((std::uint64_t{rows} + segment_rows - 1) / segment_rows);
    segment_blocks = blocks_of(std::size_t{segment_rows} * width);
    blocks = (segments - 1) * segment_blocks + blocks_of(values_of(segments - 1));
  }

  static std::size_t blocks_of(std::size_t values) noexcept {
    return (values + kBlockValues - 1) / kBlockValues;
  }
  std::size_t values() const noexcept { return std::size_t{n_rows} * width; }
  std::size_t first_value(std::size_t segment) const noexcept { return segment * segment_rows * width; }
  std::size_t values_of(std::size_t segment) const noexcept {
    return std::min(std::size_t{segment_rows} * width, values() - first_value(segment));
  }
  std::size_t block_values(std::size_t block) const noexcept {
    const std::size_t segment = block / segment_blocks;
    return std::min(kBlockValues, values_of(segment) - block % segment_blocks * kBlockValues);
  }
};

// Unsigned varints are LEB128, signed ones zigzag first.
inline std::uint64_t take_varint(ByteReader& in) {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = in.take<std::uint8_t>();
    v |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return v;
  }
  fail(ErrorCode::Corrupt, "numeric payload has a varint of more than 64 bits");
}
inline std::uint64_t zigzag(std::uint64_t v) noexcept { return v << 1 ^ (0 - (v >> 63)); }
inline std::uint64_t unzigzag(std::uint64_t v) noexcept { return v >> 1 ^ (0 - (v & 1)); }

// `count` integers, base + a packed offset each. One value alone is its base: no width byte, no bits.
struct PackedArray {
  const std::byte* bits = nullptr;
  std::uint64_t base = 0;
  unsigned width = 0;

  static PackedArray take(ByteReader& in, std::size_t count) {
    PackedArray a;
    if (count == 0) return a;
    if (count > 1) a.width = in.take<std::uint8_t>();
    if (a.width > 64) fail(ErrorCode::Corrupt, "numeric payload packs integers of %u bits", a.width);
    a.base = unzigzag(take_varint(in));
    if (a.width != 0 && count > std::uint64_t{in.left()} * 8)
      fail(ErrorCode::Corrupt, "numeric payload ends in a packed array");
    a.bits = in.take(simd::packed_bytes(count, a.width)).data();
    return a;
  }
  std::uint64_t operator[](std::size_t i) const noexcept { return base + simd::unpack_one(bits, i, width); }
};

}  // namespace cdd::numeric
