#include "core/codec/numeric/stream.h"

#include <algorithm>

namespace cdd::numeric {
namespace {

simd::NumericItem item_of(const Items& items, Representation representation) {
  using simd::NumericItem;
  const bool wide = items.bytes == 8;
  switch (representation) {
    case Representation::Integer:
      return items.bytes == 1   ? NumericItem::Bits8
             : items.bytes == 2 ? NumericItem::Bits16
             : wide             ? NumericItem::Bits64
                                : NumericItem::Bits32;
    case Representation::Ordered:
      if (items.item_class == ItemClass::Int) break;
      return items.bytes == 2 ? NumericItem::Ordered16
             : wide           ? NumericItem::Ordered64
                              : NumericItem::Ordered32;
    case Representation::Quotient:
      if (items.item_class != ItemClass::Float32 && items.item_class != ItemClass::Float64) break;
      return wide ? NumericItem::Float64Quotient : NumericItem::Float32Quotient;
    case Representation::Product:
      if (items.item_class != ItemClass::Float32 && items.item_class != ItemClass::Float64) break;
      return wide ? NumericItem::Float64Product : NumericItem::Float32Product;
  }
  fail(ErrorCode::Corrupt, "numeric representation %u does not suit the dtype",
       static_cast<unsigned>(representation));
}

void take_representation(ByteReader& in, const Items& items, const Shape& shape, unsigned bits,
                         Stream* stream) {
  const auto representation = static_cast<Representation>(bits & kRepresentationMask);
  stream->conversion = {item_of(items, representation)};
  if (representation == Representation::Quotient || representation == Representation::Product) {
    const unsigned exponent = in.take<std::uint8_t>();
    if (exponent > kMaxExponent)
      fail(ErrorCode::Corrupt, "numeric exponent %u, at most %u", exponent, kMaxExponent);
    stream->conversion.scale =
        representation == Representation::Quotient ? kPowersOfTen[exponent] : kInversePowersOfTen[exponent];
  }
  if ((bits & kHasStep) != 0) {
    stream->conversion.step = take_varint(in);
    stream->conversion.offset = unzigzag(take_varint(in));
  }
  if ((bits & kHasTable) != 0) {
    const std::uint64_t n = take_varint(in);
    if (n == 0 || n > shape.values()) fail(ErrorCode::Corrupt, "numeric table of more entries than values");
    stream->n_table = static_cast<std::size_t>(n);
    stream->table_first = unzigzag(take_varint(in));
    stream->table_gaps = PackedArray::take(in, stream->n_table - 1);
  }
}

void take_predictor(ByteReader& in, const Shape& shape, std::uint32_t self, unsigned bits, Stream* stream) {
  stream->predictor = static_cast<Predictor>(bits & kPredictorMask);
  switch (stream->predictor) {
    case Predictor::None:
      return;
    case Predictor::Previous:
      stream->starts = PackedArray::take(in, shape.segments);
      return;
    case Predictor::Row:
      stream->starts = PackedArray::take(in, std::size_t{shape.segments} * shape.width);
      return;
    case Predictor::Second:
      stream->starts = PackedArray::take(in, shape.segments);
      stream->differences = PackedArray::take(in, shape.segments);
      return;
    case Predictor::Stream:
    case Predictor::StreamPrevious:
      stream->reference = in.take<std::uint8_t>();
      if (stream->reference >= self) {
        fail(ErrorCode::Corrupt, "numeric stream %u refers to stream %u", self, stream->reference);
      }
      if (stream->predictor == Predictor::StreamPrevious)
        stream->starts = PackedArray::take(in, shape.segments);
      return;
  }
  fail(ErrorCode::Corrupt, "numeric predictor %u is not known", bits & kPredictorMask);
}

void take_bins(ByteReader& in, Stream* stream) {
  const unsigned n = in.take<std::uint8_t>();
  if (n == 0 || n > kMaxBins) fail(ErrorCode::Corrupt, "numeric stream of %u bins", n);
  for (unsigned b = 0; b < n; ++b) {
    stream->bins.bases[b] = unzigzag(take_varint(in));
    stream->bins.widths[b] = in.take<std::uint8_t>();
    if (stream->bins.widths[b] > 64)
      fail(ErrorCode::Corrupt, "numeric bin of %u bits", unsigned{stream->bins.widths[b]});
  }
}

}  // namespace

Stream take_stream(ByteReader& in, const Items& items, const Shape& shape, std::uint32_t self) {
  Stream s{};
  const unsigned first = in.take<std::uint8_t>();
  const unsigned second = in.take<std::uint8_t>();
  if ((first & ~(kRepresentationMask | kHasStep | kHasPatches | kHasTable)) != 0 ||
      (second & ~(kPredictorMask | kHasBins | kHasExceptions)) != 0) {
    fail(ErrorCode::Corrupt, "numeric stream has unknown bits (0x%02x 0x%02x)", first, second);
  }
  take_representation(in, items, shape, first, &s);
  take_predictor(in, shape, self, second, &s);
  s.has_bins = (second & kHasBins) != 0;
  if (s.has_bins) take_bins(in, &s);
  s.widths = PackedArray::take(in, shape.blocks);
  (s.has_bins ? s.sizes : s.bases) = PackedArray::take(in, shape.blocks);
  if ((second & kHasExceptions) != 0) {
    s.exceptions = PackedArray::take(in, shape.blocks);
    s.exception_width = in.take<std::uint8_t>();
    if (s.exception_width > 64)
      fail(ErrorCode::Corrupt, "numeric exceptions of %u bits", unsigned{s.exception_width});
    s.exception_base = unzigzag(take_varint(in));
  }
  if ((first & kHasPatches) != 0) {
    s.n_patches = static_cast<std::size_t>(std::min<std::uint64_t>(take_varint(in), shape.values()));
    s.patch_positions = PackedArray::take(in, s.n_patches);
    s.patch_bits = PackedArray::take(in, s.n_patches);
  }
  s.data = in.take(take_varint(in));
  return s;
}

simd::NumericBlock take_block(const Shape& shape, Stream& s) {
  const std::size_t b = s.next_block++;
  simd::NumericBlock block{};
  block.n_values = static_cast<std::uint16_t>(shape.block_values(b));
  const std::uint64_t exceptions = s.exceptions[b];
  const std::uint64_t width = s.widths[b];
  if (exceptions > kBlockValues || width > (s.has_bins ? 4u : 64u)) {
    fail(ErrorCode::Corrupt, "numeric block %zu has impossible sizes", b);
  }
  block.n_exceptions = static_cast<std::uint16_t>(exceptions);
  std::uint64_t bytes = 0;
  if (s.has_bins) {
    block.selector_bits = static_cast<std::uint8_t>(width);
    block.width = s.bins.widths[0];
    block.base = s.bins.bases[0];
    bytes = s.sizes[b];
  } else {
    block.width = static_cast<std::uint8_t>(width);
    block.base = s.bases[b];
    bytes = simd::packed_bytes(block.n_values, block.width) + exceptions +
            simd::packed_bytes(static_cast<std::size_t>(exceptions), s.exception_width);
  }
  if (bytes > s.data.size() - s.next_byte)
    fail(ErrorCode::Corrupt, "numeric block %zu reaches behind its stream", b);
  block.bytes = static_cast<std::size_t>(bytes);
  block.data = s.data.data() + s.next_byte;
  s.next_byte += block.bytes;
  return block;
}

}  // namespace cdd::numeric
