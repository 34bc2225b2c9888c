// Prefix (Huffman) codes over bins of values, for the coded streams of LEVELS.
//
// A code divides the values from a base on into bins that lie one behind the other, each of 2^width values. A
// value is its bin's code, then `width` bits that say where in the bin it is. Codes are canonical and of at
// most kMaxCodeLength bits. Specification: docs/codecs.md, "LEVELS", "Coded streams".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/simd/levels/levels.h"

namespace cdd::levels {

using simd::CodeEntry;
using simd::CodeTable;
using simd::kMaxCodeLength;
inline constexpr std::size_t kMaxBins = 128;
inline constexpr std::size_t kMaxCounts = 256;  // that choose_lengths takes

struct Bin {
  std::uint8_t width;   // bits behind the code, 0 to 31
  std::uint8_t length;  // of the code, 1 to kMaxCodeLength; 0: no value is in this bin
};

// Fills `entries` (room for 2^kMaxCodeLength) for bins of which the first begins at `base`. False when the
// codes are not complete: when some bits mean nothing, or two things.
bool make_code_table(std::span<const Bin> bins, std::uint32_t base, CodeEntry* entries, CodeTable& table);

// The canonical code of each bin, its first bit lowest.
void make_codes(std::span<const Bin> bins, std::span<std::uint16_t> codes);

// Lengths of codes for bins that have so many values each: 0 for none. At least two have some, and at most
// 2^most_bits, the longest a code may be.
void choose_lengths(std::span<const std::uint32_t> counts, unsigned most_bits, std::span<Bin> bins);

}  // namespace cdd::levels
