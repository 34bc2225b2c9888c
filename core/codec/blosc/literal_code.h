// Codes of bytes as a block of zstd has them for its literals.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/simd/byte_codes.h"

namespace cdd::blosc {

using ByteCounts = std::array<std::uint16_t, 256>;

// Codes of bytes, 0 to 11 bits each, with what zstd's format says of them.
class LiteralCode {
 public:
  // For bytes that come so often, of two kinds at least, and for those up to `tail` beside one that comes.
  // False where the format has no codes for them.
  bool make(const std::array<std::uint32_t, 256>& counts, std::size_t tail);

  // How many bits bytes take that come so often; those that have no code count as one code of the longest.
  std::uint32_t bits(const ByteCounts& counts) const noexcept;

  // What the format says of the codes, then those of the stream, in 1 part or 4. Returns the end; null where
  // a byte has none.
  std::byte* put(Bytes stream, std::size_t parts, std::byte* out) const noexcept;

 private:
  bool describe(std::span<const std::uint8_t> weights);

  simd::ByteCodes codes_;
  std::array<std::int16_t, 256> lengths_;  // of the longest where there is none
  std::array<std::byte, 128> description_;
  std::size_t description_bytes_ = 0;
};

}  // namespace cdd::blosc
