#include "core/codec/blosc/literal_code.h"

#include <algorithm>
#include <cstring>

#include "core/codec/blosc/zstd_frame.h"
#include "core/codec/levels/prefix_code.h"

namespace cdd::blosc {
namespace {

constexpr unsigned kMostBits = simd::kMostByteCodeBits;  // of a code
constexpr std::size_t kMostPlainWeights = 16;            // are described by four bits each

using Shares = std::array<std::int8_t, kMostBits + 1>;  // of kStates, by weight

// Every weight up to the greatest has a share, so that no runs of none need to be written down.
Shares shares_of(std::span<const std::uint8_t> weights, unsigned greatest) {
  std::array<unsigned, kMostBits + 1> counts{}, shares{};
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
  Shares out;
  std::copy(shares.begin(), shares.end(), out.begin());
  return out;
}

void put_shares(const Shares& shares, BitWriter& writer) {
  writer.add(kStateLog - 5, 4);
  unsigned left = kStates + 1, threshold = kStates, length = kStateLog + 1;
  for (unsigned w = 0; left > 1; ++w) {
    const unsigned most = 2 * threshold - 1 - left;  // values below it take one bit less
    const auto share = static_cast<unsigned>(shares[w]);
    left -= share;
    unsigned value = share + 1;
    if (value >= threshold) value += most;
    writer.add(value, length - (value < most));
    for (; left < threshold; threshold /= 2) --length;
    writer.flush();
  }
}

// Weights, the last first, by two coders in turns. Returns the end.
std::byte* put_weights(std::span<const std::uint8_t> weights, unsigned greatest, std::byte* out) {
  const Shares shares = shares_of(weights, greatest);
  BitWriter head{out};
  put_shares(shares, head);
  BitWriter writer{head.end()};
  const StateCoder<std::tuple_size_v<Shares>> coder(shares);
  const std::size_t n = weights.size();
  unsigned states[2];
  for (std::size_t i = n; i-- > 0;) {
    unsigned& state = states[i % 2];
    state = i + 2 >= n ? coder.begin(weights[i]) : coder.add(state, weights[i], writer);
    writer.flush();
  }
  coder.end(states[1], writer);
  coder.end(states[0], writer);
  return writer.end_marked();
}

}  // namespace

bool LiteralCode::make(const std::array<std::uint32_t, 256>& counts, std::size_t tail) {
  std::array<std::uint32_t, 256> wanted = counts;
  for (std::size_t i = 0; i < 256; ++i) {
    if (counts[i] == 0) continue;
    const std::size_t first = i - std::min(i, tail), last = std::min<std::size_t>(i + tail, 255);
    for (std::size_t k = first; k <= last; ++k) wanted[k] = std::max(wanted[k], 1u);
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
  if (weights.size() <= kMostPlainWeights) {
    description_bytes_ = 1 + (weights.size() + 1) / 2;
    description_[0] = static_cast<std::byte>(127 + weights.size());
    for (std::size_t i = 0; i < weights.size(); i += 2) {
      const unsigned second = i + 1 < weights.size() ? weights[i + 1] : 0;
      description_[1 + i / 2] = static_cast<std::byte>(weights[i] << 4 | second);
    }
    return true;
  }
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

std::byte* LiteralCode::put(Bytes stream, std::size_t parts, std::byte* out) const noexcept {
  std::memcpy(out, description_.data(), description_bytes_);
  std::byte* const jumps = out + description_bytes_;
  out = jumps + 2 * (parts - 1);
  const std::size_t most = (stream.size() + parts - 1) / parts;
  for (std::size_t q = 0; q < parts; ++q) {
    const Bytes part = stream.subspan(q * most, std::min(most, stream.size() - q * most));
    std::byte* const end = simd::pack_byte_codes(codes_, part.data(), part.size(), out);
    if (end == nullptr) return nullptr;
    if (q + 1 < parts) store<std::uint16_t>(jumps + 2 * q, static_cast<std::uint16_t>(end - out));
    out = end;
  }
  return out;
}

}  // namespace cdd::blosc
