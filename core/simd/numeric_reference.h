// One integer to one item, in plain C++: the tails of the vector kernels and the oracle of their tests.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/simd/numeric.h"

namespace cdd::simd {

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

}  // namespace cdd::simd
