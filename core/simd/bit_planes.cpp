#include "core/simd/bit_planes.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/bit_planes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bytes i to i + 7 and the byte of each of their eight planes, without vectors.
HWY_INLINE void SplitEight(const std::byte* bytes, std::byte* planes, std::size_t stride) {
  for (std::size_t k = 0; k < 8; ++k) {
    unsigned plane = 0;
    for (std::size_t i = 0; i < 8; ++i) plane |= (static_cast<unsigned>(bytes[i]) >> k & 1) << i;
    planes[k * stride] = static_cast<std::byte>(plane);
  }
}
HWY_INLINE void JoinEight(const std::byte* planes, std::size_t stride, std::byte* bytes) {
  for (std::size_t i = 0; i < 8; ++i) {
    unsigned byte = 0;
    for (std::size_t k = 0; k < 8; ++k) byte |= (static_cast<unsigned>(planes[k * stride]) >> i & 1) << k;
    bytes[i] = static_cast<std::byte>(byte);
  }
}

#if HWY_TARGET != HWY_SCALAR
constexpr std::size_t kMaskBytes = 8;  // of 64 lanes, the most that the tag below has

void SplitBits(const std::byte* bytes, std::size_t n, std::byte* planes) {
  const hn::CappedTag<std::int8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t stride = n / 8;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto v = hn::LoadU(d, reinterpret_cast<const std::int8_t*>(bytes + i));
    for (std::size_t k = 8; k-- > 0; v = hn::Add(v, v)) {
      std::uint8_t bits[kMaskBytes];
      hn::StoreMaskBits(d, hn::IsNegative(v), bits);
      std::memcpy(planes + k * stride + i / 8, bits, lanes / 8);
    }
  }
  for (; i < n; i += 8) SplitEight(bytes + i, planes + i / 8, stride);
}

void JoinBits(const std::byte* planes, std::size_t n, std::byte* bytes) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t stride = n / 8;
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto v = hn::Zero(d);
    for (std::size_t k = 0; k < 8; ++k) {
      std::uint8_t bits[kMaskBytes] = {};
      std::memcpy(bits, planes + k * stride + i / 8, lanes / 8);
      const auto bit = hn::Set(d, static_cast<std::uint8_t>(1u << k));
      v = hn::Or(v, hn::IfThenElseZero(hn::LoadMaskBits(d, bits), bit));
    }
    hn::StoreU(v, d, reinterpret_cast<std::uint8_t*>(bytes + i));
  }
  for (; i < n; i += 8) JoinEight(planes + i / 8, stride, bytes + i);
}
#else
void SplitBits(const std::byte* bytes, std::size_t n, std::byte* planes) {
  for (std::size_t i = 0; i < n; i += 8) SplitEight(bytes + i, planes + i / 8, n / 8);
}
void JoinBits(const std::byte* planes, std::size_t n, std::byte* bytes) {
  for (std::size_t i = 0; i < n; i += 8) JoinEight(planes + i / 8, n / 8, bytes + i);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(SplitBits);
HWY_EXPORT(JoinBits);

void split_bits(const std::byte* bytes, std::size_t n, std::byte* planes) noexcept {
  HWY_DYNAMIC_DISPATCH(SplitBits)(bytes, n, planes);
}
void join_bits(const std::byte* planes, std::size_t n, std::byte* bytes) noexcept {
  HWY_DYNAMIC_DISPATCH(JoinBits)(planes, n, bytes);
}

namespace reference {

void split_bits(const std::byte* bytes, std::size_t n, std::byte* planes) noexcept {
  std::fill_n(planes, n, std::byte{0});
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < 8; ++k) {
      const unsigned bit = static_cast<unsigned>(bytes[i]) >> k & 1;
      planes[k * (n / 8) + i / 8] |= static_cast<std::byte>(bit << i % 8);
    }
  }
}

void join_bits(const std::byte* planes, std::size_t n, std::byte* bytes) noexcept {
  std::fill_n(bytes, n, std::byte{0});
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < 8; ++k) {
      const unsigned bit = static_cast<unsigned>(planes[k * (n / 8) + i / 8]) >> i % 8 & 1;
      bytes[i] |= static_cast<std::byte>(bit << k);
    }
  }
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
