// The reference of the kernels that make smaller scales, item by item, for every kind of items.
#include <complex>
#include <cstring>
#include <type_traits>

#include "core/simd/half.h"
#include "core/simd/tiles/downsample.h"

namespace cdd::simd::reference {
namespace {

struct Half {
  std::uint16_t bits;
};
// The sum of 64-bit integers, by their high and low halves.
struct WideSum {
  std::int64_t high = 0;
  std::uint64_t low = 0;
};

template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// What items are summed in.
template <class T>
struct SumOf {
  using Type = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
};
template <>
struct SumOf<std::int8_t> {
  using Type = std::int16_t;
};
template <>
struct SumOf<std::uint8_t> {
  using Type = std::uint16_t;
};
template <>
struct SumOf<std::int16_t> {
  using Type = std::int32_t;
};
template <>
struct SumOf<std::uint16_t> {
  using Type = std::uint32_t;
};
template <>
struct SumOf<std::int32_t> {
  using Type = std::int64_t;
};
template <>
struct SumOf<std::uint32_t> {
  using Type = std::uint64_t;
};
template <>
struct SumOf<std::int64_t> {
  using Type = WideSum;
};
template <>
struct SumOf<std::uint64_t> {
  using Type = WideSum;
};

template <class T>
T load_item(const std::byte* at) noexcept {
  T item;
  std::memcpy(&item, at, sizeof item);
  return item;
}
template <class T>
void store_item(std::byte* at, const T& item) noexcept {
  std::memcpy(at, &item, sizeof item);
}

float float_of(Half half) noexcept {
  float out;
  half_to_float(&half.bits, 1, reinterpret_cast<std::byte*>(&out));
  return out;
}

template <class T>
typename SumOf<T>::Type wide(T item) noexcept {
  using Sum = typename SumOf<T>::Type;
  if constexpr (std::is_same_v<T, Half>) {
    return static_cast<double>(float_of(item));
  } else if constexpr (std::is_same_v<Sum, WideSum>) {
    const auto high = std::is_signed_v<T> ? static_cast<std::int64_t>(item) >> 32
                                          : static_cast<std::int64_t>(static_cast<std::uint64_t>(item) >> 32);
    return {high, static_cast<std::uint64_t>(item) & 0xffffffff};
  } else if constexpr (kIsComplex<T>) {
    return {static_cast<double>(item.real()), static_cast<double>(item.imag())};
  } else {
    return static_cast<Sum>(item);
  }
}

template <class Sum>
Sum added(const Sum& a, const Sum& b) noexcept {
  if constexpr (std::is_same_v<Sum, WideSum>) {
    return {a.high + b.high, a.low + b.low};
  } else {
    return static_cast<Sum>(a + b);
  }
}

template <class T>
T mean_of(const typename SumOf<T>::Type& sum, unsigned shift) noexcept {
  using Sum = typename SumOf<T>::Type;
  const double scale = 1.0 / static_cast<double>(std::uint64_t{1} << shift);
  const std::uint64_t half = (std::uint64_t{1} << shift) >> 1;
  if constexpr (std::is_same_v<T, Half>) {
    const auto mean = static_cast<float>(sum * scale);
    Half out;
    float_to_half(&mean, 1, &out.bits);
    return out;
  } else if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    return {static_cast<Part>(sum.real() * scale), static_cast<Part>(sum.imag() * scale)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(sum * scale);
  } else if constexpr (std::is_same_v<Sum, WideSum>) {
    const auto rest = static_cast<std::uint64_t>(sum.high & ((std::int64_t{1} << shift) - 1));
    const std::uint64_t low = ((rest << 32) + sum.low + half) >> shift;
    return static_cast<T>((static_cast<std::uint64_t>(sum.high >> shift) << 32) + low);
  } else {
    return static_cast<T>(static_cast<Sum>(sum + static_cast<Sum>(half)) >> shift);
  }
}

template <class T, Reduction reduction>
bool is_better(T fresh, T held) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    return is_better<float, reduction>(float_of(fresh), float_of(held));
  } else if constexpr (std::is_floating_point_v<T>) {
    return fresh != fresh || (reduction == Reduction::Min ? fresh < held : held < fresh);
  } else {
    return reduction == Reduction::Min ? fresh < held : held < fresh;
  }
}

// ---------------------------------------------------------------- rows

template <class T, bool pairs>
typename SumOf<T>::Type sum_at(const std::byte* row, std::size_t i) noexcept {
  if constexpr (pairs) {
    return added(wide(load_item<T>(row + 2 * i * sizeof(T))),
                 wide(load_item<T>(row + (2 * i + 1) * sizeof(T))));
  } else {
    return wide(load_item<T>(row + i * sizeof(T)));
  }
}

template <class T, bool pairs, bool adds>
void sum_row(const std::byte* row, std::size_t n, std::byte* held) noexcept {
  using Sum = typename SumOf<T>::Type;
  for (std::size_t i = 0; i < n; ++i, held += sizeof(Sum)) {
    const Sum sum = sum_at<T, pairs>(row, i);
    store_item(held, adds ? added(load_item<Sum>(held), sum) : sum);
  }
}

template <class T>
void end_means(const std::byte* held, std::size_t n, unsigned shift, std::byte* out) noexcept {
  using Sum = typename SumOf<T>::Type;
  for (std::size_t i = 0; i < n; ++i) {
    store_item(out + i * sizeof(T), mean_of<T>(load_item<Sum>(held + i * sizeof(Sum)), shift));
  }
}

template <class T>
void mean_of_two_rows(const std::byte* row0, const std::byte* row1, std::size_t n, std::byte* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    store_item(out + i * sizeof(T), mean_of<T>(added(sum_at<T, true>(row0, i), sum_at<T, true>(row1, i)), 2));
  }
}

template <class T, Reduction reduction, bool pairs, bool adds>
void pick_row(const std::byte* row, std::size_t n, std::byte* held) noexcept {
  for (std::size_t i = 0; i < n; ++i, held += sizeof(T)) {
    T best = load_item<T>(row + (pairs ? 2 * i : i) * sizeof(T));
    if constexpr (pairs && reduction != Reduction::First) {
      const T other = load_item<T>(row + (2 * i + 1) * sizeof(T));
      if (is_better<T, reduction>(other, best)) best = other;
    }
    if constexpr (adds) {
      if (const T before = load_item<T>(held); !is_better<T, reduction>(best, before)) best = before;
    }
    store_item(held, best);
  }
}

template <class T>
RowKernels mean_kernels() noexcept {
  RowKernels kernels;
  kernels.begin[0] = sum_row<T, false, false>;
  kernels.begin[1] = sum_row<T, true, false>;
  kernels.add[0] = sum_row<T, false, true>;
  kernels.add[1] = sum_row<T, true, true>;
  kernels.end = end_means<T>;
  kernels.two_rows = mean_of_two_rows<T>;
  kernels.held_bytes = sizeof(typename SumOf<T>::Type);
  return kernels;
}

template <class T, Reduction reduction>
RowKernels pick_kernels() noexcept {
  RowKernels kernels;
  kernels.begin[0] = pick_row<T, reduction, false, false>;
  kernels.begin[1] = pick_row<T, reduction, true, false>;
  if constexpr (reduction != Reduction::First) {
    kernels.add[0] = pick_row<T, reduction, false, true>;
    kernels.add[1] = pick_row<T, reduction, true, true>;
  }
  kernels.held_bytes = sizeof(T);
  return kernels;
}

template <class T>
RowKernels kernels_of(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::Mean:
      return mean_kernels<T>();
    case Reduction::First:
      return pick_kernels<T, Reduction::First>();
    case Reduction::Min:
    case Reduction::Max:
      break;
  }
  if constexpr (kIsComplex<T>) {
    return {};
  } else {
    return reduction == Reduction::Min ? pick_kernels<T, Reduction::Min>()
                                       : pick_kernels<T, Reduction::Max>();
  }
}

}  // namespace

RowKernels row_kernels(Kind kind, Reduction reduction) noexcept {
  switch (kind) {
    case Kind::Bool:
    case Kind::UInt8:
      return kernels_of<std::uint8_t>(reduction);
    case Kind::Int8:
      return kernels_of<std::int8_t>(reduction);
    case Kind::UInt16:
      return kernels_of<std::uint16_t>(reduction);
    case Kind::Int16:
      return kernels_of<std::int16_t>(reduction);
    case Kind::UInt32:
      return kernels_of<std::uint32_t>(reduction);
    case Kind::Int32:
      return kernels_of<std::int32_t>(reduction);
    case Kind::UInt64:
      return kernels_of<std::uint64_t>(reduction);
    case Kind::Int64:
      return kernels_of<std::int64_t>(reduction);
    case Kind::Float16:
      return kernels_of<Half>(reduction);
    case Kind::Float32:
      return kernels_of<float>(reduction);
    case Kind::Float64:
      return kernels_of<double>(reduction);
    case Kind::Complex64:
      return kernels_of<std::complex<float>>(reduction);
    case Kind::Complex128:
      return kernels_of<std::complex<double>>(reduction);
    case Kind::None:
    case Kind::BFloat16:
    case Kind::Datetime64:
    case Kind::Timedelta64:
      break;
  }
  return {};
}

}  // namespace cdd::simd::reference
