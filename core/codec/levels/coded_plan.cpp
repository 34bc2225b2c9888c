// How streams are coded: which bins their values are divided into, and what that takes.

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/codec/levels/coded.h"

namespace cdd::levels {
namespace {

constexpr std::size_t kMostClasses = 32;
constexpr std::size_t kFewestCoded = 8;   // values; fewer have no use for a table
constexpr std::size_t kFewestSplit = 10;  // values of a bin: of fewer no two bins can be the smaller

std::uint32_t zigzag(std::uint32_t v) noexcept { return v << 1 ^ (0u - (v >> 31)); }
unsigned number_bits(std::uint32_t v) noexcept {
  return kNumberBits + static_cast<unsigned>(std::bit_width(v));
}

// Codes take time to read, each and their tables: so much smaller they must be, in bits. Each of the first
// thousand values must save a quarter more, and so much where values are looked up.
constexpr std::size_t kWorthOfEightCodes = 9, kWorthOfTable = 100;

std::size_t worth_of_first(const CodedPlan& plan) noexcept {
  return std::min<std::size_t>(plan.values.size(), 1000) / 4;
}

bool is_worth_it(const CodedPlan& coded, const CodedPlan& packed) noexcept {
  return coded.bits + kWorthOfTable + worth_of_first(coded) + kWorthOfEightCodes * coded.values.size() / 8 <
         packed.bits;
}

// n * log2(n), which entropies are sums of.
double n_log_n(std::size_t n) noexcept {
  static const auto kSmall = [] {
    std::array<double, 4096> t{};
    for (std::size_t i = 2; i < t.size(); ++i)
      t[i] = static_cast<double>(i) * std::log2(static_cast<double>(i));
    return t;
  }();
  return n < kSmall.size() ? kSmall[n] : static_cast<double>(n) * std::log2(static_cast<double>(n));
}

using Classes = std::array<std::uint32_t, 33>;  // values of each bit length

// What a stream of values is like, apart from how they are coded.
struct Facts {
  std::size_t n = 0;
  std::uint32_t base = 0;  // the least, of signed ones
  std::uint32_t range = 0;
  Classes plain{}, zigzagged{};
};

Facts facts_of(std::span<const std::uint32_t> values) {
  Facts f;
  f.n = values.size();
  std::int32_t least = static_cast<std::int32_t>(values[0]), most = least;
  for (const std::uint32_t v : values) {
    least = std::min(least, static_cast<std::int32_t>(v));
    most = std::max(most, static_cast<std::int32_t>(v));
  }
  f.base = static_cast<std::uint32_t>(least);
  f.range = static_cast<std::uint32_t>(most) - f.base;
  for (const std::uint32_t v : values) {
    const std::uint32_t z = zigzag(v);
    ++f.plain[static_cast<std::size_t>(std::bit_width(v - f.base))];
    ++f.zigzagged[static_cast<std::size_t>(std::bit_width(z))];
  }
  return f;
}

std::size_t head_bits(const CodedPlan& plan) noexcept {
  const std::size_t base = plan.zigzag ? 0 : number_bits(plan.base);
  return kFormBits + (plan.may_be_delta ? 1u : 0u) + 1 + base;
}

CodedPlan as_packed(const StreamPlan& packed) {
  CodedPlan plan;
  plan.values = packed.values;
  plan.packed = packed.head;
  plan.zigzag = packed.head.zigzag;
  plan.base = packed.head.base;
  plan.bits = head_bits(plan) + kPackedBits + 8 * packed.body_bytes();
  if (plan.packed.n_high != 0) plan.bits += kHighBits;
  return plan;
}

// Bins, how many values are in each, and what all takes if codes are as long as they should be.
struct Division {
  CodedForm form = CodedForm::Packed;
  bool zigzag = false;
  unsigned first_width = 0;  // Classes
  std::size_t n_bins = 0;
  std::array<std::uint32_t, kMaxBins> counts;
  std::array<std::uint8_t, kMaxBins> widths;
  double bits = 1e300;

  void add(std::size_t count, unsigned width) noexcept {
    counts[n_bins] = static_cast<std::uint32_t>(count);
    widths[n_bins++] = static_cast<std::uint8_t>(width);
  }
  // A code needs two bins with values.
  bool is_one_bin(std::size_t n) const noexcept {
    return std::find(counts.begin(), counts.begin() + n_bins, n) != counts.begin() + n_bins;
  }
};

// Bins by bit length, of which the least are one: as many of them as is best.
void try_classes(const Facts& f, bool zigzag, Division& best) {
  const Classes& of = zigzag ? f.zigzagged : f.plain;
  std::size_t most = 32;
  while (most > 0 && of[most] == 0) --most;
  const auto apart = [&](std::size_t c) {
    return static_cast<double>(of[c] * (c > 0 ? c - 1 : 0)) - n_log_n(of[c]);
  };
  std::size_t joined = 0, chosen = most;
  double others = n_log_n(f.n), least = best.bits;
  for (std::size_t c = 0; c <= most; ++c) others += apart(c);
  for (std::size_t k = 0; k < most; ++k) {
    joined += of[k];
    others -= apart(k);
    const std::size_t n_bins = most - k + 1;
    const double bits = others + static_cast<double>(joined * k + kClassBits * n_bins) - n_log_n(joined);
    if (bits >= least || n_bins > kMostClasses) continue;
    least = bits;
    chosen = k;
  }
  if (chosen == most) return;
  best.form = CodedForm::Classes;
  best.zigzag = zigzag;
  best.first_width = static_cast<unsigned>(chosen);
  best.bits = least;
  best.n_bins = 0;
  best.add(std::accumulate(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(chosen) + 1, std::size_t{0}),
           static_cast<unsigned>(chosen));
  for (std::size_t c = chosen + 1; c <= most; ++c) best.add(of[c], static_cast<unsigned>(c - 1));
}

// A value less the base, and behind it where in the stream it stands.
using Sorted = std::uint64_t;

// Halves the range of the values, and its halves, as long as that pays.
class BinSearch {
 public:
  BinSearch(std::span<const Sorted> sorted, unsigned width) : sorted_(sorted) {
    division.form = CodedForm::Bins;
    division.bits = split(0, sorted.size(), 0, width) + n_log_n(sorted.size());
    if (is_full_) division.bits = 1e300;
    // Nothing is behind the last value.
    while (division.n_bins > 0 && division.counts[division.n_bins - 1] == 0) --division.n_bins;
  }
  Division division;

 private:
  double split(std::size_t low, std::size_t high, std::uint64_t begin, unsigned width) {
    const std::size_t n = high - low, mark = division.n_bins;
    const double whole = static_cast<double>(n * width + kBinBits) - n_log_n(n);
    // A bin is of 31 bits at most.
    if (width == 0 || (n < kFewestSplit && width < 32)) return keep(mark, n, width), whole;
    const std::uint64_t middle = begin + (std::uint64_t{1} << (width - 1));
    const auto at = std::lower_bound(sorted_.begin() + static_cast<std::ptrdiff_t>(low),
                                     sorted_.begin() + static_cast<std::ptrdiff_t>(high), middle << 32);
    const auto cut = static_cast<std::size_t>(at - sorted_.begin());
    const double halves = split(low, cut, begin, width - 1) + split(cut, high, middle, width - 1);
    if (halves < whole || width == 32) return halves;
    return keep(mark, n, width), whole;
  }
  void keep(std::size_t mark, std::size_t n, unsigned width) noexcept {
    is_full_ = is_full_ || mark == kMaxBins;
    division.n_bins = std::min(mark, kMaxBins - 1);
    division.add(n, width);
  }

  std::span<const Sorted> sorted_;
  bool is_full_ = false;  // more bins than there may be were met on the way
};

// The codes of a division.
CodedPlan coded(std::span<const std::uint32_t> values, const Facts& f, const Division& d) {
  CodedPlan plan;
  plan.values = values;
  plan.form = d.form;
  plan.zigzag = d.zigzag;
  plan.base = d.zigzag ? 0 : f.base;
  plan.width = d.first_width;
  plan.n_bins = d.n_bins;
  for (std::size_t i = 0; i < d.n_bins; ++i) plan.bins[i].width = d.widths[i];
  // Tables for few values are small.
  const auto fewest_bits = static_cast<unsigned>(std::bit_width(d.n_bins - 1));
  const auto most_bits = std::clamp(static_cast<unsigned>(std::bit_width(f.n)), fewest_bits, kMaxCodeLength);
  choose_lengths({d.counts.data(), d.n_bins}, most_bits, {plan.bins.data(), d.n_bins});
  plan.bits =
      head_bits(plan) + (d.form == CodedForm::Classes ? 10 + kClassBits * d.n_bins : 7 + kBinBits * d.n_bins);
  for (std::size_t i = 0; i < d.n_bins; ++i)
    plan.bits += std::size_t{d.counts[i]} * (plan.bins[i].length + plan.bins[i].width);
  return plan;
}

std::vector<Sorted> sort_values(std::span<const std::uint32_t> values, const Facts& f) {
  std::vector<Sorted> sorted(f.n), other;
  for (std::size_t i = 0; i < f.n; ++i) sorted[i] = Sorted{values[i] - f.base} << 32 | i;
  constexpr unsigned kDigit = 8;
  constexpr std::size_t kFewSorted = 64;
  if (f.n < kFewSorted) {
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  other.resize(f.n);
  for (unsigned shift = 0; shift < 32 && f.range >> shift != 0; shift += kDigit) {
    std::array<std::uint32_t, std::size_t{1} << kDigit> at{};
    for (const Sorted v : sorted) ++at[v >> (32 + shift) & 0xff];
    std::uint32_t sum = 0;
    for (std::uint32_t& a : at) sum += std::exchange(a, sum);
    for (const Sorted v : sorted) other[at[v >> (32 + shift) & 0xff]++] = v;
    std::swap(sorted, other);
  }
  return sorted;
}

CodedPlan plan_part(const StreamPlan& stream, bool may_look_up);

// Values that come again and again are told once, in order, and then by their places there.
CodedPlan looked_up(std::span<const std::uint32_t> values, const Facts& f, std::span<const Sorted> sorted) {
  CodedPlan plan;
  plan.form = CodedForm::Lookup;
  plan.values = values;
  plan.base = f.base;
  plan.indices.resize(f.n);
  std::uint64_t before = 0;  // sorted[0] >> 32
  for (const Sorted v : sorted) {
    if (v >> 32 != before)
      plan.gaps.push_back(static_cast<std::uint32_t>((v >> 32) - std::exchange(before, v >> 32)));
    plan.indices[v & 0xffffffff] = static_cast<std::uint32_t>(plan.gaps.size());
  }
  plan.gaps_plan = std::make_unique<CodedPlan>(plan_part(plan_stream(plan.gaps, true, 0), false));
  plan.indices_plan = std::make_unique<CodedPlan>(plan_part(plan_stream(plan.indices, true, 0), false));
  plan.bits = kFormBits + number_bits(static_cast<std::uint32_t>(plan.gaps.size() + 1)) +
              number_bits(plan.base) + plan.gaps_plan->bits + plan.indices_plan->bits;
  return plan;
}

// About what looked_up() would take: the gaps as wide as they are on the average, the places by their
// frequencies, tables for both.
double guess_looked_up(const Facts& f, std::span<const Sorted> sorted) {
  constexpr double kTables = 150;
  double bits = n_log_n(f.n) + kTables, distinct = 0;
  for (std::size_t i = 0, run = 1; i < f.n; ++i, ++run) {
    if (i + 1 < f.n && sorted[i] >> 32 == sorted[i + 1] >> 32) continue;
    bits -= n_log_n(run);
    run = 0;
    ++distinct;
  }
  return bits + distinct * std::log2(1 + f.range / distinct);
}

CodedPlan plan_part(const StreamPlan& stream, bool may_look_up) {
  const std::span<const std::uint32_t> values = stream.values;
  const Facts f = facts_of(values);
  CodedPlan best = as_packed(stream);
  if (f.n < kFewestCoded || f.range == 0) return best;
  Division division;
  try_classes(f, false, division);
  try_classes(f, true, division);
  const std::vector<Sorted> sorted = sort_values(values, f);
  BinSearch bins(sorted, static_cast<unsigned>(std::bit_width(f.range)));
  if (bins.division.bits < division.bits) division = bins.division;
  if (division.form != CodedForm::Packed && !division.is_one_bin(f.n)) {
    CodedPlan codes = coded(values, f, division);
    if (is_worth_it(codes, best)) best = std::move(codes);
  }
  if (!may_look_up || guess_looked_up(f, sorted) >= static_cast<double>(best.bits)) return best;
  CodedPlan other = looked_up(values, f, sorted);
  return other.bits + worth_of_first(other) < best.bits ? std::move(other) : std::move(best);
}

}  // namespace

CodedPlan plan_coded(const StreamPlan& stream) {
  CodedPlan plan;
  if (!stream.values.empty()) plan = plan_part(stream, true);
  plan.may_be_delta = stream.may_be_delta;
  plan.is_delta = stream.head.delta;
  plan.bits += stream.may_be_delta ? 1 : 0;
  return plan;
}

}  // namespace cdd::levels
