// Kernels of the NUMERIC codec: residuals of a segment -> integers -> items.
//
// Not a codec: no headers, no choosing. Integers are 32 bits wide for items of up to 4 bytes, else 64, and
// all arithmetic is modulo 2^32 or 2^64. What the fields mean is specified in docs/formats/codecs/numeric.md,
// "NUMERIC (type 6)". All functions are noexcept and, whatever the bytes are, stay within the memory their
// comments name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

inline constexpr std::size_t kNumericBlockValues = 256;
inline constexpr std::size_t kNumericMaxBins = 16;

// Intervals [base, base + 2^width) of residuals, the most frequent first.
struct NumericBins {
  std::uint64_t bases[kNumericMaxBins];
  alignas(16) std::uint8_t widths[kNumericMaxBins];
};

// Up to 256 residuals: n selectors of `selector_bits`, then at the next byte n offsets of the width the
// selected bin has (without selectors: n offsets of `width` from `base`), then at the next byte the
// exceptions: a position byte each, then their values packed with the width the segment names.
struct NumericBlock {
  const std::byte* data;
  std::size_t bytes;  // of all that
  std::uint64_t base;
  std::uint16_t n_values;
  std::uint16_t n_exceptions;
  std::uint8_t selector_bits;  // 0 to 4
  std::uint8_t width;
};

enum class NumericPredictor : std::uint8_t {
  None = 0,
  Previous = 1,  // the value before
  Row = 2,       // the value `distance` before
  Second = 3,    // the value before plus the difference before
  Stream = 4,    // the value `reference` points to
};

template <class T>
struct NumericSegment {
  const NumericBlock* blocks;
  std::size_t n_blocks;
  const NumericBins* bins;
  NumericPredictor predictor;
  std::uint8_t exception_width;
  T exception_base;
  std::size_t distance;  // Row
  T difference;          // Second
  const T* reference;    // Stream: one value for each of the segment's
  // The values wanted. Predictors that add up need those before, too; others leave them out, and in any case
  // those that come after.
  std::size_t first, end;
};

// Whether a value needs those before it in the segment.
constexpr bool adds_up(NumericPredictor predictor) noexcept {
  return predictor != NumericPredictor::None && predictor != NumericPredictor::Stream;
}

// Decodes values [first, end) of a segment to `values`, where each has its place. values[-1] (Previous,
// Second) or values[-distance .. 0) (Row) hold what came before. Writes any of n_blocks * 256 values and up
// to kBitpackSlackBytes more; reads up to kBitpackSlackBytes behind the blocks' data. False, with arbitrary
// values, if a block of these needs more bytes than it has.
bool decode_numeric32(const NumericSegment<std::uint32_t>& segment, std::uint32_t* values) noexcept;
bool decode_numeric64(const NumericSegment<std::uint64_t>& segment, std::uint64_t* values) noexcept;

enum class NumericItem : std::uint8_t {
  Bits8,  // the low bits of the integer
  Bits16,
  Bits32,
  Bits64,
  Ordered16,  // bits of a float in numerical order: negative ones have all but the sign inverted
  Ordered32,
  Ordered64,
  Float32Quotient,  // float32(double(integer) / scale)
  Float32Product,   // float32(double(integer) * scale)
  Float64Quotient,
  Float64Product,
};

// How integers become items: item = convert(integer * step + offset).
struct NumericConversion {
  NumericItem item;
  std::uint64_t step = 1;
  std::uint64_t offset = 0;
  double scale = 1;
};

// Writes n items, each `stride` items behind the one before, and nothing else.
void convert_numeric32(const NumericConversion& conversion, const std::uint32_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept;
void convert_numeric64(const NumericConversion& conversion, const std::uint64_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept;

// One value at a time, plainly: what the kernels are tested against.
namespace reference {
bool decode_numeric32(const NumericSegment<std::uint32_t>& segment, std::uint32_t* values) noexcept;
bool decode_numeric64(const NumericSegment<std::uint64_t>& segment, std::uint64_t* values) noexcept;
void convert_numeric32(const NumericConversion& conversion, const std::uint32_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept;
void convert_numeric64(const NumericConversion& conversion, const std::uint64_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept;
}  // namespace reference

}  // namespace cdd::simd
