#include "core/simd/tiles/downsample.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/tiles/downsample.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

#include "core/simd/either-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Without vectors of several lanes the reference is as good; without float64 its lanes are.
#if HWY_TARGET == HWY_SCALAR
#define CDD_HAS_ROWS 0
#else
#define CDD_HAS_ROWS 1

template <class T>
inline constexpr bool kIsDouble = std::is_same_v<T, double>;

// What T's items are summed in: twice as wide, but for double.
template <class T>
struct SumTypeOf {
  using Type = hwy::MakeWide<T>;
};
template <>
struct SumTypeOf<double> {
  using Type = double;
};
template <class T>
using SumType = typename SumTypeOf<T>::Type;

template <class T>
HWY_INLINE const T* At(const std::byte* p, std::size_t i) {
  return reinterpret_cast<const T*>(p) + i;
}
template <class T>
HWY_INLINE T* At(std::byte* p, std::size_t i) {
  return reinterpret_cast<T*>(p) + i;
}

// Items at i and after it, as bytes: of pointers to items of 8 bytes gcc believes on 32-bit Arm that they are
// aligned.
template <class T, class D>
HWY_INLINE hn::Vec<D> Load(D d, const std::byte* p, std::size_t i) {
  const hn::Repartition<std::uint8_t, D> bytes;
  return hn::BitCast(d, hn::LoadU(bytes, At<std::uint8_t>(p, i * sizeof(T))));
}
template <class T, class D>
HWY_INLINE void Store(hn::Vec<D> v, D, std::byte* p, std::size_t i) {
  const hn::Repartition<std::uint8_t, D> bytes;
  hn::StoreU(hn::BitCast(bytes, v), bytes, At<std::uint8_t>(p, i * sizeof(T)));
}

// Of items i to i + lanes of what comes out, for lanes of D.
template <class T, bool pairs, class D>
HWY_INLINE hn::Vec<D> Sums(D d, const std::byte* row, std::size_t i) {
  if constexpr (kIsDouble<T>) {
    if constexpr (!pairs) return Load<T>(d, row, i);
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, At<T>(row, 2 * i), even, odd);
    return hn::Add(even, odd);
  } else if constexpr (!pairs) {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), At<T>(row, i)));
  } else if constexpr (hwy::IsFloat<T>()) {
    const hn::Rebind<T, D> narrow;
    const hn::RebindToUnsigned<decltype(narrow)> bits;
    const hn::RebindToUnsigned<D> both;
    const auto v = Load<hn::TFromD<decltype(both)> >(both, row, i);
    const auto even = hn::BitCast(narrow, hn::TruncateTo(bits, v));
    const auto odd = hn::BitCast(narrow, hn::TruncateTo(bits, hn::ShiftRight<32>(v)));
    return hn::Add(hn::PromoteTo(d, even), hn::PromoteTo(d, odd));
  } else {
    // Two neighbours share a lane: the lower half has its sign moved up and down again.
    constexpr int kBits = static_cast<int>(8 * sizeof(T));
    const auto v = Load<hn::TFromD<D> >(d, row, i);
    return hn::Add(hn::ShiftRight<kBits>(hn::ShiftLeft<kBits>(v)), hn::ShiftRight<kBits>(v));
  }
}

template <class T, class D>
HWY_INLINE void StoreMeans(D d, hn::Vec<D> sums, unsigned shift, std::byte* out, std::size_t i) {
  using Sum = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<T>()) {
    const auto means = hn::Mul(sums, hn::Set(d, Sum{1} / static_cast<Sum>(1u << shift)));
    if constexpr (kIsDouble<T>) {
      Store<T>(means, d, out, i);
    } else {
      const hn::Rebind<T, D> narrow;
      Store<T>(hn::DemoteTo(narrow, means), narrow, out, i);
    }
  } else {
    const hn::RebindToUnsigned<D> bits;
    const hn::Rebind<hwy::MakeUnsigned<T>, D> narrow;
    const auto half = hn::Set(d, static_cast<Sum>((1u << shift) >> 1));
    const auto means = hn::ShiftRightSame(hn::Add(sums, half), static_cast<int>(shift));
    Store<hwy::MakeUnsigned<T> >(hn::TruncateTo(narrow, hn::BitCast(bits, means)), narrow, out, i);
  }
}

// What is left of a row, fewer items than a vector has, is the reference's.
template <class T>
RowKernels ReferenceOf(Reduction reduction);

template <class T, bool pairs, bool adds>
void SumRow(const std::byte* row, std::size_t n, std::byte* held) noexcept {
  using Sum = SumType<T>;
  const hn::ScalableTag<Sum> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto sums = Sums<T, pairs>(d, row, i);
    if constexpr (adds) sums = hn::Add(Load<Sum>(d, held, i), sums);
    Store<Sum>(sums, d, held, i);
  }
  if (i == n) return;
  const RowKernels rest = ReferenceOf<T>(Reduction::Mean);
  (adds ? rest.add : rest.begin)[pairs](row + (pairs ? 2 * i : i) * sizeof(T), n - i, held + i * sizeof(Sum));
}

template <class T>
void EndMeans(const std::byte* held, std::size_t n, unsigned shift, std::byte* out) noexcept {
  using Sum = SumType<T>;
  const hn::ScalableTag<Sum> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) StoreMeans<T>(d, Load<Sum>(d, held, i), shift, out, i);
  if (i == n) return;
  ReferenceOf<T>(Reduction::Mean).end(held + i * sizeof(Sum), n - i, shift, out + i * sizeof(T));
}

template <class T>
void MeanOfTwoRows(const std::byte* row0, const std::byte* row1, std::size_t n, std::byte* out) noexcept {
  const hn::ScalableTag<SumType<T> > d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    StoreMeans<T>(d, hn::Add(Sums<T, true>(d, row0, i), Sums<T, true>(d, row1, i)), 2, out, i);
  }
  if (i == n) return;
  ReferenceOf<T>(Reduction::Mean)
      .two_rows(row0 + 2 * i * sizeof(T), row1 + 2 * i * sizeof(T), n - i, out + i * sizeof(T));
}

template <Reduction reduction, class D>
HWY_INLINE hn::Vec<D> Better(D, hn::Vec<D> fresh, hn::Vec<D> held) {
  if constexpr (hwy::IsFloat<hn::TFromD<D> >()) {
    const auto wins = reduction == Reduction::Min ? hn::Lt(fresh, held) : hn::Lt(held, fresh);
    return hn::IfThenElse(Either(hn::IsNaN(fresh), wins), fresh, held);
  } else {
    return reduction == Reduction::Min ? hn::Min(fresh, held) : hn::Max(fresh, held);
  }
}

template <class T, Reduction reduction, bool pairs, bool adds>
void PickRow(const std::byte* row, std::size_t n, std::byte* held) noexcept {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::Vec<decltype(d)> best;
    if constexpr (pairs) {
      hn::Vec<decltype(d)> odd;
      hn::LoadInterleaved2(d, At<T>(row, 2 * i), best, odd);
      if constexpr (reduction != Reduction::First) best = Better<reduction>(d, odd, best);
    } else {
      best = Load<T>(d, row, i);
    }
    if constexpr (adds) best = Better<reduction>(d, best, Load<T>(d, held, i));
    Store<T>(best, d, held, i);
  }
  if (i == n) return;
  const RowKernels rest = ReferenceOf<T>(reduction);
  (adds ? rest.add : rest.begin)[pairs](row + (pairs ? 2 * i : i) * sizeof(T), n - i, held + i * sizeof(T));
}

template <class T>
RowKernels ReferenceOf(Reduction reduction) {
  constexpr bool kSigned = hwy::IsSigned<T>();
  constexpr Kind kIntegers[2][4] = {{Kind::UInt8, Kind::UInt16, Kind::UInt32, Kind::UInt64},
                                    {Kind::Int8, Kind::Int16, Kind::Int32, Kind::Int64}};
  constexpr std::size_t kLog = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  constexpr Kind kKind =
      hwy::IsFloat<T>() ? (sizeof(T) == 4 ? Kind::Float32 : Kind::Float64) : kIntegers[kSigned ? 1 : 0][kLog];
  return reference::row_kernels(kKind, reduction);
}

template <class T>
RowKernels MeanKernels() {
  RowKernels kernels;
  kernels.begin[0] = SumRow<T, false, false>;
  kernels.begin[1] = SumRow<T, true, false>;
  kernels.add[0] = SumRow<T, false, true>;
  kernels.add[1] = SumRow<T, true, true>;
  kernels.end = EndMeans<T>;
  kernels.two_rows = MeanOfTwoRows<T>;
  kernels.held_bytes = sizeof(SumType<T>);
  return kernels;
}

template <class T, Reduction reduction>
RowKernels PickKernels() {
  RowKernels kernels;
  kernels.begin[0] = PickRow<T, reduction, false, false>;
  kernels.begin[1] = PickRow<T, reduction, true, false>;
  if constexpr (reduction != Reduction::First) {
    kernels.add[0] = PickRow<T, reduction, false, true>;
    kernels.add[1] = PickRow<T, reduction, true, true>;
  }
  kernels.held_bytes = sizeof(T);
  return kernels;
}

template <class T>
RowKernels KernelsOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::Mean:
      if constexpr (sizeof(T) == 8 && !hwy::IsFloat<T>()) return ReferenceOf<T>(reduction);
      if constexpr (sizeof(T) < 8 || hwy::IsFloat<T>()) return MeanKernels<T>();
      break;
    case Reduction::Min:
      return PickKernels<T, Reduction::Min>();
    case Reduction::Max:
      return PickKernels<T, Reduction::Max>();
    case Reduction::First:
      return PickKernels<T, Reduction::First>();
  }
  return {};
}
#endif  // CDD_HAS_ROWS

RowKernels Kernels(Kind kind, Reduction reduction) {
#if CDD_HAS_ROWS
  switch (kind) {
    case Kind::Bool:
    case Kind::UInt8:
      return KernelsOf<std::uint8_t>(reduction);
    case Kind::Int8:
      return KernelsOf<std::int8_t>(reduction);
    case Kind::UInt16:
      return KernelsOf<std::uint16_t>(reduction);
    case Kind::Int16:
      return KernelsOf<std::int16_t>(reduction);
    case Kind::UInt32:
      return KernelsOf<std::uint32_t>(reduction);
    case Kind::Int32:
      return KernelsOf<std::int32_t>(reduction);
#if !HWY_ARCH_ARM_V7  // which loads pairs of 8 bytes from aligned places alone
    case Kind::UInt64:
      return KernelsOf<std::uint64_t>(reduction);
    case Kind::Int64:
      return KernelsOf<std::int64_t>(reduction);
#endif
#if HWY_HAVE_FLOAT64
    case Kind::Float32:
      return KernelsOf<float>(reduction);
    case Kind::Float64:
      return KernelsOf<double>(reduction);
#endif
    default:
      break;
  }
#endif
  return reference::row_kernels(kind, reduction);
}
#undef CDD_HAS_ROWS

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(Kernels);

RowKernels row_kernels(Kind kind, Reduction reduction) noexcept {
  return HWY_DYNAMIC_DISPATCH(Kernels)(kind, reduction);
}

}  // namespace cdd::simd
#endif  // HWY_ONCE
