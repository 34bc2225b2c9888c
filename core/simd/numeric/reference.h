// The kernels of numeric.h one value at a time, in plain C++: the oracle of their tests, and the conversion
// also their tail.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/simd/bitpack.h"
#include "core/simd/numeric/numeric.h"

namespace cdd::simd {

// Residual i of a block before exceptions; `bit` is where its offset starts and moves on.
template <class T>
T reference_residual(const NumericBlock& block, const NumericBins& bins, std::size_t i,
                     std::size_t* bit) noexcept {
  if (block.selector_bits == 0) {
    return static_cast<T>(block.base + reference::unpack_one(block.data, i, block.width));
  }
  const std::uint64_t bin = reference::unpack_one(block.data, i, block.selector_bits);
  const std::byte* const offsets = block.data + packed_bytes(block.n_values, block.selector_bits);
  std::uint64_t offset = 0;
  for (unsigned b = 0; b < bins.widths[bin]; ++b) offset |= reference::unpack_one(offsets, *bit + b, 1) << b;
  *bit += bins.widths[bin];
  return static_cast<T>(bins.bases[bin] + offset);
}

template <class T>
bool reference_block(const NumericSegment<T>& segment, const NumericBlock& block, T* out) noexcept {
  const unsigned leading = block.selector_bits == 0 ? block.width : block.selector_bits;
  std::size_t bytes = packed_bytes(block.n_values, leading);
  if (bytes > block.bytes) return false;
  std::size_t bits = 0;
  for (std::size_t i = 0; block.selector_bits != 0 && i < block.n_values; ++i) {
    bits += segment.bins->widths[reference::unpack_one(block.data, i, block.selector_bits)];
  }
  bytes += (bits + 7) / 8;
  if (bytes > block.bytes) return false;
  std::size_t bit = 0;
  for (std::size_t i = 0; i < block.n_values; ++i)
    out[i] = reference_residual<T>(block, *segment.bins, i, &bit);
  const std::byte* const positions = block.data + bytes;
  const std::size_t n = block.n_exceptions;
  if (n != 0 && bytes + n + packed_bytes(n, segment.exception_width) > block.bytes) return false;
  for (std::size_t i = 0; i < n; ++i) {
    out[std::to_integer<std::size_t>(positions[i])] = static_cast<T>(
        segment.exception_base + reference::unpack_one(positions + n, i, segment.exception_width));
  }
  return true;
}

template <class T>
bool reference_decode(const NumericSegment<T>& segment, T* values) noexcept {
  const std::size_t first = adds_up(segment.predictor) ? 0 : segment.first;
  std::size_t n = 0;
  for (std::size_t b = 0; b < segment.n_blocks; ++b) {
    const std::size_t begin = b * kNumericBlockValues;
    n = begin + segment.blocks[b].n_values;
    if (n <= first || begin >= segment.end) continue;
    if (!reference_block(segment, segment.blocks[b], values + begin)) return false;
  }
  T difference = segment.difference;
  for (std::size_t i = 0; i < n; ++i) {
    T* const v = values + i;
    switch (segment.predictor) {
      case NumericPredictor::None:
        break;
      case NumericPredictor::Previous:
        *v = static_cast<T>(*v + v[-1]);
        break;
      case NumericPredictor::Row:
        *v = static_cast<T>(*v + *(v - segment.distance));
        break;
      case NumericPredictor::Second:
        difference = static_cast<T>(difference + *v);
        *v = static_cast<T>(v[-1] + difference);
        break;
      case NumericPredictor::Stream:
        *v = static_cast<T>(*v + segment.reference[i]);
        break;
    }
  }
  return true;
}

template <NumericItem kItem, class T>
void reference_convert(const NumericConversion& c, const T* values, std::size_t n, std::byte* out,
                       std::size_t stride) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const T v = static_cast<T>(values[i] * static_cast<T>(c.step) + static_cast<T>(c.offset));
    const auto put = [&](auto item) { std::memcpy(out + i * stride * sizeof item, &item, sizeof item); };
    if constexpr (kItem == NumericItem::Bits8) put(static_cast<std::uint8_t>(v));
    if constexpr (kItem == NumericItem::Bits16) put(static_cast<std::uint16_t>(v));
    if constexpr (kItem == NumericItem::Bits32 || kItem == NumericItem::Bits64) put(v);
    if constexpr (kItem == NumericItem::Ordered16) {
      put(static_cast<std::uint16_t>((v & 0x8000) != 0 ? v ^ 0x7fff : v));
    }
    if constexpr (kItem == NumericItem::Ordered32 || kItem == NumericItem::Ordered64) {
      const T sign = static_cast<T>(T{1} << (sizeof(T) * 8 - 1));
      put(static_cast<T>((v & sign) != 0 ? v ^ static_cast<T>(~sign) : v));
    }
    if constexpr (kItem == NumericItem::Float32Quotient) {
      put(static_cast<float>(static_cast<double>(static_cast<std::int32_t>(v)) / c.scale));
    }
    if constexpr (kItem == NumericItem::Float32Product) {
      put(static_cast<float>(static_cast<double>(static_cast<std::int32_t>(v)) * c.scale));
    }
    if constexpr (kItem == NumericItem::Float64Quotient) {
      put(static_cast<double>(static_cast<std::int64_t>(v)) / c.scale);
    }
    if constexpr (kItem == NumericItem::Float64Product) {
      put(static_cast<double>(static_cast<std::int64_t>(v)) * c.scale);
    }
  }
}

template <class T>
void reference_convert(const NumericConversion& c, const T* values, std::size_t n, std::byte* out,
                       std::size_t stride) noexcept {
  switch (c.item) {
#define CDD_NUMERIC_ITEM(name) \
  case NumericItem::name:      \
    return reference_convert<NumericItem::name>(c, values, n, out, stride);
    CDD_NUMERIC_ITEM(Bits8)
    CDD_NUMERIC_ITEM(Bits16)
    CDD_NUMERIC_ITEM(Bits32)
    CDD_NUMERIC_ITEM(Bits64)
    CDD_NUMERIC_ITEM(Ordered16)
    CDD_NUMERIC_ITEM(Ordered32)
    CDD_NUMERIC_ITEM(Ordered64)
    CDD_NUMERIC_ITEM(Float32Quotient)
    CDD_NUMERIC_ITEM(Float32Product)
    CDD_NUMERIC_ITEM(Float64Quotient)
    CDD_NUMERIC_ITEM(Float64Product)
#undef CDD_NUMERIC_ITEM
  }
}

}  // namespace cdd::simd
