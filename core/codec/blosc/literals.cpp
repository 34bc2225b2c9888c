#include "core/codec/blosc/literals.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/codec/levels/prefix_code.h"

namespace cdd::blosc {
namespace {

constexpr std::uint32_t kMagic = 0xfd2fb528;
constexpr unsigned kMostBits = simd::kMostByteCodeBits;  // of a code
constexpr std::size_t kFrameHeaderMost = 9, kBlockHeaderBytes = 3, kSectionHeaderBytes = 5, kJumpBytes = 6;
constexpr std::size_t kSamplePieces = 16, kPieceBytes = 128;
constexpr std::uint32_t kSampleBytes = kSamplePieces * kPieceBytes;
constexpr std::size_t kTail = 4;  // bytes so near to one that came may come, too

// Bits from the lowest of each byte on, written eight bytes at a time.
struct BitWriter {
  std::byte* at;
  std::uint64_t bits = 0;
  unsigned count = 0;

  void add(std::uint64_t value, unsigned length) noexcept {
    bits |= value << count;
    count += length;
  }
  // At most 7 bits are left, so that 57 may be added.
  void flush() noexcept {
    store<std::uint64_t>(at, bits);
    at += count / 8;
    bits >>= count & ~7u;
    count &= 7;
  }
  std::byte* end() noexcept {
    flush();
    return at + (count != 0);
  }
  // Where a reader that comes from the end begins: behind a last 1.
  std::byte* end_marked() noexcept {
    add(1, 1);
    return end();
  }
};

// How often each byte comes. Four counts of each, since one that was just written is slow to read.
class Counting {
 public:
  void add(Bytes bytes) noexcept {
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      const auto eight = load<std::uint64_t>(bytes.data() + i);
      for (unsigned k = 0; k < 8; ++k) ++counts_[k % 4][eight >> 8 * k & 0xff];
    }
    for (; i < bytes.size(); ++i) ++counts_[0][static_cast<std::uint8_t>(bytes[i])];
  }
  template <class Count>
  std::array<Count, 256> sums() const noexcept {
    std::array<Count, 256> all;
    for (std::size_t b = 0; b < 256; ++b) {
      all[b] = static_cast<Count>(counts_[0][b] + counts_[1][b] + counts_[2][b] + counts_[3][b]);
    }
    return all;
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> counts_{};
};

// 16 log2(n), rounded, for n from 1 on.
std::uint32_t log2_16(std::uint32_t n) noexcept {
  constexpr std::uint8_t kParts[16] = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 15};
  const unsigned whole = static_cast<unsigned>(std::bit_width(n)) - 1;
  const unsigned part = whole >= 4 ? n >> (whole - 4) & 15 : n << (4 - whole) & 15;
  return 16 * whole + kParts[part];
}

// Bits that the sampled bytes take at least. A sample looks as if it had fewer than the whole, by 0.72 for
// each kind of byte.
std::uint32_t fewest_bits(const ByteCounts& sample) noexcept {
  const std::uint32_t whole = log2_16(kSampleBytes);
  std::uint32_t sixteenths = 0, kinds = 0;
  for (const std::uint32_t count : sample) {
    if (count == 0) continue;
    sixteenths += count * (whole - log2_16(count));
    ++kinds;
  }
  return sixteenths / 16 + kinds * 3 / 4;
}

// ---------------------------------------------------------------- frames of one block

// One segment, its size in two bytes or four. Returns the end.
std::byte* put_frame_header(std::size_t bytes, std::byte* out) noexcept {
  constexpr std::size_t kLeastOfTwo = 256;
  store<std::uint32_t>(out, kMagic);
  if (bytes < 65536 + kLeastOfTwo) {
    out[4] = std::byte{0x60};
    store<std::uint16_t>(out + 5, static_cast<std::uint16_t>(bytes - kLeastOfTwo));
    return out + 7;
  }
  out[4] = std::byte{0xa0};
  store<std::uint32_t>(out + 5, static_cast<std::uint32_t>(bytes));
  return out + 9;
}

enum class Block : std::uint32_t { Repeat = 1, Compressed = 2 };

void put_block_header(Block kind, std::size_t bytes, std::byte* out) noexcept {
  const auto header = 1 | static_cast<std::uint32_t>(kind) << 1 | static_cast<std::uint32_t>(bytes) << 3;
  std::memcpy(out, &header, kBlockHeaderBytes);
}

// ---------------------------------------------------------------- what says which codes there are

constexpr unsigned kTableLog = 6, kStates = 1u << kTableLog;
using Shares = std::array<unsigned, kMostBits + 1>;  // of kStates, by weight

// Every weight up to the greatest has a share, so that no runs of none need to be written down.
Shares shares_of(std::span<const std::uint8_t> weights, unsigned greatest) {
  Shares counts{}, shares{};
  for (const std::uint8_t weight : weights) ++counts[weight];
  unsigned given = 0;
  for (unsigned w = 0; w <= greatest; ++w) {
    shares[w] = std::max(1u, static_cast<unsigned>(counts[w] * kStates / weights.size()));
    given += shares[w];
  }
  const auto most = [&](auto&& is_more) {
    unsigned found = 0;
    for (unsigned w = 1; w <= greatest; ++w) {
      if (is_more(w, found)) found = w;
    }
    return found;
  };
  for (; given > kStates; --given) --shares[most([&](auto a, auto b) { return shares[a] > shares[b]; })];
  for (; given < kStates; ++given) {
    ++shares[most([&](auto a, auto b) { return counts[a] * shares[b] > counts[b] * shares[a]; })];
  }
  return shares;
}

void put_shares(const Shares& shares, BitWriter& writer) {
  writer.add(kTableLog - 5, 4);
  unsigned left = kStates + 1, threshold = kStates, length = kTableLog + 1;
  for (unsigned w = 0; left > 1; ++w) {
    const unsigned most = 2 * threshold - 1 - left;  // values below it take one bit less
    left -= shares[w];
    unsigned value = shares[w] + 1;
    if (value >= threshold) value += most;
    writer.add(value, length - (value < most));
    for (; left < threshold; threshold /= 2) --length;
    writer.flush();
  }
}

// A coder with one of kStates states, as the shares lay them out.
class Coder {
 public:
  explicit Coder(const Shares& shares) : shares_(shares) {
    unsigned first = 0;
    for (unsigned w = 0; w < shares.size(); ++w) {
      first_[w] = first;
      first += shares[w];
    }
    std::array<std::uint8_t, kStates> of_state;
    constexpr unsigned kStep = kStates / 2 + kStates / 8 + 3;
    for (unsigned w = 0, at = 0; w < shares.size(); ++w) {
      for (unsigned k = 0; k < shares[w]; ++k, at = (at + kStep) % kStates) {
        of_state[at] = static_cast<std::uint8_t>(w);
      }
    }
    Shares done{};
    for (unsigned i = 0; i < kStates; ++i) {
      const unsigned w = of_state[i];
      states_[first_[w] + done[w]++] = static_cast<std::uint8_t>(kStates + i);
    }
  }
  unsigned begin(unsigned weight) const noexcept { return states_[first_[weight]]; }
  unsigned add(unsigned state, unsigned weight, BitWriter& writer) const noexcept {
    unsigned length = 0;
    while (state >> length >= 2 * shares_[weight]) ++length;
    writer.add(state & ((1u << length) - 1), length);
    return states_[first_[weight] + (state >> length) - shares_[weight]];
  }

 private:
  const Shares& shares_;
  std::array<unsigned, kMostBits + 1> first_;
  std::array<std::uint8_t, kStates> states_;  // of each weight those that mean it, in order
};

// Weights, the last first, by two coders in turns. Returns the end.
std::byte* put_weights(std::span<const std::uint8_t> weights, unsigned greatest, std::byte* out) {
  const Shares shares = shares_of(weights, greatest);
  BitWriter head{out};
  put_shares(shares, head);
  BitWriter writer{head.end()};
  const Coder coder(shares);
  const std::size_t n = weights.size();
  unsigned states[2];
  for (std::size_t i = n; i-- > 0;) {
    unsigned& state = states[i % 2];
    state = i + 2 >= n ? coder.begin(weights[i]) : coder.add(state, weights[i], writer);
    writer.flush();
  }
  writer.add(states[1] % kStates, kTableLog);
  writer.add(states[0] % kStates, kTableLog);
  return writer.end_marked();
}

}  // namespace

bool LiteralCode::make(const std::array<std::uint32_t, 256>& counts) {
  std::array<std::uint32_t, 256> wanted = counts;
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t from = i < kTail ? 0 : i - kTail, to = std::min<std::size_t>(i + kTail + 1, 256);
    const bool is_near =
        std::any_of(counts.begin() + from, counts.begin() + to, [](auto c) { return c > 0; });
    if (wanted[i] == 0 && is_near) wanted[i] = 1;
  }
  std::array<levels::Bin, 256> bins{};
  levels::choose_lengths(wanted, kMostBits, bins);
  unsigned longest = 0;
  std::array<unsigned, kMostBits + 2> of_length{};
  for (const levels::Bin& bin : bins) {
    longest = std::max<unsigned>(longest, bin.length);
    ++of_length[bin.length];
  }
  // The longest codes are the first numbers.
  std::array<unsigned, kMostBits + 2> next{};
  unsigned code = 0;
  for (unsigned length = longest; length > 0; --length) {
    next[length] = code;
    code += of_length[length];
    if (code % 2 != 0) return false;
    code /= 2;
  }
  if (code != 1) return false;
  // A code's weight is how much shorter than the longest it is, 1 for those; 0 is no code.
  std::array<std::uint8_t, 256> weights;
  std::size_t last = 0;
  for (std::size_t i = 0; i < 256; ++i) {
    const unsigned length = bins[i].length;
    codes_.set(i, length == 0 ? 0 : next[length]++, length);
    lengths_[i] = static_cast<std::int16_t>(length == 0 ? kMostBits : length);
    weights[i] = static_cast<std::uint8_t>(length == 0 ? 0 : longest + 1 - length);
    if (length != 0) last = i;
  }
  return describe({weights.data(), last});  // that of the last byte follows from the others
}

bool LiteralCode::describe(std::span<const std::uint8_t> weights) {
  if (weights.size() < 2) return false;
  const unsigned greatest = *std::max_element(weights.begin(), weights.end());
  std::array<std::byte, 512> room;
  const std::byte* const end = put_weights(weights, greatest, room.data());
  const auto bytes = static_cast<std::size_t>(end - room.data());
  if (bytes >= description_.size()) return false;  // that size would mean weights of four bits each
  description_[0] = static_cast<std::byte>(bytes);
  std::copy_n(room.begin(), bytes, description_.begin() + 1);
  description_bytes_ = 1 + bytes;
  return true;
}

std::uint32_t LiteralCode::bits(const ByteCounts& counts) const noexcept {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < 256; ++i) sum += static_cast<std::int16_t>(counts[i]) * lengths_[i];
  return static_cast<std::uint32_t>(sum);
}

std::byte* LiteralCode::put(Bytes stream, std::byte* out) const noexcept {
  std::memcpy(out, description_.data(), description_bytes_);
  std::byte* const jumps = out + description_bytes_;
  out = jumps + kJumpBytes;
  const std::size_t quarter = (stream.size() + 3) / 4;
  for (std::size_t q = 0; q < 4; ++q) {
    const Bytes part = stream.subspan(q * quarter, std::min(quarter, stream.size() - q * quarter));
    std::byte* const end = simd::pack_byte_codes(codes_, part.data(), part.size(), out);
    if (end == nullptr) return nullptr;
    if (q < 3) store<std::uint16_t>(jumps + 2 * q, static_cast<std::uint16_t>(end - out));
    out = end;
  }
  return out;
}

// ---------------------------------------------------------------- streams

// One that takes hardly more than `wanted` bits; new ones would need a description, too.
const LiteralCode* LiteralEncoder::best_known(const ByteCounts& sample, std::uint32_t wanted) const {
  const LiteralCode* best = nullptr;
  std::uint32_t fewest = ~0u;
  for (std::size_t k = 0; k < known_; ++k) {
    const std::uint32_t bits = codes_[k].bits(sample);
    if (bits >= fewest) continue;
    fewest = bits;
    best = &codes_[k];
  }
  return fewest <= wanted + wanted / 64 + kSampleBytes / 16 ? best : nullptr;
}

const LiteralCode* LiteralEncoder::make(Bytes stream) {
  Counting counting;
  counting.add(stream);
  LiteralCode& code = codes_[next_];
  if (!code.make(counting.sums<std::uint32_t>())) {
    known_ = next_ = 0;
    return nullptr;
  }
  next_ = (next_ + 1) % kMostKnown;
  known_ = std::min(known_ + 1, kMostKnown);
  return &code;
}

std::size_t LiteralEncoder::encode(Bytes stream, MutableBytes out) {
  const std::size_t n = stream.size();
  if (n < kLeastLiterals || n > kMostLiterals) return 0;
  Counting counting;
  for (std::size_t p = 0; p < kSamplePieces; ++p) {
    counting.add(stream.subspan((n - kPieceBytes) * p / (kSamplePieces - 1), kPieceBytes));
  }
  const ByteCounts sample = counting.sums<std::uint16_t>();
  const std::uint32_t wanted = fewest_bits(sample);
  // As zstd has it, less than a 64th is no gain.
  if (wanted > 8 * kSampleBytes - kSampleBytes / 8) return n;
  std::byte* const block = put_frame_header(n, out.data());
  std::byte* const literals = block + kBlockHeaderBytes + kSectionHeaderBytes;
  std::byte* end = nullptr;
  if (const LiteralCode* const known = best_known(sample, wanted)) end = known->put(stream, literals);
  if (end == nullptr) {
    const LiteralCode* const made = make(stream);
    if (made == nullptr) return 0;
    end = made->put(stream, literals);
  }
  const auto stored = static_cast<std::uint64_t>(end - literals);
  *end++ = std::byte{0};  // no sequences
  if (static_cast<std::size_t>(end - out.data()) >= n) return n;
  const std::uint64_t section = 2 | 3 << 2 | std::uint64_t{n} << 4 | stored << 22;
  std::memcpy(block + kBlockHeaderBytes, &section, kSectionHeaderBytes);
  put_block_header(Block::Compressed, kSectionHeaderBytes + stored + 1, block);
  return static_cast<std::size_t>(end - out.data());
}

std::size_t repeat_frame(Bytes stream, MutableBytes out) {
  const std::size_t n = stream.size();
  if (n < kLeastLiterals || n > kMostLiterals) return 0;
  if (std::memcmp(stream.data(), stream.data() + 1, n - 1) != 0) return 0;
  std::byte* const block = put_frame_header(n, out.data());
  put_block_header(Block::Repeat, n, block);
  block[kBlockHeaderBytes] = stream[0];
  return static_cast<std::size_t>(block + kBlockHeaderBytes + 1 - out.data());
}

std::size_t literals_bound(std::size_t bytes) noexcept {
  return kFrameHeaderMost + kBlockHeaderBytes + kSectionHeaderBytes + 128 + kJumpBytes +
         bytes * kMostBits / 8 + 4 * 16;
}

}  // namespace cdd::blosc
