#include "core/simd/half.h"

#include <bit>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/half.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "core/simd/half-inl.h"

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(FloatToHalf);
HWY_EXPORT(HalfToFloat);
HWY_EXPORT(ScaleHalfRows);

void float_to_half(const float* in, std::size_t n, std::uint16_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(FloatToHalf)(in, n, out);
}

void half_to_float(const std::uint16_t* in, std::size_t n, std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(HalfToFloat)(in, n, out);
}

void scale_half_rows(const HalfRows& shape, const std::uint16_t* in, std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(ScaleHalfRows)(shape, in, out);
}

namespace reference {
namespace {

// Magnitudes in float64, where every step below is exact but the one rounding.
std::uint16_t narrow(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t abs = bits & 0x7fffffff;
  if (abs > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00 | (abs >> 13 & 0x3ff));
  const double magnitude = std::fabs(static_cast<double>(v));
  if (magnitude >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);  // halfway beyond the largest
  int exponent = abs == 0 ? -14 : std::ilogb(magnitude);
  if (exponent < -14) exponent = -14;
  const double steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent));  // of this binade, 0 to 2048
  const auto code = static_cast<unsigned>(steps) + (static_cast<unsigned>(exponent + 14) << 10);
  return static_cast<std::uint16_t>(sign | code);
}

float widen(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h} >> 15 << 31;
  const int exponent = h >> 10 & 31;
  const std::uint32_t fraction = h & 0x3ff;
  if (exponent == 31) {
    const std::uint32_t nan = fraction == 0 ? 0 : 0x400000 | fraction << 13;
    return std::bit_cast<float>(sign | 0x7f800000 | nan);
  }
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude)));
}

}  // namespace

void float_to_half(const float* in, std::size_t n, std::uint16_t* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = narrow(in[i]);
}

void half_to_float(const std::uint16_t* in, std::size_t n, std::byte* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const float v = widen(in[i]);
    std::memcpy(out + i * sizeof v, &v, sizeof v);
  }
}

void scale_half_rows(const HalfRows& shape, const std::uint16_t* in, std::byte* out) noexcept {
  for (std::size_t k = 0; k < shape.n_rows * shape.row_items; ++k) {
    const bool is_price = shape.price_mask[k % shape.row_items] != 0;
    const float x = widen(in[k]);
    float v = x;
    if (!std::isnan(x) && !is_price) v = x * shape.size_scale;
    if (!std::isnan(x) && is_price && shape.mids != nullptr) {
      const double mid = shape.mids[k / shape.row_items];
      v = static_cast<float>(static_cast<double>(x) * mid + mid);  // exact but for the cast
    }
    std::memcpy(out + k * sizeof v, &v, sizeof v);
  }
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
