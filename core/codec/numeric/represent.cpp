#include "core/codec/numeric/represent.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "core/codec/numeric/plan.h"
#include "core/codec/numeric/table.h"

namespace cdd::numeric {
namespace {

constexpr std::size_t kProbes = 32;  // items that decide on an exponent, values that decide on a step

// What a scaled value may be: exact as a double, and within the integer.
template <class T>
constexpr double kLargestScaled = sizeof(T) == 8 ? 9007199254740992.0 / 4 : 2147483647.0;
// A decimal with more digits than this is noise: its integers would be as long as the bits.
template <class Float>
constexpr unsigned kMostDigits = sizeof(Float) == 8 ? 15 : 9;

template <class Float>
using BitsOf = std::conditional_t<sizeof(Float) == 8, std::uint64_t, std::uint32_t>;
template <class T>
using Signed = std::make_signed_t<T>;

struct Decimal {
  bool quotient = true;
  unsigned exponent = 0;
};

template <class Float>
Float from_scaled(double integer, Decimal d) noexcept {
  return static_cast<Float>(d.quotient ? integer / kPowersOfTen[d.exponent]
                                       : integer * kInversePowersOfTen[d.exponent]);
}

// The nearest integer of v * 10^exponent if that gives v back bit for bit.
template <class Float>
bool scale(Float v, Decimal d, std::int64_t* integer) noexcept {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no fraction bits
  const double scaled = static_cast<double>(v) * kPowersOfTen[d.exponent];
  if (!(std::fabs(scaled) <= kLargestScaled<BitsOf<Float>>)) return false;
  const double whole = (scaled + kRound) - kRound;
  *integer = static_cast<std::int64_t>(whole);
  const Float back = from_scaled<Float>(whole, d);
  return std::bit_cast<BitsOf<Float>>(back) == std::bit_cast<BitsOf<Float>>(v);
}

template <class Float>
Float item_at(const std::byte* rows, std::size_t stride, std::size_t i) noexcept {
  return load<Float>(rows + i * stride * sizeof(Float));
}

// The smallest exponent that most of a few items survive; false if no exponent suits most of them.
template <class Float>
bool find_decimal(const std::byte* rows, std::size_t stride, std::size_t n, Decimal* decimal) noexcept {
  std::array<Float, kProbes> probes;
  const std::size_t count = std::min(n, kProbes);
  for (std::size_t i = 0; i < count; ++i) probes[i] = item_at<Float>(rows, stride, probe(i, count, n));
  std::size_t most = count - count / 8 - 1;  // must be exceeded
  bool found = false;
  // Dividing by a power of ten gives the double nearest to a decimal; multiplying is faster and enough for a
  // float32, and is how some programs made their doubles.
  for (const bool quotient : {sizeof(Float) == 8, sizeof(Float) != 8}) {
    for (unsigned e = 0; e <= kMostDigits<Float>; ++e) {
      std::size_t good = 0;
      std::int64_t integer;
      for (std::size_t i = 0; i < count && good + (count - i) > most; ++i)
        good += scale(probes[i], {quotient, e}, &integer);
      if (good <= most) continue;
      most = good;
      *decimal = {quotient, e};
      found = true;
      if (good == count) return true;
    }
  }
  return found;
}

template <class T>
void load_bits(const Items& items, const std::byte* rows, std::size_t stride, std::size_t n,
               T* values) noexcept {
  const auto copy = [&]<class Item>(Item) {
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = static_cast<T>(item_at<Item>(rows, stride, i));  // sign-extends signed items
    }
  };
  if constexpr (sizeof(T) == 8) {
    copy(std::uint64_t{});
  } else if (items.bytes == 4) {
    copy(std::uint32_t{});
  } else if (items.bytes == 2) {
    items.is_signed ? copy(std::int16_t{}) : copy(std::uint16_t{});
  } else {
    items.is_signed ? copy(std::int8_t{}) : copy(std::uint8_t{});
  }
}

// Bits of floats in numerical order: those of negative ones inverted, all but the sign.
template <class T>
void order(std::size_t n, T* values) noexcept {
  constexpr unsigned kSign = sizeof(T) * 8 - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const T sign = static_cast<T>(static_cast<Signed<T>>(values[i]) >> kSign);
    values[i] ^= static_cast<T>(sign >> 1);
  }
}

// float16 arrives sign-extended to 32 bits: only its low 15 bits are inverted.
void order16(std::size_t n, std::uint32_t* values) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    if (static_cast<std::int32_t>(values[i]) < 0) values[i] ^= 0x7fffu;
  }
}

template <class Float, class T>
bool load_decimals(const std::byte* rows, std::size_t stride, std::size_t n, T* values, Decimal decimal,
                   Represented* r) {
  const std::size_t most_patches = n / 16 + 1;
  T last = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Float v = item_at<Float>(rows, stride, i);
    std::int64_t integer;
    if (scale(v, decimal, &integer)) {
      last = static_cast<T>(integer);
      if (r->patch_positions.size() == i) std::fill(values, values + i, last);
    } else {
      if (r->patch_positions.size() == most_patches) return false;
      r->patch_positions.push_back(i);
      r->patch_bits.push_back(std::bit_cast<BitsOf<Float>>(v));
    }
    values[i] = last;  // a patched value repeats the one before, which costs least
  }
  return true;
}

template <class Float, class T>
Represented represent_floats(const Items& items, const std::byte* rows, std::size_t stride, std::size_t n,
                             T* values) {
  const std::size_t width = items.per_row / stride;
  Represented ordered;
  ordered.representation = Representation::Ordered;
  Decimal decimal;
  if (find_decimal<Float>(rows, stride, n, &decimal)) {
    Represented r;
    r.representation = decimal.quotient ? Representation::Quotient : Representation::Product;
    r.exponent = decimal.exponent;
    if (load_decimals<Float>(rows, stride, n, values, decimal, &r)) {
      if (r.patch_bits.empty() && decimal.exponent <= 4) return r;
      const double patches = static_cast<double>(r.patch_bits.size() * (sizeof(Float) * 8 + 12));
      const double decimal_bits = rough_bits(n, width, values) + patches / static_cast<double>(n);
      std::vector<T> bits(n);
      load_bits(items, rows, stride, n, bits.data());
      order(n, bits.data());
      if (decimal_bits <= rough_bits(n, width, bits.data())) return r;
      std::copy(bits.begin(), bits.end(), values);
      return ordered;
    }
  }
  load_bits(items, rows, stride, n, values);
  order(n, values);
  return ordered;
}

// The largest step all values share, taken out of them. 1 when there is none.
template <class T>
void take_step(std::size_t n, T* values, Represented* r) noexcept {
  constexpr std::int64_t kLargest = std::int64_t{1} << (sizeof(T) == 8 ? 62 : 31);  // differences fit 64 bits
  const auto at = [&](std::size_t i) { return static_cast<std::int64_t>(static_cast<Signed<T>>(values[i])); };
  const std::int64_t first = at(0);
  if (first >= kLargest || first < -kLargest) return;
  std::uint64_t step = 0;
  const auto narrow = [&](std::size_t i) {
    const std::int64_t v = at(i);
    if (v >= kLargest || v < -kLargest) {
      step = 1;
      return;
    }
    const auto distance = static_cast<std::uint64_t>(v > first ? v - first : first - v);
    if (step != 0 && distance % step == 0) return;
    step = std::gcd(step, distance);
  };
  const std::size_t probes = std::min(n, kProbes);
  for (std::size_t i = 0; i < probes && step != 1; ++i) narrow(probe(i, probes, n));
  for (std::size_t i = 0; i < n && step != 1; ++i) narrow(i);
  if (step <= 1 || step >= static_cast<std::uint64_t>(kLargest) / 2) return;

  const auto signed_step = static_cast<std::int64_t>(step);
  const std::int64_t offset = (first % signed_step + signed_step) % signed_step;
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<T>((at(i) - offset) / signed_step);
  r->step = step;
  r->offset = static_cast<std::uint64_t>(offset);
}

}  // namespace

template <class T>
Represented represent(const Items& items, const std::byte* rows, std::size_t stride, std::size_t n,
                      T* values) {
  Represented r;
  if constexpr (sizeof(T) == 8) {
    if (items.item_class == ItemClass::Float64) r = represent_floats<double>(items, rows, stride, n, values);
  } else {
    if (items.item_class == ItemClass::Float32) r = represent_floats<float>(items, rows, stride, n, values);
    if (items.item_class == ItemClass::Float16) {
      load_bits(items, rows, stride, n, values);
      order16(n, values);
      r.representation = Representation::Ordered;
    }
  }
  if (items.item_class == ItemClass::Int) load_bits(items, rows, stride, n, values);
  if (r.representation != Representation::Ordered) take_step(n, values, &r);
  for (const T v : take_table(n, items.per_row / stride, values)) {
    r.table.push_back(static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<Signed<T>>(v))));
  }
  return r;
}

template Represented represent(const Items&, const std::byte*, std::size_t, std::size_t, std::uint32_t*);
template Represented represent(const Items&, const std::byte*, std::size_t, std::size_t, std::uint64_t*);

}  // namespace cdd::numeric
