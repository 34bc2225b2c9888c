// The kernels of half.h. x86 has instructions that do exactly this from F16C on; elsewhere integer
// arithmetic, so that neither flush-to-zero nor default-NaN modes of a CPU show.
#if defined(CDD_CORE_SIMD_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_CORE_SIMD_HALF_INL_H_
#undef CDD_CORE_SIMD_HALF_INL_H_
#else
#define CDD_CORE_SIMD_HALF_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/simd/half.h"
#include "hwy/highway.h"

#undef CDD_HALF_HARDWARE
#if HWY_ARCH_X86 && HWY_TARGET < HWY_SSE4 && !defined(HWY_DISABLE_F16C)
#define CDD_HALF_HARDWARE 1
#else
#define CDD_HALF_HARDWARE 0
#endif

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if CDD_HALF_HARDWARE

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> Narrow(D df, hn::Vec<D> v) {
  const hn::Rebind<hwy::float16_t, D> dh;
  const hn::Rebind<std::uint16_t, D> du16;
  return hn::BitCast(du16, hn::DemoteTo(dh, v));
}

template <class D>
HWY_INLINE hn::Vec<D> Widen(D df, hn::Vec<hn::Rebind<std::uint16_t, D>> h) {
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(df, hn::BitCast(dh, h));
}

#else

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> Narrow(D df, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> du16;
  const auto bits = hn::BitCast(du, v);
  const auto abs = hn::And(bits, hn::Set(du, 0x7fffffffu));
  const auto sign = hn::ShiftRight<16>(hn::Sub(bits, abs));
  // Normal: rebias, then round at bit 13; a carry walks into the exponent as it should, up to infinity.
  const auto odd = hn::And(hn::ShiftRight<13>(abs), hn::Set(du, 1u));
  const auto rounded = hn::Add(hn::Add(abs, odd), hn::Set(du, 0xfffu - 0x38000000u));
  const auto normal = hn::ShiftRight<13>(rounded);
  // Below 2^-14: adding 0.5 makes the FPU round at 2^-24, float16's subnormal step.
  const auto half = hn::Set(df, 0.5f);
  const auto small = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, abs), half)), hn::BitCast(du, half));
  const auto infinity = hn::Set(du, 0x7c00u);
  const auto nan = hn::Or(hn::Set(du, 0x7e00u), hn::And(hn::ShiftRight<13>(abs), hn::Set(du, 0x3ffu)));
  auto h = hn::IfThenElse(hn::Lt(abs, hn::Set(du, 0x38800000u)), small, normal);
  h = hn::IfThenElse(hn::Ge(abs, hn::Set(du, 0x47800000u)), infinity, h);
  h = hn::IfThenElse(hn::Gt(abs, hn::Set(du, 0x7f800000u)), nan, h);
  return hn::TruncateTo(du16, hn::Or(h, sign));
}

template <class D>
HWY_INLINE hn::Vec<D> Widen(D df, hn::Vec<hn::Rebind<std::uint16_t, D>> h) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::PromoteTo(du, h);
  const auto abs = hn::And(bits, hn::Set(du, 0x7fffu));
  const auto sign = hn::ShiftLeft<16>(hn::Sub(bits, abs));
  const auto moved = hn::ShiftLeft<13>(abs);
  const auto normal = hn::Add(moved, hn::Set(du, 0x38000000u));
  // A subnormal is an integer count of 2^-24.
  const auto count = hn::ConvertTo(df, hn::BitCast(di, abs));
  const auto small = hn::BitCast(du, hn::Mul(count, hn::Set(df, 0x1p-24f)));
  const auto infinity = hn::Set(du, 0x7f800000u);
  const auto quiet_nan = hn::Or(moved, hn::Set(du, 0x7fc00000u));
  auto f = hn::IfThenElse(hn::Lt(abs, hn::Set(du, 0x400u)), small, normal);
  f = hn::IfThenElse(hn::Eq(abs, hn::Set(du, 0x7c00u)), infinity, f);
  f = hn::IfThenElse(hn::Gt(abs, hn::Set(du, 0x7c00u)), quiet_nan, f);
  return hn::BitCast(df, hn::Or(f, sign));
}

#endif

// x * a + b rounded once. Without a fused instruction through float64, which holds the exact result: x has 11
// significant bits, a and b 24, and b is a or zero. EMU128's DemoteTo would make infinities the largest
// number.
template <class D>
HWY_INLINE hn::Vec<D> MulAddOnce(D df, hn::Vec<D> x, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_NATIVE_FMA
  (void)df;
  return hn::MulAdd(x, a, b);
#elif HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::Repartition<double, D> dd;
  const hn::Half<D> dh;
  const auto low =
      hn::MulAdd(hn::PromoteLowerTo(dd, x), hn::PromoteLowerTo(dd, a), hn::PromoteLowerTo(dd, b));
  const auto high =
      hn::MulAdd(hn::PromoteUpperTo(dd, x), hn::PromoteUpperTo(dd, a), hn::PromoteUpperTo(dd, b));
  return hn::Combine(df, hn::DemoteTo(dh, high), hn::DemoteTo(dh, low));
#else
  HWY_ALIGN float xs[hn::MaxLanes(df)], as[hn::MaxLanes(df)], bs[hn::MaxLanes(df)];
  hn::Store(x, df, xs);
  hn::Store(a, df, as);
  hn::Store(b, df, bs);
  for (std::size_t i = 0; i < hn::Lanes(df); ++i) {
    xs[i] = static_cast<float>(static_cast<double>(xs[i]) * static_cast<double>(as[i]) +
                               static_cast<double>(bs[i]));
  }
  return hn::Load(df, xs);
#endif
}

void FloatToHalf(const float* in, std::size_t n, std::uint16_t* out) {
  const hn::CappedTag<float, 16> df;
  const hn::Rebind<std::uint16_t, decltype(df)> dh;
  const std::size_t lanes = hn::Lanes(df);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Narrow(df, hn::LoadU(df, in + i)), dh, out + i);
  if (i < n) hn::StoreN(Narrow(df, hn::LoadN(df, in + i, n - i)), dh, out + i, n - i);
}

void HalfToFloat(const std::uint16_t* in, std::size_t n, std::byte* out) {
  const hn::CappedTag<float, 16> df;
  const hn::Rebind<std::uint16_t, decltype(df)> dh;
  const std::size_t lanes = hn::Lanes(df);
  float* to = reinterpret_cast<float*>(out);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Widen(df, hn::LoadU(dh, in + i)), df, to + i);
  if (i < n) hn::StoreN(Widen(df, hn::LoadN(dh, in + i, n - i)), df, to + i, n - i);
}

void ScaleHalfRows(const HalfRows& shape, const std::uint16_t* in, std::byte* out) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToUnsigned<decltype(df)> du;
  const hn::Rebind<std::uint16_t, decltype(df)> dh;
  const std::size_t lanes = hn::Lanes(df);
  const auto scale = hn::Set(df, shape.size_scale);
  const auto minus_zero = hn::Set(df, -0.0f);  // what can be added without changing even a zero's sign
  float* to = reinterpret_cast<float*>(out);
  for (std::size_t r = 0; r < shape.n_rows; ++r, in += shape.row_items, to += shape.row_items) {
    const auto price_scale = hn::Set(df, shape.mids != nullptr ? shape.mids[r] : 1.0f);
    const auto price_base = hn::Set(df, shape.mids != nullptr ? shape.mids[r] : -0.0f);
    for (std::size_t i = 0; i < shape.row_items; i += lanes) {
      const std::size_t left = HWY_MIN(lanes, shape.row_items - i);
      const bool full = left == lanes;
      const auto x = Widen(df, full ? hn::LoadU(dh, in + i) : hn::LoadN(dh, in + i, left));
      const auto bits =
          full ? hn::LoadU(du, shape.price_mask + i) : hn::LoadN(du, shape.price_mask + i, left);
      const auto is_price = hn::RebindMask(df, hn::Ne(bits, hn::Zero(du)));
      const auto y = MulAddOnce(df, x, hn::IfThenElse(is_price, price_scale, scale),
                                hn::IfThenElse(is_price, price_base, minus_zero));
      const auto kept = hn::IfThenElse(hn::IsNaN(x), x, y);
      if (full) {
        hn::StoreU(kept, df, to + i);
      } else {
        hn::StoreN(kept, df, to + i, left);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per target
