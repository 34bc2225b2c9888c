// Segments of the NUMERIC codec with Highway: unpack, patch, integrate. See numeric.h; numeric.cpp
// dispatches.
#if defined(CDD_SIMD_NUMERIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_NUMERIC_INL_H_
#undef CDD_SIMD_NUMERIC_INL_H_
#else
#define CDD_SIMD_NUMERIC_INL_H_
#endif

#include <cstring>

#include <hwy/highway.h>

#include "core/simd/bitpack-inl.h"
#include "core/simd/numeric/numeric.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 16-byte vectors everywhere, wider ones on x86, where lane slides across blocks are one instruction.
#if HWY_TARGET == HWY_SCALAR
template <class T>
using Lanes = hn::FixedTag<T, 1>;
#elif HWY_TARGET <= HWY_AVX3
template <class T>
using Lanes = hn::FixedTag<T, 64 / sizeof(T)>;
#elif HWY_TARGET <= HWY_AVX2
template <class T>
using Lanes = hn::FixedTag<T, 32 / sizeof(T)>;
#else
template <class T>
using Lanes = hn::FixedTag<T, 16 / sizeof(T)>;
#endif

// Lane i becomes the sum of lanes 0 to i.
template <class D, class V>
HWY_INLINE V SumBefore(D d, V v) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes > 1) v = hn::Add(v, hn::Slide1Up(d, v));
  if constexpr (kLanes > 2) v = hn::Add(v, hn::SlideUpLanes(d, v, 2));
  if constexpr (kLanes > 4) v = hn::Add(v, hn::SlideUpLanes(d, v, 4));
  if constexpr (kLanes > 8) v = hn::Add(v, hn::SlideUpLanes(d, v, 8));
  return v;
}

// values[i] += values[i - 1], from values[-1] = start on; returns the last. Rounds n up to whole vectors.
template <class T>
HWY_INLINE T PrefixSum(T* values, size_t n, T start) {
  const Lanes<T> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  auto carry = hn::Set(d, start);
  for (size_t i = 0; i < n; i += kLanes) {
    const auto sum = SumBefore(d, hn::LoadU(d, values + i));
    hn::StoreU(hn::Add(sum, carry), d, values + i);
    // Off the critical path: only this addition waits for the vector before.
    carry = hn::Add(carry, hn::BroadcastLane<kLanes - 1>(sum));
  }
  return hn::GetLane(carry);
}

// out[i] = table[indices[i]], indices below 16. Rounds n up to whole vectors; what lies behind n may be
// anything.
HWY_INLINE void LookUpBytes(const uint8_t* table, const uint32_t* indices, size_t n, uint32_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (size_t i = 0; i < n; ++i) out[i] = table[indices[i]];
#else
  const Lanes<uint32_t> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const auto entries = hn::LoadDup128(d8, table);
  for (size_t i = 0; i < n; i += hn::MaxLanes(d)) {
    // The upper three bytes of an index look up entry 0.
    const auto found = hn::TableLookupBytes(entries, hn::BitCast(d8, hn::LoadU(d, indices + i)));
    hn::StoreU(hn::And(hn::BitCast(d, found), hn::Set(d, 0xffu)), d, out + i);
  }
#endif
}

// Values of a block, [first, last).
struct BlockPart {
  size_t first, last;
};

// Some offsets of one block with selectors; false if they end behind `end`, which the caller has checked to
// lie at or behind the selectors. `end` comes back as the end of all offsets.
template <class T>
HWY_INLINE bool UnpackBins(const NumericBlock& block, const NumericBins& bins, const BlockPart& part,
                           const uint8_t** end, T* HWY_RESTRICT out) {
  const auto* const selectors = reinterpret_cast<const uint8_t*>(block.data);
  const uint8_t* const offsets = selectors + packed_bytes(block.n_values, block.selector_bits);
  alignas(64) uint32_t selected[kNumericBlockValues + 64];
  alignas(64) uint32_t ends[kNumericBlockValues + 64];
  Unpack<uint32_t>(selectors, block.n_values, block.selector_bits, 0u, selected);
  LookUpBytes(bins.widths, selected, block.n_values, ends);
  PrefixSum<uint32_t>(ends, block.n_values, 0u);
  const size_t bits = block.n_values == 0 ? 0 : ends[block.n_values - 1];
  if ((bits + 7) / 8 > static_cast<size_t>(*end - offsets)) return false;
  *end = offsets + (bits + 7) / 8;

  uint64_t masks[kNumericMaxBins];
  bool narrow = true;
  for (size_t b = 0; b < size_t{1} << block.selector_bits; ++b) {
    masks[b] = bins.widths[b] == 0 ? 0 : ~uint64_t{0} >> (64 - bins.widths[b]);
    narrow &= bins.widths[b] <= 57;
  }
  size_t bit = part.first == 0 ? 0 : ends[part.first - 1];
  if (narrow) {
    for (size_t i = part.first; i < part.last; ++i) {
      uint64_t v;
      std::memcpy(&v, offsets + bit / 8, sizeof v);
      const uint32_t b = selected[i];
      out[i] = static_cast<T>(bins.bases[b] + ((v >> bit % 8) & masks[b]));
      bit = ends[i];
    }
    return true;
  }
  for (size_t i = part.first; i < part.last; ++i) {
    const uint32_t b = selected[i];
    const auto* const bytes = reinterpret_cast<const std::byte*>(offsets + bit / 8);
    const unsigned shift = static_cast<unsigned>(bit % 8);
    uint64_t v;
    std::memcpy(&v, bytes, sizeof v);
    v >>= shift;
    if (shift + bins.widths[b] > 64) v |= std::to_integer<uint64_t>(bytes[8]) << (64 - shift);
    out[i] = static_cast<T>(bins.bases[b] + (v & masks[b]));
    bit = ends[i];
  }
  return true;
}

// part.first is a multiple of 8: the value begins on a byte, whatever its width.
template <class T>
HWY_INLINE bool UnpackBlock(const NumericSegment<T>& segment, const NumericBlock& block,
                            const BlockPart& part, T* HWY_RESTRICT out) {
  const auto* const data = reinterpret_cast<const uint8_t*>(block.data);
  const uint8_t* const block_end = data + block.bytes;
  const unsigned leading = block.selector_bits == 0 ? block.width : block.selector_bits;
  const size_t leading_bytes = packed_bytes(block.n_values, leading);
  if (leading_bytes > block.bytes) return false;
  const uint8_t* exceptions = data + leading_bytes;
  if (block.selector_bits == 0) {
    Unpack<T>(data + packed_bytes(part.first, block.width), part.last - part.first, block.width,
              static_cast<T>(block.base), out + part.first);
  } else {
    exceptions = block_end;
    if (!UnpackBins(block, *segment.bins, part, &exceptions, out)) return false;
  }
  const size_t n = block.n_exceptions;
  if (n == 0) return true;
  if (n + packed_bytes(n, segment.exception_width) > static_cast<size_t>(block_end - exceptions))
    return false;
  const auto* const values = reinterpret_cast<const std::byte*>(exceptions + n);
  for (size_t i = 0; i < n; ++i) {
    out[exceptions[i]] =
        static_cast<T>(segment.exception_base + unpack_one(values, i, segment.exception_width));
  }
  return true;
}

// values[i] += before[i]
template <class T>
HWY_INLINE void AddInto(T* values, const T* before, size_t n) {
  const Lanes<T> d;
  for (size_t i = 0; i < n; i += hn::MaxLanes(d)) {
    hn::StoreU(hn::Add(hn::LoadU(d, values + i), hn::LoadU(d, before + i)), d, values + i);
  }
}

template <class T>
HWY_INLINE bool DecodeSegment(const NumericSegment<T>& segment, T* values) {
  const size_t first = adds_up(segment.predictor) ? 0 : segment.first / 8 * 8;
  size_t n = 0;
  for (size_t b = first / kNumericBlockValues; b < segment.n_blocks; ++b) {
    const size_t begin = b * kNumericBlockValues;
    if (begin >= segment.end) break;
    const NumericBlock& block = segment.blocks[b];
    const BlockPart part{first - HWY_MIN(first, begin), HWY_MIN(segment.end - begin, size_t{block.n_values})};
    if (part.first >= part.last) continue;
    if (!UnpackBlock(segment, block, part, values + begin)) return false;
    n = begin + part.last;
  }
  switch (segment.predictor) {
    case NumericPredictor::None:
      break;
    case NumericPredictor::Previous:
      PrefixSum(values, n, values[-1]);
      break;
    case NumericPredictor::Row:
      if (segment.distance >= hn::MaxLanes(Lanes<T>())) {
        AddInto(values, values - segment.distance, n);
      } else {
        for (size_t i = 0; i < n; ++i)
          values[i] = static_cast<T>(values[i] + *(values + i - segment.distance));
      }
      break;
    case NumericPredictor::Second: {
      PrefixSum(values, n, segment.difference);
      PrefixSum(values, n, values[-1]);
      break;
    }
    case NumericPredictor::Stream:
      if (first < n) AddInto(values + first, segment.reference + first, n - first);
      break;
  }
  return true;
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
