#include "core/codec/numeric/table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "core/codec/numeric/plan.h"

namespace cdd::numeric {
namespace {

constexpr std::size_t kMostEntries = 1 << 13;  // what a decoder unpacks for any range must stay small
constexpr std::size_t kSampled = 256;
constexpr double kMustSave = 0.15;  // of all bits: a lookup for each value is not free

constexpr std::uint64_t kHashFactor = 0x9e3779b97f4a7c15u;

template <class T>
using Signed = std::make_signed_t<T>;

// Ids of distinct values, by open addressing; at most half full.
template <class T>
class IdMap {
 public:
  explicit IdMap(std::size_t most) : shift_(64 - static_cast<unsigned>(std::bit_width(2 * most))) {
    slots_.resize(std::size_t{1} << (64 - shift_));
  }

  // The id of v, the next free one if it is new.
  std::uint32_t id(T v) {
    for (std::size_t at = static_cast<std::size_t>(v * kHashFactor >> shift_);;
         at = (at + 1) % slots_.size()) {
      Slot& slot = slots_[at];
      if (slot.id_plus_1 != 0 && slot.value != v) continue;
      if (slot.id_plus_1 == 0) slot = {v, ++count_};
      return slot.id_plus_1 - 1;
    }
  }
  std::size_t count() const noexcept { return count_; }

 private:
  struct Slot {
    T value = 0;
    std::uint32_t id_plus_1 = 0;
  };
  std::vector<Slot> slots_;
  unsigned shift_;
  std::uint32_t count_ = 0;
};

// Whether a sample repeats itself enough, and over a wide enough range, to look at all values.
template <class T>
bool promises_table(std::size_t n, const T* values) noexcept {
  constexpr unsigned kHashBits = 12;
  std::array<std::uint64_t, (1u << kHashBits) / 64> seen{};
  const std::size_t count = std::min(n, kSampled);
  Signed<T> low = static_cast<Signed<T>>(values[0]);
  Signed<T> high = low;
  double distinct = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const T v = values[probe(i, count, n)];
    low = std::min(low, static_cast<Signed<T>>(v));
    high = std::max(high, static_cast<Signed<T>>(v));
    const auto hash = static_cast<std::size_t>(v * kHashFactor >> (64 - kHashBits));
    distinct += (seen[hash / 64] >> hash % 64 & 1) == 0 ? 1 : 0;
    seen[hash / 64] |= std::uint64_t{1} << hash % 64;
  }
  // As many as a sample of values drawn from n / 4 different ones would show.
  const double most = static_cast<double>(n) / 4;
  if (distinct > most * (1 - std::exp(-static_cast<double>(count) / most)) + 1) return false;
  const unsigned range = bit_width(static_cast<T>(static_cast<T>(high) - static_cast<T>(low)));
  return std::log2(distinct) < 0.85 * range && distinct * range < 4 * static_cast<double>(n);
}

template <class T>
double table_bits(const std::vector<T>& table) noexcept {
  T widest = 0;
  for (std::size_t i = 1; i < table.size(); ++i)
    widest = std::max(widest, static_cast<T>(table[i] - table[i - 1]));
  return static_cast<double>(table.size() * bit_width(widest) + 96);
}

}  // namespace

template <class T>
double rough_bits(std::size_t n, std::size_t width, const T* values) noexcept {
  constexpr std::size_t kRuns = 8;
  constexpr std::size_t kRun = 16;
  const std::size_t before = n > 2 * width ? width : 0;
  std::array<std::int64_t, kRuns * kRun> plain;
  std::array<std::int64_t, kRuns * kRun> steps;
  std::array<std::int64_t, kRuns * kRun> rows;
  std::size_t count = 0;
  for (std::size_t run = 0; run < kRuns; ++run) {
    const std::size_t first = before + (n - before) * run / kRuns;
    for (std::size_t i = first; i < std::min(n, first + kRun); ++i, ++count) {
      plain[count] = static_cast<Signed<T>>(values[i]);
      steps[count] = static_cast<Signed<T>>(static_cast<T>(values[i] - values[i == 0 ? 0 : i - 1]));
      rows[count] = static_cast<Signed<T>>(static_cast<T>(values[i] - values[i - before]));
    }
  }
  double bits = std::min(estimate_bits({plain.data(), count}), estimate_bits({steps.data(), count}));
  if (before > 1) bits = std::min(bits, estimate_bits({rows.data(), count}));
  return bits;
}

template <class T>
std::vector<T> take_table(std::size_t n, std::size_t width, T* values) {
  constexpr double kMinBits = 3;  // bins do as well below
  if (!promises_table(n, values)) return {};
  const double bits = rough_bits(n, width, values);
  if (bits < kMinBits) return {};
  const std::size_t most = std::min(n / 4, kMostEntries);
  IdMap<T> map(most + 1);
  std::vector<std::uint32_t> ids(n);
  std::vector<T> distinct;
  for (std::size_t i = 0; i < n; ++i) {
    ids[i] = map.id(values[i]);
    if (map.count() == distinct.size()) continue;
    if (distinct.size() == most) return {};
    distinct.push_back(values[i]);
  }
  // Ids are in order of appearance; the rank among all is what neighbouring values share.
  std::vector<std::uint32_t> order(distinct.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return static_cast<Signed<T>>(distinct[a]) < static_cast<Signed<T>>(distinct[b]);
  });
  std::vector<T> table(distinct.size());
  std::vector<std::uint32_t> rank(distinct.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    table[i] = distinct[order[i]];
    rank[order[i]] = i;
  }
  std::vector<T> indices(n);
  for (std::size_t i = 0; i < n; ++i) indices[i] = rank[ids[i]];
  const double with_table = rough_bits(n, width, indices.data()) + table_bits(table) / static_cast<double>(n);
  if (with_table > bits * (1 - kMustSave)) return {};
  std::copy(indices.begin(), indices.end(), values);
  return table;
}

template std::vector<std::uint32_t> take_table(std::size_t, std::size_t, std::uint32_t*);
template std::vector<std::uint64_t> take_table(std::size_t, std::size_t, std::uint64_t*);
template double rough_bits(std::size_t, std::size_t, const std::uint32_t*) noexcept;
template double rough_bits(std::size_t, std::size_t, const std::uint64_t*) noexcept;

}  // namespace cdd::numeric
