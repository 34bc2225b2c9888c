// The decoder of coded streams.

#include "core/codec/levels/coded.h"
#include "core/codec/work.h"

#include <algorithm>

namespace cdd::levels {
namespace {

constexpr std::size_t kBinsAtOnce = 6;  // whose widths and codes are in a word, whatever kind they are
constexpr std::size_t kRoomSlack = 64;  // behind each array, for whole vectors

[[noreturn]] void fail_bits() { fail(ErrorCode::Corrupt, "levels: coded streams end too early"); }

void check_lanes(const simd::CodeLanes& lanes) {
  for (std::size_t l = 0; l < simd::kCodeLanes; ++l) {
    if (lanes.bit[l] > lanes.end[l]) fail_bits();
  }
}

// Values [first, first + count) of the stream that the lanes begin with.
void read_lanes(const simd::LevelsKernels& kernels, const CodedValues& c, std::size_t first,
                std::size_t count, std::uint32_t* out) {
  simd::CodeLanes lanes = c.lanes;
  constexpr std::size_t kSkipped = 256;
  std::uint32_t skipped[kSkipped];
  for (std::size_t i = 0; i < first; i += kSkipped) {
    kernels.read_codes(c.table, lanes, std::min(kSkipped, first - i), skipped);
    check_lanes(lanes);
  }
  kernels.read_codes(c.table, lanes, count, out);
  check_lanes(lanes);
}

void look_up(const CodedValues& c, std::size_t count, std::uint32_t* out) {
  std::uint32_t worst = 0;
  const std::uint32_t last = c.n_lookup - 1;
  for (std::size_t i = 0; i < count; ++i) {
    worst = std::max(worst, out[i]);
    out[i] = c.lookup[std::min(out[i], last)];
  }
  if (worst > last) fail(ErrorCode::Corrupt, "levels: value %u of %u", worst, c.n_lookup);
}

}  // namespace

struct CodedReader::Part {
  Stream* stream;      // its head, and where the body goes
  CodedValues* coded;  // null: packed, and not part of a lookup
  const Bin* bins;     // null: packed
  std::size_t n_bins;
  std::uint32_t* gaps;  // if not null, this is of the gaps of a lookup, which go there
};

CodedReader::CodedReader(const Cursor& in, std::size_t most_values, std::size_t n_streams)
    : bytes_(in.next), end_(static_cast<std::size_t>(in.end - in.next) * 8) {
  // Of each stream, at most: its values, and those they are looked up in; two parts, and what they have.
  constexpr std::size_t kArrays = 8;
  constexpr std::size_t kPartBytes =
      sizeof(Part) + sizeof(CodedValues) + (kMaxBins + kBinsAtOnce) * sizeof(Bin);
  const std::size_t bytes = most_values * 12 +
                            n_streams * (2 * kPartBytes + sizeof(Stream) + kArrays * (kRoomSlack + 64)) +
                            (sizeof(CodeEntry) << kMaxCodeLength) + 2 * (kRoomSlack + 64);
  next_room_ = scratch<CodecWork2>().get(bytes).data();
  parts_ = room<Part>(2 * n_streams);
}

template <class T>
T* CodedReader::room(std::size_t n) noexcept {
  auto* const p = reinterpret_cast<T*>(next_room_);
  next_room_ += align_up(n * sizeof(T) + kRoomSlack, 64);
  return p;
}

std::uint32_t CodedReader::bits(unsigned n) {
  if (n > end_ - bit_) fail_bits();
  const std::uint64_t word = load<std::uint64_t>(bytes_ + bit_ / 8) >> bit_ % 8;
  bit_ += n;
  return static_cast<std::uint32_t>(word & ((std::uint64_t{1} << n) - 1));
}

std::uint32_t CodedReader::number() {
  const unsigned n = bits(6);
  if (n > 32) fail(ErrorCode::Corrupt, "levels: a number of %u bits", n);
  return bits(n);
}

void CodedReader::take_head(std::size_t n, bool may_be_delta, Stream& s) {
  s = {};
  s.n = static_cast<std::uint32_t>(n);
  if (n == 0) return;
  const auto form = static_cast<CodedForm>(bits(2));
  if (may_be_delta) s.head.delta = bits(1) != 0;
  if (form == CodedForm::Lookup) return take_lookup(n, s);
  take_part(n, form, s);
}

void CodedReader::take_part(std::size_t n, CodedForm form, Stream& s) {
  s.n = static_cast<std::uint32_t>(n);
  s.head.zigzag = bits(1) != 0;
  s.head.base = s.head.zigzag ? 0 : number();
  Part& part = parts_[n_parts_++];
  part = {&s, nullptr, nullptr, 0, nullptr};
  if (form == CodedForm::Packed) {
    s.head.width = static_cast<std::uint8_t>(bits(6));
    if (bits(1) != 0) {
      s.head.high_width = static_cast<std::uint8_t>(bits(5) + 1);
      s.head.n_high = static_cast<std::uint16_t>(bits(16));
    }
    if (s.head.width + s.head.high_width > 32 || s.head.n_high > n) {
      fail(ErrorCode::Corrupt, "levels: a stream of %d bits a value", s.head.width);
    }
    return;
  }
  ++n_coded_;
  take_bins(form, part);
  part.coded = room<CodedValues>(1);
  *part.coded = {};
  s.coded = part.coded;
}

void CodedReader::take_bins(CodedForm form, Part& part) {
  const bool are_classes = form == CodedForm::Classes;
  const unsigned first_width = are_classes ? bits(5) : 0, bin_bits = are_classes ? 4 : 9;
  part.n_bins = bits(are_classes ? 5 : 7) + 1;
  if (part.n_bins * bin_bits > end_ - bit_) fail_bits();
  Bin* const bins = room<Bin>(part.n_bins + kBinsAtOnce);
  part.bins = bins;
  std::size_t at = bit_;
  for (std::size_t i = 0; i < part.n_bins; i += kBinsAtOnce, at += kBinsAtOnce * bin_bits) {
    std::uint64_t word = load<std::uint64_t>(bytes_ + at / 8) >> at % 8;
    for (std::size_t k = i; k < i + kBinsAtOnce; ++k, word >>= bin_bits) {
      bins[k] = are_classes
                    ? Bin{static_cast<std::uint8_t>(first_width + k - (k != 0)),
                          static_cast<std::uint8_t>(word & 15)}
                    : Bin{static_cast<std::uint8_t>(word & 31), static_cast<std::uint8_t>(word >> 5 & 15)};
    }
  }
  bit_ += part.n_bins * bin_bits;
  if (bins[part.n_bins - 1].width > 31) fail(ErrorCode::Corrupt, "levels: a class of more than 31 bits");
}

// A list of values, told by the gaps between them, and indices into it.
void CodedReader::take_lookup(std::size_t n, Stream& s) {
  const std::uint32_t n_lookup = number();
  if (n_lookup < 2 || n_lookup > n) fail(ErrorCode::Corrupt, "levels: %u values for %zu", n_lookup, n);
  std::uint32_t* const lookup = room<std::uint32_t>(n_lookup);
  lookup[0] = number();
  const auto form = [&] {
    const auto f = static_cast<CodedForm>(bits(2));
    if (f == CodedForm::Lookup) fail(ErrorCode::Corrupt, "levels: a list of values in a list");
    return f;
  };
  Stream* const gaps = room<Stream>(1);
  *gaps = {};
  take_part(n_lookup - 1, form(), *gaps);
  parts_[n_parts_ - 1].gaps = lookup;
  take_part(n, form(), s);
  if (s.coded == nullptr) {
    Part& part = parts_[n_parts_ - 1];
    part.coded = room<CodedValues>(1);
    *part.coded = {};
    s.coded = part.coded;
  }
  CodedValues* const coded = parts_[n_parts_ - 1].coded;
  coded->lookup = lookup;
  coded->n_lookup = n_lookup;
}

const std::byte* CodedReader::take_bodies(std::size_t special_bytes) {
  std::uint32_t sizes[simd::kCodeLanes - 1] = {};
  for (std::uint32_t& size : sizes) {
    if (n_coded_ != 0) size = number();
  }
  Cursor in{bytes_ + (bit_ + 7) / 8, bytes_ + end_ / 8};
  for (std::size_t i = 0; i < n_parts_; ++i) {
    if (parts_[i].bins == nullptr) take_stream_body(in, *parts_[i].stream);
  }
  const std::byte* const specials = in.take(special_bytes);
  lanes_.bytes = in.next;
  lanes_.all_bytes = static_cast<std::size_t>(in.end - in.next);
  for (std::size_t l = 0; l < simd::kCodeLanes; ++l) {
    lanes_.bit[l] = static_cast<std::size_t>(in.next - lanes_.bytes) * 8;
    in.take(l + 1 < simd::kCodeLanes ? sizes[l] : static_cast<std::size_t>(in.end - in.next));
    lanes_.end[l] = static_cast<std::size_t>(in.next - lanes_.bytes) * 8;
  }
  std::size_t n_left = n_coded_;
  for (std::size_t i = 0; i < n_parts_; ++i) {
    if (parts_[i].bins != nullptr) --n_left;
    decode(parts_[i], n_left == 0);
  }
  return specials;
}

void CodedReader::decode(Part& part, bool is_last) {
  const simd::LevelsKernels& kernels = simd::levels_kernels();
  Stream& s = *part.stream;
  if (part.bins != nullptr) {
    CodeEntry entries[std::size_t{1} << kMaxCodeLength];
    CodedValues& c = *part.coded;
    const bool waits = is_last && part.gaps == nullptr;
    CodeEntry* const to = waits ? room<CodeEntry>(std::size_t{1} << kMaxCodeLength) : entries;
    if (!make_code_table({part.bins, part.n_bins}, s.head.base, to, c.table)) {
      fail(ErrorCode::Corrupt, "levels: codes of %zu bins are not complete", part.n_bins);
    }
    if (waits) {
      c.lanes = lanes_;
      return;
    }
    auto* const values = room<std::uint32_t>(s.n);
    kernels.read_codes(c.table, lanes_, s.n, values);
    check_lanes(lanes_);
    if (s.head.zigzag) kernels.unzigzag(values, s.n);
    c.values = values;
  }
  if (part.gaps == nullptr) return;
  read_stream(kernels, s, 0, s.n, part.gaps + 1);
  kernels.prefix_sum(part.gaps, s.n + 1);
}

void read_coded(const simd::LevelsKernels& kernels, const Stream& s, std::size_t first, std::size_t count,
                std::uint32_t* out) {
  const CodedValues& c = *s.coded;
  if (c.values != nullptr) {
    std::copy_n(c.values + first, count, out);
  } else if (c.table.most_bits != 0) {
    read_lanes(kernels, c, first, count, out);
    if (s.head.zigzag) kernels.unzigzag(out, count);
  } else {
    Stream indices = s;
    indices.coded = nullptr;
    read_stream(kernels, indices, first, count, out);
  }
  if (c.lookup != nullptr) look_up(c, count, out);
}

}  // namespace cdd::levels
