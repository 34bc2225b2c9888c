#include "core/tiles/reducer.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "core/base/error.h"
#include "core/simd/half.h"
#include "core/simd/tiles/downsample.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;

// A float16 as its bits; it is reduced as a float.
struct Half {
  std::uint16_t bits;
};

template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

// What T's items are summed in. Sums of 64-bit integers are kept as high and low halves.
struct WideSum {
  std::int64_t high = 0;
  U64 low = 0;
};
template <class T>
struct SumOf {
  using Type = std::conditional_t<
      kIsComplex<T>, std::complex<double>,
      std::conditional_t<std::is_floating_point_v<T>, double,
                         std::conditional_t<sizeof(T) == 8, WideSum,
                                            std::conditional_t<std::is_signed_v<T>, std::int64_t, U64>>>>;
};
template <>
struct SumOf<Half> {
  using Type = double;
};

template <class T>
T item_at(const std::byte* p) noexcept {
  T item;
  std::memcpy(&item, p, sizeof item);
  return item;
}

float float_of(Half half) noexcept {
  float out;
  simd::half_to_float(&half.bits, 1, reinterpret_cast<std::byte*>(&out));
  return out;
}
Half half_of(float value) noexcept {
  Half out;
  simd::float_to_half(&value, 1, &out.bits);
  return out;
}

template <class T>
void add(typename SumOf<T>::Type& sum, T item) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    sum += static_cast<double>(float_of(item));
  } else if constexpr (kIsComplex<T>) {
    sum += std::complex<double>(item.real(), item.imag());
  } else if constexpr (std::is_same_v<typename SumOf<T>::Type, WideSum>) {
    sum.high += static_cast<std::int64_t>(std::is_signed_v<T> ? static_cast<std::int64_t>(item) >> 32
                                                              : static_cast<std::int64_t>(U64(item) >> 32));
    sum.low += static_cast<U64>(item) & 0xffffffff;
  } else {
    sum += static_cast<typename SumOf<T>::Type>(item);
  }
}

// The mean of 2^shift items, from their sum.
template <class T>
T mean_of(const typename SumOf<T>::Type& sum, unsigned shift) noexcept {
  if constexpr (std::is_same_v<T, Half>) {
    return half_of(static_cast<float>(sum / static_cast<double>(U64{1} << shift)));
  } else if constexpr (kIsComplex<T>) {
    const std::complex<double> mean = sum / static_cast<double>(U64{1} << shift);
    using Part = typename T::value_type;
    return {static_cast<Part>(mean.real()), static_cast<Part>(mean.imag())};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(sum / static_cast<double>(U64{1} << shift));
  } else if constexpr (std::is_same_v<typename SumOf<T>::Type, WideSum>) {
    const U64 rest = static_cast<U64>(sum.high & ((std::int64_t{1} << shift) - 1));
    const U64 low = ((rest << 32) + sum.low + ((U64{1} << shift) >> 1)) >> shift;
    return static_cast<T>((static_cast<U64>(sum.high >> shift) << 32) + low);
  } else {
    using Sum = typename SumOf<T>::Type;
    return static_cast<T>((sum + static_cast<Sum>((U64{1} << shift) >> 1)) >> shift);
  }
}

// ---------------------------------------------------------------- geometry

// Rows of a frame (runs of its last dimension), and the row of the next scale that each goes to.
struct Geometry {
  std::vector<U64> frame;
  std::vector<bool> halves;
  unsigned frames;

  U64 columns() const noexcept { return frame.empty() ? 1 : frame.back(); }
  bool halves_columns() const noexcept { return !frame.empty() && halves.back(); }
  U64 out_columns() const noexcept { return halves_columns() ? halved(columns()) : columns(); }
  U64 rows() const noexcept {
    U64 rows = 1;
    for (std::size_t d = 0; d + 1 < frame.size(); ++d) rows *= frame[d];
    return rows;
  }
  U64 out_rows() const noexcept {
    U64 rows = 1;
    for (std::size_t d = 0; d + 1 < frame.size(); ++d) rows *= halves[d] ? halved(frame[d]) : frame[d];
    return rows;
  }
  struct Row {
    U64 out;         // row of the next scale
    bool is_first;   // of its block: all halved indexes are even
    unsigned shift;  // the block has 2^shift rows
  };
  Row row(U64 number) const noexcept {
    Row found{0, true, 0};
    U64 stride = 1;
    for (std::size_t d = frame.empty() ? 0 : frame.size() - 1; d-- > 0;) {
      const U64 index = number % frame[d];
      number /= frame[d];
      const U64 out = halves[d] ? index / 2 : index;
      found.out += out * stride;
      stride *= halves[d] ? halved(frame[d]) : frame[d];
      if (!halves[d]) continue;
      found.is_first = found.is_first && index % 2 == 0;
      if (2 * out + 1 < frame[d]) ++found.shift;
    }
    return found;
  }
};

// ---------------------------------------------------------------- reducers

// Mean in double or wide integers, for any dimensions.
template <class T>
class MeanReducer final : public Reducer {
 public:
  explicit MeanReducer(Geometry geometry) : geometry_(std::move(geometry)) {
    sums_.resize(static_cast<std::size_t>(geometry_.out_rows() * geometry_.out_columns()));
    shifts_.resize(static_cast<std::size_t>(geometry_.out_rows()));
    out_.resize(sums_.size() * sizeof(T));
  }

  bool feed(const std::byte* frame) noexcept override {
    if (fed_ == 0) std::fill(sums_.begin(), sums_.end(), typename SumOf<T>::Type{});
    const U64 columns = geometry_.columns();
    const std::size_t step = geometry_.halves_columns() ? 2 : 1;
    for (U64 r = 0; r < geometry_.rows(); ++r, frame += columns * sizeof(T)) {
      const Geometry::Row row = geometry_.row(r);
      shifts_[static_cast<std::size_t>(row.out)] = row.shift;
      auto* const sums = sums_.data() + row.out * geometry_.out_columns();
      for (U64 x = 0; x < columns; ++x) add<T>(sums[x / step], item_at<T>(frame + x * sizeof(T)));
    }
    return ++fed_ == geometry_.frames && finish();
  }

  bool finish() noexcept override {
    if (fed_ == 0) return false;
    const unsigned of_frames = fed_ == 2 ? 1 : 0;
    fed_ = 0;
    const U64 columns = geometry_.out_columns();
    std::byte* at = out_.data();
    for (U64 r = 0; r < geometry_.out_rows(); ++r) {
      for (U64 x = 0; x < columns; ++x, at += sizeof(T)) {
        const bool is_pair = geometry_.halves_columns() && 2 * x + 1 < geometry_.columns();
        const unsigned shift = shifts_[static_cast<std::size_t>(r)] + of_frames + (is_pair ? 1 : 0);
        const T mean = mean_of<T>(sums_[static_cast<std::size_t>(r * columns + x)], shift);
        std::memcpy(at, &mean, sizeof mean);
      }
    }
    return true;
  }

 private:
  const Geometry geometry_;
  std::vector<typename SumOf<T>::Type> sums_;
  std::vector<unsigned> shifts_;
  unsigned fed_ = 0;
};

// One item of each block: the least, the greatest, the first.
template <class T, Reduce reduce>
class PickReducer final : public Reducer {
 public:
  explicit PickReducer(Geometry geometry) : geometry_(std::move(geometry)) {
    out_.resize(static_cast<std::size_t>(geometry_.out_rows() * geometry_.out_columns()) * sizeof(T));
  }

  bool feed(const std::byte* frame) noexcept override {
    const U64 columns = geometry_.columns();
    const std::size_t step = geometry_.halves_columns() ? 2 : 1;
    for (U64 r = 0; r < geometry_.rows(); ++r, frame += columns * sizeof(T)) {
      const Geometry::Row row = geometry_.row(r);
      std::byte* const out = out_.data() + row.out * geometry_.out_columns() * sizeof(T);
      const bool begins = row.is_first && fed_ == 0;
      for (U64 x = 0; x < columns; ++x) {
        std::byte* const to = out + x / step * sizeof(T);
        const std::byte* const from = frame + x * sizeof(T);
        if ((begins && x % step == 0) || is_better(item_at<T>(from), item_at<T>(to)))
          std::memcpy(to, from, sizeof(T));
      }
    }
    return ++fed_ == geometry_.frames && finish();
  }

  bool finish() noexcept override {
    const bool has_frames = fed_ != 0;
    fed_ = 0;
    return has_frames;
  }

 private:
  static bool is_better([[maybe_unused]] T fresh, [[maybe_unused]] T held) noexcept {
    if constexpr (reduce == Reduce::First) {
      return false;
    } else if constexpr (std::is_same_v<T, Half>) {
      return reduce == Reduce::Min ? float_of(fresh) < float_of(held) : float_of(held) < float_of(fresh);
    } else {
      return reduce == Reduce::Min ? fresh < held : held < fresh;
    }
  }

  const Geometry geometry_;
  unsigned fed_ = 0;
};

// The mean over the last two dimensions by the kernels, for the items that cameras have.
template <class T>
class FastMeanReducer final : public Reducer {
 public:
  explicit FastMeanReducer(Geometry geometry) : geometry_(std::move(geometry)) {
    out_.resize(static_cast<std::size_t>(geometry_.out_rows() * geometry_.out_columns()) * sizeof(T));
  }

  bool feed(const std::byte* frame) noexcept override {
    const auto columns = static_cast<std::size_t>(geometry_.columns());
    const U64 height = geometry_.frame[geometry_.frame.size() - 2];
    const U64 images = geometry_.rows() / height;
    const T* row = reinterpret_cast<const T*>(frame);
    T* out = reinterpret_cast<T*>(out_.data());
    for (U64 image = 0; image < images; ++image) {
      for (U64 y = 0; y < height; y += 2) {
        // The last row of an odd number is its own pair, which changes no mean.
        const T* const next = y + 1 < height ? row + columns : row;
        simd::mean_2x2(row, next, columns / 2, out);
        if (columns % 2 != 0) {
          const T edge[2][2] = {{row[columns - 1], row[columns - 1]}, {next[columns - 1], next[columns - 1]}};
          simd::reference::mean_2x2(edge[0], edge[1], 1, out + columns / 2);
        }
        row = next + columns;
        out += halved(columns);
      }
    }
    return true;
  }
  bool finish() noexcept override { return false; }

 private:
  const Geometry geometry_;
};

template <class T>
std::unique_ptr<Reducer> make_of(Reduce reduce, Geometry geometry) {
  switch (reduce) {
    case Reduce::Mean:
      return std::make_unique<MeanReducer<T>>(std::move(geometry));
    case Reduce::First:
      return std::make_unique<PickReducer<T, Reduce::First>>(std::move(geometry));
    case Reduce::Min:
    case Reduce::Max:
      break;
  }
  if constexpr (kIsComplex<T>) {
    fail(ErrorCode::InvalidArgument, "complex items have no minimum and no maximum");
  } else {
    if (reduce == Reduce::Min) return std::make_unique<PickReducer<T, Reduce::Min>>(std::move(geometry));
    return std::make_unique<PickReducer<T, Reduce::Max>>(std::move(geometry));
  }
}

template <class T>
std::unique_ptr<Reducer> make_fast(Reduce reduce, Geometry geometry) {
  const std::size_t rank = geometry.frame.size();
  const bool is_last_two = rank >= 2 && geometry.frames == 1 && geometry.halves[rank - 1] &&
                           geometry.halves[rank - 2] &&
                           std::count(geometry.halves.begin(), geometry.halves.end(), true) == 2;
  if (reduce != Reduce::Mean || !is_last_two) return make_of<T>(reduce, std::move(geometry));
  return std::make_unique<FastMeanReducer<T>>(std::move(geometry));
}

}  // namespace

std::unique_ptr<Reducer> Reducer::make(DType dtype, Reduce reduce, std::vector<U64> frame,
                                       std::vector<bool> halves, unsigned frames) {
  Geometry geometry{std::move(frame), std::move(halves), frames};
  switch (dtype.kind()) {
    case Kind::Bool:
    case Kind::UInt8:
      return make_fast<std::uint8_t>(reduce, std::move(geometry));
    case Kind::UInt16:
      return make_fast<std::uint16_t>(reduce, std::move(geometry));
    case Kind::Float32:
      return make_fast<float>(reduce, std::move(geometry));
    case Kind::Int8:
      return make_of<std::int8_t>(reduce, std::move(geometry));
    case Kind::Int16:
      return make_of<std::int16_t>(reduce, std::move(geometry));
    case Kind::Int32:
      return make_of<std::int32_t>(reduce, std::move(geometry));
    case Kind::UInt32:
      return make_of<std::uint32_t>(reduce, std::move(geometry));
    case Kind::Int64:
      return make_of<std::int64_t>(reduce, std::move(geometry));
    case Kind::UInt64:
      return make_of<U64>(reduce, std::move(geometry));
    case Kind::Float16:
      return make_of<Half>(reduce, std::move(geometry));
    case Kind::Float64:
      return make_of<double>(reduce, std::move(geometry));
    case Kind::Complex64:
      return make_of<std::complex<float>>(reduce, std::move(geometry));
    case Kind::Complex128:
      return make_of<std::complex<double>>(reduce, std::move(geometry));
    default:
      fail(ErrorCode::InvalidArgument, "items of dtype 0x%04x cannot be reduced to another scale",
           dtype.code());
  }
}

}  // namespace cdd::tiles
