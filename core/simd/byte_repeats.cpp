#include "core/simd/byte_repeats.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/byte_repeats.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bytes `first`, a multiple of 8, to `last`, without vectors.
HWY_INLINE void MarkOnes(const std::byte* bytes, std::size_t first, std::size_t last, std::byte* marks) {
  for (std::size_t at = first; at < last; at += 8) {
    unsigned bits = 0;
    for (std::size_t i = HWY_MAX(at, 1); i < HWY_MIN(at + 8, last); ++i) {
      bits |= static_cast<unsigned>(bytes[i] == bytes[i - 1]) << (i - at);
    }
    marks[at / 8] = static_cast<std::byte>(bits);
  }
}

void MarkRepeats(const std::byte* bytes, std::size_t n, std::byte* marks) {
#if HWY_TARGET == HWY_SCALAR
  MarkOnes(bytes, 0, n, marks);
#else
  const hn::CappedTag<std::uint8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto* const p = reinterpret_cast<const std::uint8_t*>(bytes);
  std::size_t i = HWY_MIN(n, lanes);
  MarkOnes(bytes, 0, i, marks);
  for (; i + lanes <= n; i += lanes) {
    std::uint8_t bits[8];
    hn::StoreMaskBits(d, hn::Eq(hn::LoadU(d, p + i), hn::LoadU(d, p + i - 1)), bits);
    std::memcpy(marks + i / 8, bits, lanes / 8);
  }
  if (i < n) MarkOnes(bytes, i, n, marks);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(MarkRepeats);

void mark_repeats(const std::byte* bytes, std::size_t n, std::byte* marks) noexcept {
  HWY_DYNAMIC_DISPATCH(MarkRepeats)(bytes, n, marks);
}

void reference::mark_repeats(const std::byte* bytes, std::size_t n, std::byte* marks) noexcept {
  std::fill_n(marks, (n + 7) / 8, std::byte{0});
  for (std::size_t i = 1; i < n; ++i) {
    if (bytes[i] == bytes[i - 1]) marks[i / 8] |= std::byte{1} << i % 8;
  }
}

}  // namespace cdd::simd
#endif  // HWY_ONCE
