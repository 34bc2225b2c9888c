#include "core/simd/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/planes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "core/simd/planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

void SplitPlanes(const std::byte* items, std::size_t n, std::size_t item_bytes, std::byte* planes,
                 std::size_t stride) {
  switch (item_bytes) {
    case 2:
      return SplitItems<std::uint16_t>(items, n, planes, stride);
    case 4:
      return SplitItems<std::uint32_t>(items, n, planes, stride);
    case 8:
      return SplitItems<std::uint64_t>(items, n, planes, stride);
    default:
      if (n != 0) std::memcpy(planes, items, n);
  }
}

void JoinPlanes(const std::byte* planes, std::size_t stride, std::size_t n, std::size_t item_bytes,
                std::byte* items) {
  switch (item_bytes) {
    case 2:
      return JoinItems<std::uint16_t>(planes, stride, n, items);
    case 4:
      return JoinItems<std::uint32_t>(planes, stride, n, items);
    case 8:
      return JoinItems<std::uint64_t>(planes, stride, n, items);
    default:
      if (n != 0) std::memcpy(items, planes, n);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(SplitPlanes);
HWY_EXPORT(JoinPlanes);

void split_planes(const std::byte* items, std::size_t n, std::size_t item_bytes, std::byte* planes,
                  std::size_t stride) noexcept {
  HWY_DYNAMIC_DISPATCH(SplitPlanes)(items, n, item_bytes, planes, stride);
}

void join_planes(const std::byte* planes, std::size_t stride, std::size_t n, std::size_t item_bytes,
                 std::byte* items) noexcept {
  HWY_DYNAMIC_DISPATCH(JoinPlanes)(planes, stride, n, item_bytes, items);
}

namespace reference {

void split_planes(const std::byte* items, std::size_t n, std::size_t item_bytes, std::byte* planes,
                  std::size_t stride) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t b = 0; b < item_bytes; ++b) planes[b * stride + i] = items[i * item_bytes + b];
  }
}

void join_planes(const std::byte* planes, std::size_t stride, std::size_t n, std::size_t item_bytes,
                 std::byte* items) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t b = 0; b < item_bytes; ++b) items[i * item_bytes + b] = planes[b * stride + i];
  }
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
