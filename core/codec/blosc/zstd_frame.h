// What frames of zstd of one block are made of, for those that are written here without zstd: headers, bits,
// counts of bytes, codes of states. The format is that of RFC 8878.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/base/bytes.h"

namespace cdd::blosc {

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

// ---------------------------------------------------------------- headers

inline constexpr std::size_t kFrameHeaderMost = 9, kBlockHeaderBytes = 3;

// One segment, its size in two bytes or four. Returns the end.
inline std::byte* put_frame_header(std::size_t bytes, std::byte* out) noexcept {
  constexpr std::uint32_t kMagic = 0xfd2fb528;
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

inline void put_block_header(Block kind, std::size_t bytes, std::byte* out) noexcept {
  const auto header = 1 | static_cast<std::uint32_t>(kind) << 1 | static_cast<std::uint32_t>(bytes) << 3;
  std::memcpy(out, &header, kBlockHeaderBytes);
}

// ---------------------------------------------------------------- states

inline constexpr unsigned kStateLog = 6, kStates = 1u << kStateLog;  // of every table here

// A coder with one of kStates states, as the shares of kSymbols symbols lay them out. A share of -1 is one
// state that all bits are read behind.
template <std::size_t kSymbols>
class StateCoder {
 public:
  constexpr explicit StateCoder(const std::array<std::int8_t, kSymbols>& shares) {
    std::array<std::uint8_t, kStates> of_state{};
    unsigned end = kStates;  // of the places that are dealt out
    int first = 0;
    for (std::size_t s = 0; s < kSymbols; ++s) {
      const int share = shares[s] < 0 ? 1 : shares[s];
      if (shares[s] < 0) of_state[--end] = static_cast<std::uint8_t>(s);
      // States from kStates to twice that lose so many bits that the rest is in [share, 2 share).
      unsigned most = kStateLog;
      while (share > 1 && (share - 1) >> (kStateLog - most + 1) != 0) --most;
      lengths_[s] = (most << 16) - static_cast<unsigned>(share << most);
      places_[s] = static_cast<std::int16_t>(first - share);
      firsts_[s] = static_cast<std::uint8_t>(first);
      first += share;
    }
    constexpr unsigned kStep = kStates / 2 + kStates / 8 + 3;
    for (std::size_t s = 0, at = 0; s < kSymbols; ++s) {
      for (int k = 0; k < shares[s]; ++k) {
        of_state[at] = static_cast<std::uint8_t>(s);
        do at = (at + kStep) % kStates;
        while (at >= end);
      }
    }
    std::array<std::uint8_t, kSymbols> done{};
    for (unsigned i = 0; i < kStates; ++i) {
      const std::size_t s = of_state[i];
      states_[static_cast<std::size_t>(firsts_[s] + done[s]++)] = static_cast<std::uint8_t>(kStates + i);
    }
  }

  unsigned begin(std::size_t symbol) const noexcept { return states_[firsts_[symbol]]; }
  unsigned add(unsigned state, std::size_t symbol, BitWriter& writer) const noexcept {
    const unsigned length = (state + lengths_[symbol]) >> 16;
    writer.add(state & ((1u << length) - 1), length);
    return states_[static_cast<std::size_t>(static_cast<int>(state >> length) + places_[symbol])];
  }
  static void end(unsigned state, BitWriter& writer) noexcept { writer.add(state % kStates, kStateLog); }

 private:
  std::array<unsigned, kSymbols> lengths_{};  // plus a state, above 16 bits: how many it loses
  std::array<std::int16_t, kSymbols> places_{};
  std::array<std::uint8_t, kSymbols> firsts_{};
  std::array<std::uint8_t, kStates> states_{};  // of each symbol those that mean it, in order
};

}  // namespace cdd::blosc
