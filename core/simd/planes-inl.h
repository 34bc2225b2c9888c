// Byte planes, one vector of items at a time; shared by the kernels that put something before or behind it.
#if defined(CDD_CORE_SIMD_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_CORE_SIMD_PLANES_INL_H_
#undef CDD_CORE_SIMD_PLANES_INL_H_
#else
#define CDD_CORE_SIMD_PLANES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Unaligned vectors of T in byte memory.
template <class D>
HWY_INLINE hn::Vec<D> LoadItems(D d, const std::byte* p) {
  return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(p));
}
template <class D>
HWY_INLINE void StoreItems(hn::Vec<D> v, D d, std::byte* p) {
  hn::StoreU(v, d, reinterpret_cast<hn::TFromD<D>*>(p));
}

// Byte kByte and the bytes above it of the Lanes(d) items whose lowest bytes start at `planes`, XORed with
// those of the `before` rows of `row_items` in front of them. Widening bytes and shifting them into place
// needs no shuffle across 128-bit blocks on any target.
template <std::size_t kByte, class D>
HWY_INLINE hn::Vec<D> JoinFrom(D d, const std::byte* planes, std::size_t stride, std::size_t before,
                               std::size_t row_items) {
  const hn::Rebind<std::uint8_t, D> d8;
  const std::byte* plane = planes + kByte * stride;
  auto bytes = LoadItems(d8, plane);
  for (std::size_t back = before; back != 0; --back) {
    bytes = hn::Xor(bytes, LoadItems(d8, plane - back * row_items));
  }
  const auto v = hn::ShiftLeft<static_cast<int>(8 * kByte)>(hn::PromoteTo(d, bytes));
  if constexpr (kByte + 1 < sizeof(hn::TFromD<D>)) {
    return hn::Or(v, JoinFrom<kByte + 1>(d, planes, stride, before, row_items));
  } else {
    return v;
  }
}
template <class D>
HWY_INLINE hn::Vec<D> JoinVector(D d, const std::byte* planes, std::size_t stride) {
  return JoinFrom<0>(d, planes, stride, 0, 0);
}

template <std::size_t kByte = 0, class D>
HWY_INLINE void SplitVector(D d, hn::Vec<D> v, std::byte* planes, std::size_t stride) {
  const hn::Rebind<std::uint8_t, D> d8;
  StoreItems(hn::TruncateTo(d8, hn::ShiftRight<static_cast<int>(8 * kByte)>(v)), d8, planes + kByte * stride);
  if constexpr (kByte + 1 < sizeof(hn::TFromD<D>)) SplitVector<kByte + 1>(d, v, planes, stride);
}

template <class T>
HWY_INLINE T JoinOne(const std::byte* planes, std::size_t stride) {
  T v = 0;
  for (std::size_t b = 0; b < sizeof(T); ++b) {
    v = static_cast<T>(v | static_cast<T>(static_cast<T>(planes[b * stride]) << 8 * b));
  }
  return v;
}
template <class T>
HWY_INLINE void SplitOne(T v, std::byte* planes, std::size_t stride) {
  for (std::size_t b = 0; b < sizeof(T); ++b) planes[b * stride] = static_cast<std::byte>(v >> 8 * b & 0xff);
}

template <class T>
void SplitItems(const std::byte* items, std::size_t n, std::byte* planes, std::size_t stride) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) SplitVector(d, LoadItems(d, items + i * sizeof(T)), planes + i, stride);
  for (; i < n; ++i) {
    T v;
    std::memcpy(&v, items + i * sizeof(T), sizeof v);
    SplitOne(v, planes + i, stride);
  }
}

template <class T>
void JoinItems(const std::byte* planes, std::size_t stride, std::size_t n, std::byte* items) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreItems(JoinVector(d, planes + i, stride), d, items + i * sizeof(T));
  for (; i < n; ++i) {
    const T v = JoinOne<T>(planes + i, stride);
    std::memcpy(items + i * sizeof(T), &v, sizeof v);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per target
