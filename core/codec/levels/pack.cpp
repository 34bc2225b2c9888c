#include "core/codec/levels/pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "core/base/scratch.h"
#include "core/codec/levels/coded.h"

namespace cdd::levels {
namespace {

// Wider values are stored as two arrays, low 16 bits and the rest, so that kernels need no wider loads.
constexpr unsigned kMaxPlainWidth = 24;
constexpr unsigned kLowWidth = 16;

// Exceptions take two more arrays to unpack; they must save so many bytes.
constexpr std::size_t kExceptionsWorth = 12;

constexpr unsigned kZigzagBit = 1, kHighBit = 2, kDeltaBit = 4, kHighWidthShift = 3;
constexpr std::array<unsigned, 4> kBaseBytes{0, 1, 2, 4};

std::size_t array_bytes(std::size_t n, unsigned width) noexcept {
  if (width <= kMaxPlainWidth) return (n * width + 7) / 8;
  return n * 2 + (n * (width - kLowWidth) + 7) / 8;
}

unsigned position_width(std::size_t n) noexcept { return static_cast<unsigned>(std::bit_width(n - 1)); }

// Values [first, first + count) of an array of n; first * width is a multiple of 8.
void read_array(const simd::LevelsKernels& kernels, const std::byte* in, unsigned width, std::size_t n,
                std::size_t first, std::size_t count, std::uint32_t base, std::uint32_t* out) {
  if (width <= kMaxPlainWidth) {
    if (count != 0) kernels.unpack(in + first * width / 8, width, count, base, out);
    return;
  }
  const unsigned high_width = width - kLowWidth;
  const std::byte* high = in + n * 2 + first * high_width / 8;
  if (count != 0) kernels.unpack_wide(in + first * 2, high, high_width, count, base, out);
}

void add_exceptions(const simd::LevelsKernels& kernels, const Stream& s, std::size_t first, std::size_t count,
                    std::uint32_t* out) {
  const unsigned position_bits = position_width(s.n);
  const std::byte* positions = s.body + array_bytes(s.n, s.head.width);
  const std::byte* highs = positions + array_bytes(s.head.n_high, position_bits);
  constexpr std::size_t kBlock = 64;
  std::uint32_t position[kBlock + 16], high[kBlock + 16];
  for (std::size_t i = 0; i < s.head.n_high; i += kBlock) {
    const std::size_t m = std::min<std::size_t>(kBlock, s.head.n_high - i);
    read_array(kernels, positions, position_bits, s.head.n_high, i, m, 0, position);
    read_array(kernels, highs, s.head.high_width, s.head.n_high, i, m, 0, high);
    for (std::size_t k = 0; k < m; ++k) {
      const std::size_t at = position[k] - first;
      if (at < count) out[at] += high[k] << s.head.width;
    }
  }
}

// Bits [shift, shift + width) of value_of(i) for n values.
template <class ValueOf>
std::byte* write_array(std::size_t n, const ValueOf& value_of, unsigned shift, unsigned width,
                       std::byte* out) {
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  std::uint64_t bits = 0;
  unsigned filled = 0;  // at most 7 bits of a byte that is not whole yet
  for (std::size_t i = 0; i < n; ++i) {
    bits |= (std::uint64_t{value_of(i)} >> shift & mask) << filled;
    filled += width;
    store<std::uint64_t>(out, bits);
    out += filled / 8;
    bits >>= filled & ~7u;
    filled &= 7;
  }
  store<std::uint8_t>(out, static_cast<std::uint8_t>(bits));
  return out + (filled + 7) / 8;
}

template <class ValueOf>
std::byte* write_wide_array(std::size_t n, const ValueOf& value_of, unsigned width, std::byte* out) {
  if (width <= kMaxPlainWidth) return write_array(n, value_of, 0, width, out);
  out = write_array(n, value_of, 0, kLowWidth, out);
  return write_array(n, value_of, kLowWidth, width - kLowWidth, out);
}

std::uint32_t zigzag(std::uint32_t v) noexcept { return v << 1 ^ (0u - (v >> 31)); }

std::uint32_t coded(const StreamHead& head, std::uint32_t v) noexcept {
  return head.zigzag ? zigzag(v) : v - head.base;
}

// Chooses width, high_width and n_high from how many values have each bit width.
void choose_width(const std::array<std::uint32_t, 33>& counts, std::size_t n, std::size_t exception_worth,
                  StreamHead& head) {
  unsigned widest = 32;
  while (widest > 0 && counts[widest] == 0) --widest;
  head.width = static_cast<std::uint8_t>(widest);
  std::size_t best = array_bytes(n, widest);
  std::size_t n_high = 0;
  const unsigned position_bits = position_width(n);
  for (unsigned width = widest; width-- > 0;) {
    n_high += counts[width + 1];
    if (n_high > 0xffff) break;
    const std::size_t bytes =
        array_bytes(n, width) + 2 + array_bytes(n_high, position_bits) + array_bytes(n_high, widest - width);
    const std::size_t worth = kExceptionsWorth + n_high * exception_worth;
    if (bytes + worth >= best) continue;
    best = bytes + worth;
    head.width = static_cast<std::uint8_t>(width);
    head.high_width = static_cast<std::uint8_t>(widest - width);
    head.n_high = static_cast<std::uint16_t>(n_high);
  }
}

unsigned base_code(std::uint32_t base) noexcept {
  return base == 0 ? 0 : base < 0x100 ? 1 : base < 0x10000 ? 2 : 3;
}

}  // namespace

std::size_t stream_body_bytes(const StreamHead& head, std::size_t n) noexcept {
  std::size_t bytes = array_bytes(n, head.width);
  if (head.n_high != 0) {
    bytes += array_bytes(head.n_high, position_width(n)) + array_bytes(head.n_high, head.high_width);
  }
  return bytes;
}

void take_stream_head(Cursor& in, std::size_t n, Stream& s) {
  // At most 8 bytes, which the padding makes readable: parsed at once, checked by take.
  static_assert(kMaxStreamHeadBytes == 8 && kScratchPadding >= 8);
  const auto word = load<std::uint64_t>(in.next);
  const unsigned flags = word >> 8 & 0xff, base_bytes = kBaseBytes[word >> 6 & 3];
  const bool has_high = (flags & kHighBit) != 0;
  in.take(2 + base_bytes + (has_high ? 2 : 0));
  s.n = static_cast<std::uint32_t>(n);
  s.coded = nullptr;
  s.head.width = word & 0x3f;
  s.head.zigzag = (flags & kZigzagBit) != 0;
  s.head.delta = (flags & kDeltaBit) != 0;
  s.head.base = static_cast<std::uint32_t>(word >> 16 & ((std::uint64_t{1} << base_bytes * 8) - 1));
  s.head.n_high = static_cast<std::uint16_t>(has_high ? word >> (16 + base_bytes * 8) : 0);
  s.head.high_width = has_high ? static_cast<std::uint8_t>((flags >> kHighWidthShift) + 1) : 0;
  if (s.head.n_high > n || s.head.width + s.head.high_width > 32) {
    fail(ErrorCode::Corrupt, "levels: a stream of %d bits a value", s.head.width);
  }
}

void take_stream_body(Cursor& in, Stream& s) { s.body = in.take(stream_body_bytes(s.head, s.n)); }

void read_stream(const simd::LevelsKernels& kernels, const Stream& s, std::size_t first, std::size_t count,
                 std::uint32_t* out) {
  if (s.coded != nullptr) return read_coded(kernels, s, first, count, out);
  read_array(kernels, s.body, s.head.width, s.n, first, count, s.head.zigzag ? 0 : s.head.base, out);
  if (s.head.n_high != 0) add_exceptions(kernels, s, first, count, out);
  if (s.head.zigzag) kernels.unzigzag(out, count);
}

std::size_t StreamPlan::head_bytes() const noexcept {
  return 2 + kBaseBytes[base_code(head.base)] + (head.n_high != 0 ? 2 : 0);
}

StreamPlan plan_stream(std::span<const std::uint32_t> values, bool allow_zigzag,
                       std::size_t exception_worth) {
  StreamPlan plain{values, StreamHead{}};
  if (values.empty()) return plain;
  // Signed order: a stream of small steps up and down has a small range, wherever its values lie.
  std::int32_t least = static_cast<std::int32_t>(values[0]);
  for (const std::uint32_t v : values) least = std::min(least, static_cast<std::int32_t>(v));
  std::array<std::uint32_t, 33> counts{}, zigzag_counts{};
  const auto base = static_cast<std::uint32_t>(least);
  for (const std::uint32_t v : values) ++counts[static_cast<std::size_t>(std::bit_width(v - base))];
  plain.head.base = base;
  choose_width(counts, values.size(), exception_worth, plain.head);
  if (!allow_zigzag) return plain;
  for (const std::uint32_t v : values) ++zigzag_counts[static_cast<std::size_t>(std::bit_width(zigzag(v)))];
  StreamPlan zigzagged{values, StreamHead{}};
  zigzagged.head.zigzag = true;
  choose_width(zigzag_counts, values.size(), exception_worth, zigzagged.head);
  return zigzagged.bytes() < plain.bytes() ? zigzagged : plain;
}

std::byte* write_stream_head(const StreamPlan& plan, std::byte* out) {
  const StreamHead& h = plan.head;
  const unsigned code = base_code(h.base);
  unsigned flags = (h.zigzag ? kZigzagBit : 0) | (h.delta ? kDeltaBit : 0);
  if (h.n_high != 0) flags |= kHighBit | unsigned{h.high_width - 1u} << kHighWidthShift;
  store<std::uint16_t>(out, static_cast<std::uint16_t>(h.width | code << 6 | flags << 8));
  std::memcpy(out + 2, &h.base, kBaseBytes[code]);
  out += 2 + kBaseBytes[code];
  if (h.n_high != 0) {
    store<std::uint16_t>(out, h.n_high);
    out += 2;
  }
  return out;
}

std::byte* write_stream_body(const StreamPlan& plan, std::byte* out) {
  const StreamHead& h = plan.head;
  const std::span<const std::uint32_t> values = plan.values;
  if (h.zigzag) {
    out = write_wide_array(
        values.size(), [=](std::size_t i) { return zigzag(values[i]); }, h.width, out);
  } else {
    const std::uint32_t base = h.base;
    out = write_wide_array(
        values.size(), [=](std::size_t i) { return values[i] - base; }, h.width, out);
  }
  if (h.n_high == 0) return out;
  std::vector<std::uint32_t> positions, highs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t high = coded(h, values[i]) >> h.width;
    if (high == 0) continue;
    positions.push_back(static_cast<std::uint32_t>(i));
    highs.push_back(high);
  }
  const auto position = [&](std::size_t k) { return positions[k]; };
  const auto high = [&](std::size_t k) { return highs[k]; };
  out = write_wide_array(h.n_high, position, position_width(values.size()), out);
  return write_wide_array(h.n_high, high, h.high_width, out);
}

}  // namespace cdd::levels
