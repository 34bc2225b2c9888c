// Integers of the NUMERIC codec to items with Highway. See numeric.h; numeric.cpp dispatches.
#if defined(CDD_SIMD_NUMERIC_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_NUMERIC_CONVERT_INL_H_
#undef CDD_SIMD_NUMERIC_CONVERT_INL_H_
#else
#define CDD_SIMD_NUMERIC_CONVERT_INL_H_
#endif

#include <cstring>

#include <hwy/highway.h>

#include "core/simd/numeric/numeric-inl.h"
#include "core/simd/numeric/numeric.h"
#include "core/simd/numeric/reference.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <NumericItem kItem, class T>
struct ItemOf {
  using Type = T;
};
template <class T>
struct ItemOf<NumericItem::Bits8, T> {
  using Type = uint8_t;
};
template <class T>
struct ItemOf<NumericItem::Bits16, T> {
  using Type = uint16_t;
};
template <class T>
struct ItemOf<NumericItem::Ordered16, T> {
  using Type = uint16_t;
};

constexpr bool IsFloat(NumericItem item) { return item >= NumericItem::Float32Quotient; }
constexpr bool IsQuotient(NumericItem item) {
  return item == NumericItem::Float32Quotient || item == NumericItem::Float64Quotient;
}

#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR
template <NumericItem kItem, class D64, class V>
HWY_INLINE V Scaled(D64, V v, V scale) {
  if constexpr (IsQuotient(kItem)) return hn::Div(v, scale);
  return hn::Mul(v, scale);
}

// The bits of the floats for one vector of integers.
template <NumericItem kItem, class D>
HWY_INLINE hn::VFromD<D> Floats(D d, hn::VFromD<D> v, double scale) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const hn::RebindToFloat<D> df;
    const auto value = hn::ConvertTo(df, hn::BitCast(hn::RebindToSigned<D>(), v));
    return hn::BitCast(d, Scaled<kItem>(df, value, hn::Set(df, scale)));
  } else {
    const hn::Half<D> half;
    const hn::RebindToSigned<decltype(half)> half_i;
    const hn::RebindToFloat<decltype(half)> half_f;
    const hn::Rebind<double, decltype(half)> wide;
    const auto scale_v = hn::Set(wide, scale);
    const auto lower = hn::PromoteTo(wide, hn::BitCast(half_i, hn::LowerHalf(half, v)));
    const auto upper = hn::PromoteTo(wide, hn::BitCast(half_i, hn::UpperHalf(half, v)));
    const auto lower_f = hn::DemoteTo(half_f, Scaled<kItem>(wide, lower, scale_v));
    const auto upper_f = hn::DemoteTo(half_f, Scaled<kItem>(wide, upper, scale_v));
    return hn::BitCast(d, hn::Combine(hn::RebindToFloat<D>(), upper_f, lower_f));
  }
}
#endif

#if HWY_TARGET != HWY_SCALAR
template <NumericItem kItem, class D>
HWY_INLINE void StoreItems(D d, hn::VFromD<D> v, [[maybe_unused]] double scale,
                           typename ItemOf<kItem, hn::TFromD<D>>::Type* out) {
  using T = hn::TFromD<D>;
  using Item = typename ItemOf<kItem, T>::Type;
  const hn::Rebind<Item, D> narrow;
  if constexpr (kItem == NumericItem::Ordered32 || kItem == NumericItem::Ordered64) {
    const auto sign = hn::BroadcastSignBit(hn::BitCast(hn::RebindToSigned<D>(), v));
    hn::StoreU(hn::Xor(v, hn::ShiftRight<1>(hn::BitCast(d, sign))), d, out);
  } else if constexpr (kItem == NumericItem::Ordered16) {
    const auto bits = hn::TruncateTo(narrow, v);
    const auto sign = hn::BroadcastSignBit(hn::BitCast(hn::RebindToSigned<decltype(narrow)>(), bits));
    hn::StoreU(hn::Xor(bits, hn::ShiftRight<1>(hn::BitCast(narrow, sign))), narrow, out);
  } else if constexpr (sizeof(Item) < sizeof(T)) {
    hn::StoreU(hn::TruncateTo(narrow, v), narrow, out);
#if HWY_HAVE_FLOAT64
  } else if constexpr (IsFloat(kItem)) {
    hn::StoreU(Floats<kItem>(d, v, scale), d, out);
#endif
  } else {
    hn::StoreU(v, d, out);
  }
}
#endif

// Whole vectors to contiguous items; returns how many were done.
template <NumericItem kItem, class T>
HWY_INLINE size_t ConvertVectors(const NumericConversion& c, const T* values, size_t n,
                                 typename ItemOf<kItem, T>::Type* out) {
#if HWY_TARGET == HWY_SCALAR
  return 0;
#else
  if constexpr (IsFloat(kItem) && !HWY_HAVE_FLOAT64) return 0;
  const Lanes<T> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto step = hn::Set(d, static_cast<T>(c.step));
  const auto offset = hn::Set(d, static_cast<T>(c.offset));
  const bool plain = c.step == 1 && c.offset == 0;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    auto v = hn::LoadU(d, values + i);
    if (HWY_UNLIKELY(!plain)) v = hn::Add(hn::Mul(v, step), offset);
    StoreItems<kItem>(d, v, c.scale, out + i);
  }
  return i;
#endif
}

template <NumericItem kItem, class T>
HWY_INLINE void ConvertAs(const NumericConversion& c, const T* values, size_t n, std::byte* out,
                          size_t stride) {
  using Item = typename ItemOf<kItem, T>::Type;
  alignas(64) Item items[kNumericBlockValues];
  while (n != 0) {
    const size_t part = HWY_MIN(n, kNumericBlockValues);
    // The caller's array has no alignment to speak of; the kernels store unaligned.
    Item* const to = stride == 1 ? reinterpret_cast<Item*>(out) : items;
    const size_t done = ConvertVectors<kItem>(c, values, part, to);
    reference_convert<kItem>(c, values + done, part - done, reinterpret_cast<std::byte*>(to + done), 1);
    if (stride != 1) {
      for (size_t i = 0; i < part; ++i) std::memcpy(out + i * stride * sizeof(Item), items + i, sizeof(Item));
    }
    values += part;
    out += part * stride * sizeof(Item);
    n -= part;
  }
}

template <class T>
HWY_INLINE void Convert(const NumericConversion& c, const T* values, size_t n, std::byte* out,
                        size_t stride) {
  constexpr bool kWide = sizeof(T) == 8;
  switch (c.item) {
#define CDD_NUMERIC_ITEM(name, wide)                                                      \
  case NumericItem::name:                                                                 \
    if constexpr (kWide == wide) ConvertAs<NumericItem::name>(c, values, n, out, stride); \
    break;
    CDD_NUMERIC_ITEM(Bits8, false)
    CDD_NUMERIC_ITEM(Bits16, false)
    CDD_NUMERIC_ITEM(Bits32, false)
    CDD_NUMERIC_ITEM(Bits64, true)
    CDD_NUMERIC_ITEM(Ordered16, false)
    CDD_NUMERIC_ITEM(Ordered32, false)
    CDD_NUMERIC_ITEM(Ordered64, true)
    CDD_NUMERIC_ITEM(Float32Quotient, false)
    CDD_NUMERIC_ITEM(Float32Product, false)
    CDD_NUMERIC_ITEM(Float64Quotient, true)
    CDD_NUMERIC_ITEM(Float64Product, true)
#undef CDD_NUMERIC_ITEM
  }
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
