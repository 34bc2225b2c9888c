// Writes coded streams: heads, bodies, specials, lanes.

#include <algorithm>
#include <bit>
#include <vector>

#include "core/codec/levels/coded.h"

namespace cdd::levels {
namespace {

void put_number(std::uint32_t v, BitWriter& out) {
  const auto n = static_cast<unsigned>(std::bit_width(v));
  out.put(n, kNumberBits);
  out.put(v, n);
}

void write_head(const CodedPlan& plan, BitWriter& out) {
  out.put(static_cast<unsigned>(plan.form), kFormBits);
  if (plan.may_be_delta) out.put(plan.is_delta, 1);
  if (plan.form == CodedForm::Lookup) {
    put_number(static_cast<std::uint32_t>(plan.gaps.size() + 1), out);
    return put_number(plan.base, out);
  }
  out.put(plan.zigzag, 1);
  if (!plan.zigzag) put_number(plan.base, out);
  if (plan.form == CodedForm::Packed) {
    const bool has_high = plan.packed.n_high != 0;
    out.put(plan.packed.width | unsigned{has_high} << 6, kPackedBits);
    if (has_high) out.put((plan.packed.high_width - 1u) | unsigned{plan.packed.n_high} << 5, kHighBits);
    return;
  }
  const std::span<const Bin> bins(plan.bins.data(), plan.n_bins);
  if (plan.form == CodedForm::Classes) {
    out.put(plan.width, 5);
    out.put(plan.n_bins - 1, 5);
    for (const Bin& bin : bins) out.put(bin.length, kClassBits);
    return;
  }
  out.put(plan.n_bins - 1, 7);
  for (const Bin& bin : bins) out.put(bin.width | unsigned{bin.length} << 5, kBinBits);
}

// Finds the bin of a value: by a table of their beginnings.
class BinFinder {
 public:
  explicit BinFinder(const CodedPlan& plan)
      : bins_(plan.bins.data(), plan.n_bins), zigzag_(plan.zigzag), base_(plan.base) {
    std::uint64_t begin = 0;
    for (const Bin& bin : bins_) {
      begins_[n_++] = begin;
      begin += std::uint64_t{1} << bin.width;
    }
    make_codes(bins_, codes_);
  }
  void put(std::uint32_t value, BitWriter& out) const noexcept {
    const std::uint32_t v = zigzag_ ? value << 1 ^ (0u - (value >> 31)) : value - base_;
    const auto behind = std::upper_bound(begins_.begin(), begins_.begin() + n_, std::uint64_t{v});
    const auto i = static_cast<std::size_t>(behind - begins_.begin()) - 1;
    out.put(codes_[i] | (v - begins_[i]) << bins_[i].length, unsigned{bins_[i].length} + bins_[i].width);
  }

 private:
  std::span<const Bin> bins_;
  bool zigzag_;
  std::uint32_t base_;
  std::ptrdiff_t n_ = 0;
  std::array<std::uint64_t, kMaxBins> begins_;
  std::array<std::uint16_t, kMaxBins> codes_;
};

// visit(plan) for all plans that are not of lookups but of their parts.
template <class Visit>
void for_each_part(std::span<const CodedPlan* const> plans, const Visit& visit) {
  for (const CodedPlan* plan : plans) {
    if (plan->values.empty()) continue;
    if (plan->form != CodedForm::Lookup) {
      visit(*plan);
      continue;
    }
    visit(*plan->gaps_plan);
    visit(*plan->indices_plan);
  }
}

}  // namespace

std::byte* write_coded(std::span<const CodedPlan* const> plans, std::span<const std::byte> specials,
                       std::byte* out) {
  BitWriter heads(out);
  for (const CodedPlan* plan : plans) {
    if (plan->values.empty()) continue;
    write_head(*plan, heads);
    if (plan->form != CodedForm::Lookup) continue;
    write_head(*plan->gaps_plan, heads);
    write_head(*plan->indices_plan, heads);
  }
  // Lanes are made first: their sizes stand with the heads.
  std::array<std::vector<std::byte>, simd::kCodeLanes> lanes;
  std::array<BitWriter, simd::kCodeLanes> writers{BitWriter(nullptr), BitWriter(nullptr), BitWriter(nullptr),
                                                  BitWriter(nullptr)};
  std::size_t bits = 0;
  for_each_part(plans, [&](const CodedPlan& plan) {
    if (plan.form != CodedForm::Packed) bits += plan.bits;
  });
  for (std::size_t l = 0; l < lanes.size() && bits != 0; ++l) {
    lanes[l].resize(bits / 8 + 16);  // more than enough for any lane
    writers[l] = BitWriter(lanes[l].data());
  }
  for_each_part(plans, [&](const CodedPlan& plan) {
    if (plan.form == CodedForm::Packed) return;
    const BinFinder finder(plan);
    for (std::size_t i = 0; i < plan.values.size(); ++i)
      finder.put(plan.values[i], writers[i % lanes.size()]);
  });
  std::array<std::size_t, simd::kCodeLanes> sizes{};
  for (std::size_t l = 0; l < lanes.size() && bits != 0; ++l) {
    sizes[l] = static_cast<std::size_t>(writers[l].to_byte() - lanes[l].data());
    if (l + 1 < lanes.size()) put_number(static_cast<std::uint32_t>(sizes[l]), heads);
  }
  out = heads.to_byte();
  for_each_part(plans, [&](const CodedPlan& plan) {
    if (plan.form != CodedForm::Packed) return;
    out = write_stream_body({plan.values, plan.packed}, out);
  });
  out = std::copy(specials.begin(), specials.end(), out);
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    out = std::copy_n(lanes[l].begin(), sizes[l], out);
  }
  return out;
}

}  // namespace cdd::levels
