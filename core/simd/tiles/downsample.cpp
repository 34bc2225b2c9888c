#include "core/simd/tiles/downsample.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/tiles/downsample.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

#ifndef CDD_CORE_SIMD_TILES_DOWNSAMPLE_ONE_
#define CDD_CORE_SIMD_TILES_DOWNSAMPLE_ONE_
namespace cdd::simd {

// One block; T's items may lie anywhere.
template <class T>
inline T mean_of_block(const T* row0, const T* row1) noexcept {
  T items[4];
  std::memcpy(items, row0, 2 * sizeof(T));
  std::memcpy(items + 2, row1, 2 * sizeof(T));
  return static_cast<T>((std::uint32_t{items[0]} + items[1] + items[2] + items[3] + 2) >> 2);
}
template <>
inline float mean_of_block<float>(const float* row0, const float* row1) noexcept {
  float items[4];
  std::memcpy(items, row0, 2 * sizeof(float));
  std::memcpy(items + 2, row1, 2 * sizeof(float));
  return static_cast<float>(((double{items[0]} + items[1]) + (double{items[2]} + items[3])) * 0.25);
}

template <class T>
inline void mean_blocks(const T* row0, const T* row1, std::size_t first, std::size_t n, T* out) noexcept {
  for (std::size_t i = first; i < n; ++i) {
    const T mean = mean_of_block(row0 + 2 * i, row1 + 2 * i);
    std::memcpy(out + i, &mean, sizeof mean);
  }
}

}  // namespace cdd::simd
#endif  // one block, once

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Two neighbours of T share a lane of Wide: the sum of both, for every lane.
template <class T, class D>
HWY_INLINE hn::Vec<D> PairSums(D d, const T* row) {
  constexpr int kBits = static_cast<int>(8 * sizeof(T));
  const auto v = hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(row));
  const auto low = hn::And(v, hn::Set(d, static_cast<hn::TFromD<D>>((1u << kBits) - 1)));
  return hn::Add(low, hn::ShiftRight<kBits>(v));
}

template <class T, class Wide>
HWY_INLINE void MeanIntegers(const T* row0, const T* row1, std::size_t n, T* out) {
  const hn::ScalableTag<Wide> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const std::size_t lanes = hn::Lanes(d);
  const auto half = hn::Set(d, Wide{2});
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto sum = hn::Add(PairSums(d, row0 + 2 * i), PairSums(d, row1 + 2 * i));
    hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<2>(hn::Add(sum, half))), narrow, out + i);
  }
  mean_blocks(row0, row1, i, n, out);
}

// Sums of four 8-bit items fit 16 bits, of four 16-bit items 32.
void MeanBytes(const std::uint8_t* row0, const std::uint8_t* row1, std::size_t n, std::uint8_t* out) {
  MeanIntegers<std::uint8_t, std::uint16_t>(row0, row1, n, out);
}
void MeanWords(const std::uint16_t* row0, const std::uint16_t* row1, std::size_t n, std::uint16_t* out) {
  MeanIntegers<std::uint16_t, std::uint32_t>(row0, row1, n, out);
}

void MeanFloats(const float* row0, const float* row1, std::size_t n, float* out) {
  std::size_t i = 0;
#if HWY_HAVE_FLOAT64
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::RebindToUnsigned<decltype(d)> pairs;
  const hn::RebindToUnsigned<decltype(df)> bits;
  const std::size_t lanes = hn::Lanes(d);
  const auto row_sum = [&](const float* row) HWY_ATTR {
    const auto v = hn::LoadU(pairs, reinterpret_cast<const std::uint64_t*>(row));
    const auto even = hn::BitCast(df, hn::TruncateTo(bits, v));
    const auto odd = hn::BitCast(df, hn::TruncateTo(bits, hn::ShiftRight<32>(v)));
    return hn::Add(hn::PromoteTo(d, even), hn::PromoteTo(d, odd));
  };
  for (; i + lanes <= n; i += lanes) {
    const auto sum = hn::Add(row_sum(row0 + 2 * i), row_sum(row1 + 2 * i));
    hn::StoreU(hn::DemoteTo(df, hn::Mul(sum, hn::Set(d, 0.25))), df, out + i);
  }
#endif
  mean_blocks(row0, row1, i, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(MeanBytes);
HWY_EXPORT(MeanWords);
HWY_EXPORT(MeanFloats);

void mean_2x2(const std::uint8_t* row0, const std::uint8_t* row1, std::size_t n, std::uint8_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(MeanBytes)(row0, row1, n, out);
}
void mean_2x2(const std::uint16_t* row0, const std::uint16_t* row1, std::size_t n,
              std::uint16_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(MeanWords)(row0, row1, n, out);
}
void mean_2x2(const float* row0, const float* row1, std::size_t n, float* out) noexcept {
  HWY_DYNAMIC_DISPATCH(MeanFloats)(row0, row1, n, out);
}

namespace reference {

void mean_2x2(const std::uint8_t* row0, const std::uint8_t* row1, std::size_t n, std::uint8_t* out) noexcept {
  mean_blocks(row0, row1, 0, n, out);
}
void mean_2x2(const std::uint16_t* row0, const std::uint16_t* row1, std::size_t n,
              std::uint16_t* out) noexcept {
  mean_blocks(row0, row1, 0, n, out);
}
void mean_2x2(const float* row0, const float* row1, std::size_t n, float* out) noexcept {
  mean_blocks(row0, row1, 0, n, out);
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
