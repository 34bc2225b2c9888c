#include "core/codec/levels/prefix_code.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cdd::levels {
namespace {

// Of each number of kMaxCodeLength bits the one with its bits the other way round.
constexpr auto kReversed = [] {
  std::array<std::uint16_t, std::size_t{1} << kMaxCodeLength> all{};
  for (unsigned i = 1; i < all.size(); ++i) {
    all[i] = static_cast<std::uint16_t>(all[i / 2] / 2 | (i % 2) << (kMaxCodeLength - 1));
  }
  return all;
}();
unsigned reversed(unsigned code, unsigned bits) noexcept {
  return unsigned{kReversed[code]} >> (kMaxCodeLength - bits);
}

// visit(bin, its code with the first bit lowest), shorter codes first, those of one length in order of bins.
template <class Visit>
void for_each_code(std::span<const Bin> bins, const Visit& visit) {
  unsigned code = 0;
  for (unsigned length = 1; length <= kMaxCodeLength; ++length, code <<= 1) {
    for (std::size_t i = 0; i < bins.size(); ++i) {
      if (bins[i].length == length) visit(i, reversed(code++, length));
    }
  }
}

}  // namespace

void make_codes(std::span<const Bin> bins, std::span<std::uint16_t> codes) {
  for_each_code(bins, [&](std::size_t i, unsigned code) { codes[i] = static_cast<std::uint16_t>(code); });
}

bool make_code_table(std::span<const Bin> bins, std::uint32_t base, CodeEntry* entries, CodeTable& table) {
  // Bins of each length, linked; 0 is none, bin i is i + 1.
  std::array<std::uint8_t, kMaxCodeLength + 1> first{};
  std::array<std::uint8_t, kMaxBins> next;
  std::array<std::uint32_t, kMaxBins> begins;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    begins[i] = base;
    base += std::uint32_t{1} << bins[i].width;
  }
  for (std::size_t i = bins.size(); i-- > 0;) {
    const std::size_t length = bins[i].length;
    if (length > kMaxCodeLength) return false;
    next[i] = first[length];
    first[length] = static_cast<std::uint8_t>(i + 1);
  }
  // The table of one bit more is that of one less, twice; codes of the new length take their places.
  unsigned code = 0, length = 0, most_bits = 0;
  for (std::size_t n = 1; code != n; n *= 2) {
    if (length == kMaxCodeLength) return false;
    if (length != 0) std::memcpy(entries + n, entries, n * sizeof(CodeEntry));
    ++length;
    code <<= 1;
    for (unsigned i = first[length]; i != 0; i = next[i - 1]) {
      if (code == 2 * n) return false;
      const Bin bin = bins[i - 1];
      const auto bits = static_cast<std::uint8_t>(length + bin.width);
      entries[reversed(code++, length)] = {begins[i - 1], bin.length, bin.width, bits, 0};
      most_bits = std::max<unsigned>(most_bits, bits);
    }
  }
  for (unsigned longer = length + 1; longer <= kMaxCodeLength; ++longer) {
    if (first[longer] != 0) return false;
  }
  table = {entries, length, most_bits};
  return true;
}

void choose_lengths(std::span<const std::uint32_t> counts, unsigned most_bits, std::span<Bin> bins) {
  struct Node {
    std::uint32_t count;
    std::uint16_t parent;
  };
  std::array<Node, 2 * kMaxCounts> nodes;
  std::array<std::uint8_t, kMaxCounts> order;
  std::size_t n = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    bins[i].length = 0;
    if (counts[i] != 0) order[n++] = static_cast<std::uint8_t>(i);
  }
  std::sort(order.begin(), order.begin() + n, [&](std::uint8_t a, std::uint8_t b) {
    return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
  });
  for (std::size_t i = 0; i < n; ++i) nodes[i] = {counts[order[i]], 0};
  // Leaves and inner nodes are both in order of their counts: the two least are at one of two fronts.
  std::size_t leaf = 0, inner = n;
  for (std::size_t made = n; made < 2 * n - 1; ++made) {
    nodes[made] = {0, 0};
    for (int k = 0; k < 2; ++k) {
      const bool takes_leaf = leaf < n && (inner == made || nodes[leaf].count <= nodes[inner].count);
      Node& least = nodes[takes_leaf ? leaf++ : inner++];
      least.parent = static_cast<std::uint16_t>(made);
      nodes[made].count += least.count;
    }
  }
  std::array<std::uint8_t, 2 * kMaxCounts> depth;
  depth[2 * n - 2] = 0;
  const unsigned whole = 1u << most_bits;
  unsigned taken = 0;  // of the codes' space, in codes of the greatest length
  for (std::size_t i = 2 * n - 2; i-- > 0;) {
    depth[i] = static_cast<std::uint8_t>(depth[nodes[i].parent] + 1);
    if (i >= n) continue;
    depth[i] = static_cast<std::uint8_t>(std::min<unsigned>(depth[i], most_bits));
    taken += whole >> depth[i];
  }
  // Codes that were cut short take too much: others get longer, the rarest first.
  for (std::size_t i = 0; taken > whole; i = i + 1 == n ? 0 : i + 1) {
    if (depth[i] == most_bits) continue;
    taken -= whole >> (depth[i] + 1);
    ++depth[i];
  }
  // What is left over goes to the most frequent that it makes a bit shorter.
  for (std::size_t i = n; taken < whole && i-- > 0;) {
    while (depth[i] > 1 && taken + (whole >> depth[i]) <= whole) {
      taken += whole >> depth[i];
      --depth[i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) bins[order[i]].length = depth[i];
}

}  // namespace cdd::levels
