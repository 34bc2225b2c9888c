#include "core/codec/numeric/pack.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "core/simd/numeric/plan.h"

namespace cdd::numeric {
namespace {

// Bins must save this much to be worth their slower decoding.
constexpr double kBinsMustSave = 0.03;
constexpr std::uint64_t kBinHeaderBytes = 3;

template <class T>
std::int64_t sign_extend(T v) noexcept {
  return static_cast<std::int64_t>(static_cast<std::make_signed_t<T>>(v));
}

void value_range(const std::uint32_t* v, std::size_t n, std::int64_t* low, std::int64_t* high) noexcept {
  simd::value_range32(v, n, low, high);
}
void value_range(const std::uint64_t* v, std::size_t n, std::int64_t* low, std::int64_t* high) noexcept {
  simd::value_range64(v, n, low, high);
}
void find_intervals(const simd::NumericIntervals& intervals, const std::uint32_t* v, std::size_t n,
                    std::uint8_t* ids) noexcept {
  simd::find_intervals32(intervals, v, n, ids);
}
void find_intervals(const simd::NumericIntervals& intervals, const std::uint64_t* v, std::size_t n,
                    std::uint8_t* ids) noexcept {
  simd::find_intervals64(intervals, v, n, ids);
}

// The bins in ascending order.
simd::NumericIntervals intervals_of(const Packing& packing) noexcept {
  simd::NumericIntervals intervals;
  intervals.n = packing.n_bins;
  for (unsigned i = 0; i < packing.n_bins; ++i) intervals.ids[i] = static_cast<std::uint8_t>(i);
  const auto low_of = [&](std::uint8_t b) { return static_cast<std::int64_t>(packing.bins.bases[b]); };
  std::sort(intervals.ids, intervals.ids + intervals.n,
            [&](auto a, auto b) { return low_of(a) < low_of(b); });
  for (std::size_t k = 0; k < intervals.n; ++k) {
    const unsigned width = packing.bins.widths[intervals.ids[k]];
    intervals.lows[k] = low_of(intervals.ids[k]);
    intervals.spans[k] = width == 0 ? 0 : ~std::uint64_t{0} >> (64 - width);
  }
  return intervals;
}

// Fields of varying width, appended to a little-endian bit stream.
class BitAppender {
 public:
  explicit BitAppender(std::byte* out) noexcept : out_(out) {}
  void put(std::uint64_t v, unsigned width) noexcept {
    word_ |= v << filled_;
    if (filled_ + width >= 64) {
      store<std::uint64_t>(out_, word_);
      out_ += 8;
      word_ = filled_ == 0 ? 0 : v >> (64 - filled_);
    }
    filled_ = (filled_ + width) % 64;
  }
  void finish() noexcept { std::memcpy(out_, &word_, (filled_ + 7) / 8); }

 private:
  std::byte* out_;
  std::uint64_t word_ = 0;
  unsigned filled_ = 0;
};

}  // namespace

template <class T>
PackedStream<T>::PackedStream(const Shape& shape, const T* residuals) : shape_(shape), residuals_(residuals) {
  const std::size_t n = shape.values();
  blocks_.resize(shape.blocks);
  const Spread spread = plan_plain(0);
  const unsigned exception_width = spread.width();  // at most
  if (total_bytes(0) <= kBinHeaderBytes * 2) return;

  std::array<std::int64_t, kMostSampled> sample;
  // Short streams do not pay for a long sample.
  const std::size_t count = std::min(n, n < 2 * kMostSampled ? kMostSampled * 5 / 8 : kMostSampled);
  for (std::size_t i = 0; i < count; ++i) sample[i] = sign_extend(residuals[probe(i, count, n)]);
  sort_sample({sample.data(), count});
  packing_ = plan_window({sample.data(), count});
  if (packing_.window_width < exception_width) plan_plain(exception_width);

  const Packing plain = packing_;
  std::vector<BlockPlan> plain_blocks = blocks_;
  const std::uint64_t plain_bytes = total_bytes(exception_width);
  packing_ = plan_bins({sample.data(), count}, spread);
  binned_ = packing_.n_bins > 1 && plan_binned(plain_bytes, exception_width);
  if (!binned_) {
    packing_ = plain;
    blocks_ = std::move(plain_blocks);
  }
  range_exceptions();
}

template <class T>
std::size_t PackedStream<T>::first_of(std::size_t block) const noexcept {
  return shape_.first_value(block / shape_.segment_blocks) + block % shape_.segment_blocks * kBlockValues;
}

template <class T>
std::uint64_t PackedStream<T>::block_bytes(const BlockPlan& plan, std::size_t n,
                                           unsigned exception_width) const noexcept {
  return simd::packed_bytes(n, plan.width) + (plan.offset_bits + 7) / 8 + plan.exceptions +
         simd::packed_bytes(plan.exceptions, exception_width);
}

template <class T>
std::uint64_t PackedStream<T>::total_bytes(unsigned exception_width) const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    bytes += block_bytes(blocks_[b], shape_.block_values(b), exception_width);
  }
  return bytes;
}

template <class T>
Spread PackedStream<T>::plan_plain(unsigned exception_width) {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  std::int64_t highest = std::numeric_limits<std::int64_t>::min();
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const T* const v = residuals_ + first_of(b);
    const std::size_t n = shape_.block_values(b);
    std::int64_t low;
    std::int64_t high;
    value_range(v, n, &low, &high);
    lowest = std::min(lowest, low);
    highest = std::max(highest, high);
    BlockPlan plan;
    plan.base = static_cast<std::uint64_t>(low);
    plan.width = bit_width(static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
    if (plan.width > packing_.window_width) {
      BlockPlan windowed;
      windowed.base = static_cast<std::uint64_t>(packing_.window_base);
      windowed.width = packing_.window_width;
      const T base = static_cast<T>(windowed.base);
      for (std::size_t i = 0; i < n; ++i) {
        windowed.exceptions +=
            windowed.width < 64 && std::uint64_t{static_cast<T>(v[i] - base)} >> windowed.width != 0;
      }
      if (block_bytes(windowed, n, exception_width) < block_bytes(plan, n, exception_width)) plan = windowed;
    }
    blocks_[b] = plan;
  }
  return {lowest, highest, shape_.values()};
}

// False, leaving plans of no use, when bins do not save enough.
template <class T>
bool PackedStream<T>::plan_binned(std::uint64_t most_bytes, unsigned exception_width) {
  const unsigned n_bins = packing_.n_bins;
  const unsigned selector_bits = bit_width(n_bins - 1);
  const unsigned filler = packing_.bins.widths[0];  // an exception also takes an offset, in the first bin
  bin_of_.resize(shape_.values());
  find_intervals(intervals_of(packing_), residuals_, shape_.values(), bin_of_.data());
  std::uint64_t bytes = n_bins * kBinHeaderBytes;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const std::size_t first = first_of(b);
    const std::size_t n = shape_.block_values(b);
    std::array<std::array<std::uint16_t, kMaxBins + 1>, 4> counts{};  // several: neighbours often share a bin
    for (std::size_t i = first; i < first + n; ++i) ++counts[i % 4][bin_of_[i]];
    BlockPlan best;
    std::uint64_t best_bytes = ~std::uint64_t{0};
    BlockPlan plan;
    plan.exceptions = static_cast<std::uint32_t>(n);
    plan.offset_bits = static_cast<std::uint32_t>(n) * filler;
    unsigned included = 0;
    for (unsigned k = 0; k <= selector_bits; ++k) {
      for (; included < std::min(1u << k, n_bins); ++included) {
        std::uint32_t count = 0;
        for (const auto& some : counts) count += some[included];
        plan.exceptions -= count;
        plan.offset_bits += count * packing_.bins.widths[included] - count * filler;
      }
      plan.width = k;
      const std::uint64_t size = block_bytes(plan, n, exception_width);
      if (size >= best_bytes) continue;
      best = plan;
      best_bytes = size;
    }
    blocks_[b] = best;
    bytes += best_bytes + 1;
  }
  return static_cast<double>(bytes) < static_cast<double>(most_bytes) * (1 - kBinsMustSave);
}

template <class T>
bool PackedStream<T>::is_exception(const BlockPlan& plan, std::size_t i) const noexcept {
  if (binned_) return bin_of_[i] >= 1u << plan.width;
  const T offset = static_cast<T>(residuals_[i] - static_cast<T>(plan.base));
  return plan.width < 64 && std::uint64_t{offset} >> plan.width != 0;
}

template <class T>
void PackedStream<T>::range_exceptions() {
  bool any = false;
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b].exceptions == 0) continue;
    const std::size_t first = first_of(b);
    for (std::size_t i = first; i < first + shape_.block_values(b); ++i) {
      if (!is_exception(blocks_[b], i)) continue;
      const std::int64_t v = sign_extend(residuals_[i]);
      low = any ? std::min(low, v) : v;
      high = any ? std::max(high, v) : v;
      any = true;
    }
  }
  has_exceptions_ = any;
  exception_base_ = static_cast<std::uint64_t>(low);
  exception_width_ = bit_width(static_cast<std::uint64_t>(high) - exception_base_);
}

template <class T>
void PackedStream<T>::put_header(Writer& out) const {
  if (binned_) {
    out.byte(packing_.n_bins);
    for (unsigned b = 0; b < packing_.n_bins; ++b) {
      out.signed_varint(packing_.bins.bases[b]);
      out.byte(packing_.bins.widths[b]);
    }
  }
  std::vector<std::uint64_t> column(blocks_.size());
  const auto put_column = [&](auto value_of) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) column[b] = value_of(b);
    out.packed(column);
  };
  put_column([&](std::size_t b) { return blocks_[b].width; });
  put_column([&](std::size_t b) {
    return binned_ ? block_bytes(blocks_[b], shape_.block_values(b), exception_width_) : blocks_[b].base;
  });
  if (!has_exceptions_) return;
  put_column([&](std::size_t b) { return blocks_[b].exceptions; });
  out.byte(exception_width_);
  out.signed_varint(exception_base_);
}

template <class T>
void PackedStream<T>::put_plain(const BlockPlan& plan, std::size_t first, std::size_t n, Writer& out) const {
  std::byte* const p = out.claim(simd::packed_bytes(n, plan.width));
  if (p == nullptr) return;
  if constexpr (sizeof(T) == 8) {
    simd::pack64(residuals_ + first, n, plan.width, plan.base, p);
  } else {
    simd::pack32(residuals_ + first, n, plan.width, static_cast<T>(plan.base), p);
  }
}

template <class T>
void PackedStream<T>::put_binned(const BlockPlan& plan, std::size_t first, std::size_t n, Writer& out) const {
  std::byte* const selectors = out.claim(simd::packed_bytes(n, plan.width));
  std::byte* const offsets = out.claim((plan.offset_bits + 7) / 8);
  if (!out.fitted()) return;
  BitAppender selector_bits(selectors);
  BitAppender offset_bits(offsets);
  for (std::size_t i = first; i < first + n; ++i) {
    const bool outside = is_exception(plan, i);
    const unsigned bin = outside ? 0 : bin_of_[i];
    const unsigned width = packing_.bins.widths[bin];
    selector_bits.put(bin, plan.width);
    offset_bits.put(
        outside ? 0 : static_cast<std::uint64_t>(sign_extend(residuals_[i])) - packing_.bins.bases[bin],
        width);
  }
  selector_bits.finish();
  offset_bits.finish();
}

template <class T>
void PackedStream<T>::put_data(Writer& out) const {
  std::uint64_t bytes = total_bytes(exception_width_);
  out.varint(bytes);
  std::vector<std::uint64_t> values;
  for (std::size_t b = 0; b < blocks_.size() && out.fitted(); ++b) {
    const BlockPlan& plan = blocks_[b];
    const std::size_t first = first_of(b);
    const std::size_t n = shape_.block_values(b);
    if (binned_) {
      put_binned(plan, first, n, out);
    } else {
      put_plain(plan, first, n, out);
    }
    if (plan.exceptions == 0) continue;
    values.clear();
    for (std::size_t i = first; i < first + n; ++i) {
      if (!is_exception(plan, i)) continue;
      out.byte(static_cast<unsigned>(i - first));
      values.push_back(static_cast<std::uint64_t>(sign_extend(residuals_[i])));
    }
    out.bits64(values, exception_width_, exception_base_);
  }
}

template class PackedStream<std::uint32_t>;
template class PackedStream<std::uint64_t>;

}  // namespace cdd::numeric
