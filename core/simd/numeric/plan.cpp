#include "core/simd/numeric/plan.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/numeric/plan.cpp"
#include <hwy/foreach_target.h>

#include "core/simd/numeric/plan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

void ValueRange32(const uint32_t* values, size_t n, int64_t* low, int64_t* high) {
  ValueRange<int32_t>(values, n, low, high);
}
void ValueRange64(const uint64_t* values, size_t n, int64_t* low, int64_t* high) {
  ValueRange<int64_t>(values, n, low, high);
}
void FindIntervals32(const NumericIntervals& intervals, const uint32_t* values, size_t n, uint8_t* ids) {
  FindIntervals<int32_t>(intervals, values, n, ids);
}
void FindIntervals64(const NumericIntervals& intervals, const uint64_t* values, size_t n, uint8_t* ids) {
  FindIntervals<int64_t>(intervals, values, n, ids);
}
void CheapestCut(const int32_t (&before)[kMaxGroups], const int32_t (&cost)[kMaxGroups][kMaxGroups],
                 int32_t (&after)[kMaxGroups]) {
  CutCheapest(before, cost, after);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace cdd::simd {

HWY_EXPORT(ValueRange32);
HWY_EXPORT(ValueRange64);
HWY_EXPORT(FindIntervals32);
HWY_EXPORT(FindIntervals64);
HWY_EXPORT(CheapestCut);

void value_range32(const std::uint32_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept {
  HWY_DYNAMIC_DISPATCH(ValueRange32)(values, n, low, high);
}
void value_range64(const std::uint64_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept {
  HWY_DYNAMIC_DISPATCH(ValueRange64)(values, n, low, high);
}
void find_intervals32(const NumericIntervals& intervals, const std::uint32_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept {
  HWY_DYNAMIC_DISPATCH(FindIntervals32)(intervals, values, n, ids);
}
void find_intervals64(const NumericIntervals& intervals, const std::uint64_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept {
  HWY_DYNAMIC_DISPATCH(FindIntervals64)(intervals, values, n, ids);
}
void cheapest_cut(const std::int32_t (&before)[kMaxGroups],
                  const std::int32_t (&cost)[kMaxGroups][kMaxGroups],
                  std::int32_t (&after)[kMaxGroups]) noexcept {
  HWY_DYNAMIC_DISPATCH(CheapestCut)(before, cost, after);
}

namespace reference {
namespace {

template <class I, class U>
void value_range(const U* values, std::size_t n, std::int64_t* low, std::int64_t* high) noexcept {
  *low = *high = static_cast<I>(values[0]);
  for (std::size_t i = 1; i < n; ++i) {
    *low = std::min<std::int64_t>(*low, static_cast<I>(values[i]));
    *high = std::max<std::int64_t>(*high, static_cast<I>(values[i]));
  }
}

template <class I, class U>
void find_intervals(const NumericIntervals& intervals, const U* values, std::size_t n,
                    std::uint8_t* ids) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t v = static_cast<I>(values[i]);
    std::size_t k = intervals.n;
    while (k > 0 && v < intervals.lows[k - 1]) --k;
    const auto distance = [&] {
      return static_cast<std::uint64_t>(v) - static_cast<std::uint64_t>(intervals.lows[k - 1]);
    };
    ids[i] = k > 0 && distance() <= intervals.spans[k - 1] ? intervals.ids[k - 1] : kNoInterval;
  }
}

}  // namespace

void value_range32(const std::uint32_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept {
  value_range<std::int32_t>(values, n, low, high);
}
void value_range64(const std::uint64_t* values, std::size_t n, std::int64_t* low,
                   std::int64_t* high) noexcept {
  value_range<std::int64_t>(values, n, low, high);
}
void find_intervals32(const NumericIntervals& intervals, const std::uint32_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept {
  find_intervals<std::int32_t>(intervals, values, n, ids);
}
void find_intervals64(const NumericIntervals& intervals, const std::uint64_t* values, std::size_t n,
                      std::uint8_t* ids) noexcept {
  find_intervals<std::int64_t>(intervals, values, n, ids);
}
void cheapest_cut(const std::int32_t (&before)[kMaxGroups],
                  const std::int32_t (&cost)[kMaxGroups][kMaxGroups],
                  std::int32_t (&after)[kMaxGroups]) noexcept {
  for (std::size_t j = 0; j < kMaxGroups; ++j) {
    after[j] = before[0] + cost[0][j];
    for (std::size_t i = 1; i < kMaxGroups; ++i) after[j] = std::min(after[j], before[i] + cost[i][j]);
  }
}

}  // namespace reference
}  // namespace cdd::simd

#endif  // HWY_ONCE
