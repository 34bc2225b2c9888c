#include "core/codec/blosc/runs.h"

#include <array>
#include <bit>
#include <cstring>

#include "core/codec/blosc/literals.h"
#include "core/codec/blosc/zstd_frame.h"
#include "core/simd/byte_repeats.h"

namespace cdd::blosc {
namespace {

// A run takes some 14 bits, a byte between two of them hardly more than one.
constexpr std::size_t kLeastRun = 16;
static_assert(std::has_single_bit(kLeastRun));  // see find_run()
constexpr std::size_t kLeastCoded = 32;         // fewer literals are stored as they are
constexpr std::size_t kMostOnePart = 1023;
constexpr std::size_t kShortCopy = 16;
constexpr std::size_t kLeastGain = 4;  // what shrinks less may do so by a search
constexpr unsigned kWholeBits = 57;    // of a word that was loaded from within a byte

// How zstd's format writes a number: a code, then as many more bits as that has.
template <std::size_t kCodes>
struct Numbers {
  std::array<std::uint8_t, kCodes> bits;
  std::array<std::uint32_t, kCodes> firsts{};
  std::array<std::uint8_t, 128> codes{};  // of the numbers below 128
  unsigned greater;                       // plus the place of its highest bit: the code of any other

  constexpr Numbers(const std::array<std::uint8_t, kCodes>& bits_of, unsigned above)
      : bits(bits_of), greater(above) {
    std::uint32_t next = 0;
    for (std::size_t code = 0; code < kCodes; ++code) {
      firsts[code] = next;
      next += std::uint32_t{1} << bits[code];
      for (std::uint32_t v = firsts[code]; v < next && v < codes.size(); ++v) {
        codes[v] = static_cast<std::uint8_t>(code);
      }
    }
  }
  std::size_t code_of(std::uint32_t number) const noexcept {
    return number < codes.size() ? codes[number] : greater + static_cast<unsigned>(std::bit_width(number));
  }
  void put_rest(std::uint32_t number, std::size_t code, BitWriter& writer) const noexcept {
    writer.add(number - firsts[code], bits[code]);
  }
};

constexpr std::uint32_t kLeastMatch = 3;  // the number that stands for it is 0
constexpr Numbers<36> kLiteralCounts({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
                                      1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                                     18);
constexpr Numbers<53> kMatchLengths({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
                                     2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                                    35);
static_assert(kLiteralCounts.firsts.back() == 1 << 16 && kMatchLengths.firsts.back() == 1 << 16);
// The format's own shares, which need not be described.
constexpr StateCoder<36> kLiteralCountStates({4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                              2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1});
constexpr StateCoder<53> kMatchLengthStates({1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                             1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                             1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1});

// The marks from place `at` on, kWholeBits of them at least; others are 0.
std::uint64_t marks_from(const std::byte* marks, std::size_t at) noexcept {
  return load<std::uint64_t>(marks + at / 8) >> at % 8;
}

// The first of kLeastRun marks in a row, `end` where there are none.
std::size_t find_run(const std::byte* marks, std::size_t at, std::size_t end) noexcept {
  for (; at < end; at += kWholeBits - (kLeastRun - 1)) {
    std::uint64_t rows = marks_from(marks, at);
    for (unsigned n = 1; n < kLeastRun; n *= 2) rows &= rows >> n;
    if (rows != 0) return at + static_cast<std::size_t>(std::countr_zero(rows));
  }
  return end;
}

// The first place without a mark; behind the last one there is none.
std::size_t find_end(const std::byte* marks, std::size_t at) noexcept {
  for (;; at += kWholeBits) {
    const std::uint64_t others = ~marks_from(marks, at) & ((std::uint64_t{1} << kWholeBits) - 1);
    if (others != 0) return at + static_cast<std::size_t>(std::countr_zero(others));
  }
}

// A section's header: kind, how its size is written, size. Returns its end.
std::byte* put_plain_header(unsigned kind, std::size_t size, std::byte* out) noexcept {
  const unsigned bytes = size < 32 ? 1 : size < 4096 ? 2 : 3;
  const auto header = bytes == 1 ? kind | size << 3 : kind | (2 * bytes - 3) << 2 | size << 4;
  store<std::uint32_t>(out, static_cast<std::uint32_t>(header));
  return out + bytes;
}

// The literals by codes; null where there are none or they would be no smaller.
std::byte* put_coded(Bytes literals, const std::array<std::uint32_t, 256>& counts, LiteralCode& code,
                     std::byte* out) {
  if (literals.size() < kLeastCoded || !code.make(counts, 0)) return nullptr;
  const bool is_one = literals.size() <= kMostOnePart;
  std::byte* const first = out + (is_one ? 3 : 5);
  std::byte* const end = code.put(literals, is_one ? 1 : 4, first);
  const auto stored = static_cast<std::uint64_t>(end - first);
  if (stored >= literals.size()) return nullptr;
  const std::uint64_t header = is_one ? 2 | literals.size() << 4 | stored << 14
                                      : 2 | 3 << 2 | std::uint64_t{literals.size()} << 4 | stored << 22;
  std::memcpy(out, &header, is_one ? 3 : 5);
  return end;
}

std::byte* put_literals(Bytes literals, LiteralCode& code, std::byte* out) {
  Counting counting;
  counting.add(literals);
  const auto counts = counting.sums<std::uint32_t>();
  if (counts[std::to_integer<std::size_t>(literals[0])] == literals.size()) {
    out = put_plain_header(1, literals.size(), out);
    *out = literals[0];
    return out + 1;
  }
  if (std::byte* const end = put_coded(literals, counts, code, out)) return end;
  out = put_plain_header(0, literals.size(), out);
  std::memcpy(out, literals.data(), literals.size());
  return out + literals.size();
}

std::byte* put_count(std::size_t n, std::byte* out) noexcept {
  if (n >= 128) *out++ = static_cast<std::byte>(128 + (n >> 8));
  *out++ = static_cast<std::byte>(n);
  return out;
}

}  // namespace

RunEncoder::Found RunEncoder::find(Bytes stream) {
  const std::size_t n = stream.size(), mark_bytes = (n + 7) / 8;
  std::byte* const marks = marks_.get(mark_bytes).data();
  simd::mark_repeats(stream.data(), n, marks);
  store<std::uint64_t>(marks + mark_bytes, 0);
  std::byte* const literals = literals_.get(n).data();
  std::byte* const runs = runs_.get(n / kLeastRun * sizeof(Run)).data();
  std::size_t n_literals = 0, count = 0, done = 0;
  for (;;) {
    const std::size_t begin = find_run(marks, done, n), length = begin - done;
    // Most are short, and copies of one size are fast.
    const bool is_short = length <= kShortCopy && done + kShortCopy <= n;
    std::memcpy(literals + n_literals, stream.data() + done, is_short ? kShortCopy : length);
    n_literals += length;
    if (begin == n) return {{literals, n_literals}, runs, count};
    done = find_end(marks, begin + kLeastRun);
    const Run run{static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(done - begin)};
    store<Run>(runs + count++ * sizeof(Run), run);
  }
}

// Counts and lengths by the format's own shares, all distances by one code: that of the one before, which is
// 1 at first.
std::byte* RunEncoder::put_runs(const Found& found, std::byte* out) noexcept {
  constexpr std::byte kModes{1 << 4}, kSameDistance{0};
  out = put_count(found.count, out);
  *out++ = kModes;
  *out++ = kSameDistance;
  BitWriter writer{out};
  unsigned count_state = 0, length_state = 0;
  for (std::size_t i = found.count; i-- > 0;) {
    const Run run = load<Run>(found.runs + i * sizeof(Run));
    const std::uint32_t length = run.repeats - kLeastMatch;
    const std::size_t count_code = kLiteralCounts.code_of(run.literals);
    const std::size_t length_code = kMatchLengths.code_of(length);
    if (i + 1 == found.count) {
      length_state = kMatchLengthStates.begin(length_code);
      count_state = kLiteralCountStates.begin(count_code);
    } else {
      length_state = kMatchLengthStates.add(length_state, length_code, writer);
      count_state = kLiteralCountStates.add(count_state, count_code, writer);
    }
    kLiteralCounts.put_rest(run.literals, count_code, writer);
    kMatchLengths.put_rest(length, length_code, writer);
    writer.flush();
  }
  kMatchLengthStates.end(length_state, writer);
  kLiteralCountStates.end(count_state, writer);
  return writer.end_marked();
}

std::size_t RunEncoder::encode(Bytes stream, MutableBytes out) {
  const std::size_t n = stream.size();
  if (n < kLeastLiterals || n > kMostLiterals) return 0;
  const Found found = find(stream);
  if (found.count == 0) return 0;
  std::byte* const block = put_frame_header(n, out.data());
  std::byte* const section = put_literals(found.literals, code_, block + kBlockHeaderBytes);
  const std::byte* const end = put_runs(found, section);
  const auto stored = static_cast<std::size_t>(end - out.data());
  if (stored > n / kLeastGain) return 0;
  put_block_header(Block::Compressed, static_cast<std::size_t>(end - block) - kBlockHeaderBytes, block);
  return stored;
}

std::size_t run_scratch_bytes(std::size_t stream) noexcept {
  return stream + stream / 8 + stream / kLeastRun * 8 + 3 * kScratchPadding;
}

}  // namespace cdd::blosc
