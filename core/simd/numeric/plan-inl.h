// The encoder's kernels with Highway. See plan.h; plan.cpp dispatches.
#if defined(CDD_SIMD_NUMERIC_PLAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_NUMERIC_PLAN_INL_H_
#undef CDD_SIMD_NUMERIC_PLAN_INL_H_
#else
#define CDD_SIMD_NUMERIC_PLAN_INL_H_
#endif

#include <algorithm>

#include <hwy/highway.h>

#include "core/simd/numeric/plan.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class I, class T>
HWY_INLINE void ValueRange(const T* values, size_t n, int64_t* low, int64_t* high) {
  const hn::ScalableTag<I> d;
  const size_t lanes = hn::Lanes(d);
  const I* const v = reinterpret_cast<const I*>(values);
  I least = v[0];
  I most = v[0];
  size_t i = 0;
  if (n >= lanes) {
    auto lows = hn::LoadU(d, v);
    auto highs = lows;
    for (i = lanes; i + lanes <= n; i += lanes) {
      const auto some = hn::LoadU(d, v + i);
      lows = hn::Min(lows, some);
      highs = hn::Max(highs, some);
    }
    least = hn::GetLane(hn::MinOfLanes(d, lows));
    most = hn::GetLane(hn::MaxOfLanes(d, highs));
  }
  for (; i < n; ++i) {
    least = std::min(least, v[i]);
    most = std::max(most, v[i]);
  }
  *low = least;
  *high = most;
}

// I and U: signed and unsigned lanes of the values' size. `ids` of whole vectors go through a buffer, so that
// nothing is written behind them.
template <class I, class U>
HWY_INLINE void FindIntervals(const NumericIntervals& intervals, const U* values, size_t n, uint8_t* ids) {
  const hn::ScalableTag<I> d;
  const hn::ScalableTag<U> du;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kPiece = 256;
  HWY_ALIGN U found[kPiece];
  HWY_ALIGN U rest[hn::MaxLanes(d)];
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t count = std::min(kPiece, n - begin);
    for (size_t i = 0; i < count; i += lanes) {
      const U* from = values + begin + i;
      if (count - i < lanes) {
        std::fill(rest, rest + lanes, U{0});
        std::copy(from, from + (count - i), rest);
        from = rest;
      }
      const auto v = hn::LoadU(du, from);
      const auto as_signed = hn::BitCast(d, v);
      auto low = hn::Set(d, static_cast<I>(intervals.lows[0]));
      auto span = hn::Set(du, static_cast<U>(intervals.spans[0]));
      auto id = hn::Set(du, static_cast<U>(intervals.ids[0]));
      for (size_t k = 1; k < intervals.n; ++k) {
        const auto next = hn::Set(d, static_cast<I>(intervals.lows[k]));
        const auto above = hn::Ge(as_signed, next);
        const auto above_u = hn::RebindMask(du, above);
        low = hn::IfThenElse(above, next, low);
        span = hn::IfThenElse(above_u, hn::Set(du, static_cast<U>(intervals.spans[k])), span);
        id = hn::IfThenElse(above_u, hn::Set(du, static_cast<U>(intervals.ids[k])), id);
      }
      // Below the first interval the distance wraps around, but to where it may pass for one within.
      const auto within =
          hn::And(hn::Le(hn::Sub(v, hn::BitCast(du, low)), span), hn::RebindMask(du, hn::Ge(as_signed, low)));
      hn::Store(hn::IfThenElse(within, id, hn::Set(du, U{kNoInterval})), du, found + i);
    }
    for (size_t i = 0; i < count; ++i) ids[begin + i] = static_cast<uint8_t>(found[i]);
  }
}

HWY_INLINE void CutCheapest(const int32_t (&before)[kMaxGroups],
                            const int32_t (&cost)[kMaxGroups][kMaxGroups], int32_t (&after)[kMaxGroups]) {
  const hn::CappedTag<int32_t, kMaxGroups> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t j = 0; j < kMaxGroups; j += lanes) {
    auto least = hn::Add(hn::Set(d, before[0]), hn::LoadU(d, &cost[0][j]));
    for (size_t i = 1; i < kMaxGroups; ++i) {
      least = hn::Min(least, hn::Add(hn::Set(d, before[i]), hn::LoadU(d, &cost[i][j])));
    }
    hn::StoreU(least, d, &after[j]);
  }
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
