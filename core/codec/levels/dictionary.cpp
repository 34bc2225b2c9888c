// The first step of encoding: number the distinct levels of a segment and express them as columns of uint32.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/codec/levels/segment.h"

namespace cdd::levels {
namespace {

// Numbers of things in order of first appearance: an open hash table of what `same` compares. It grows, since
// of many cells few are new, and a small table stays in the nearest cache.
class Numbering {
 public:
  Numbering() : slots_(kFirstSlots, kNone), mask_(kFirstSlots - 1) {}

  // The number of the thing with this hash, `next` (then taken) when it is not there yet. hash_of(i) is the
  // hash of thing i.
  template <class Same, class HashOf>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, Same same, HashOf hash_of) {
    for (std::size_t i = place_of(hash);; i = (i + 1) & mask_) {
      if (slots_[i] == kNone) {
        slots_[i] = next;
        if (2 * std::size_t{next} >= mask_) grow(next + 1, hash_of);
        return next;
      }
      if (same(slots_[i])) return slots_[i];
    }
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static constexpr std::size_t kFirstSlots = 1024;

  std::size_t place_of(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(hash >> 32) & mask_;
  }

  template <class HashOf>
  void grow(std::uint32_t n, HashOf hash_of) {
    slots_.assign(4 * slots_.size(), kNone);
    mask_ = slots_.size() - 1;
    for (std::uint32_t thing = 0; thing < n; ++thing) {
      std::size_t i = place_of(hash_of(thing));
      while (slots_[i] != kNone) i = (i + 1) & mask_;
      slots_[i] = thing;
    }
  }

  std::vector<std::uint32_t> slots_;
  std::size_t mask_;
};

std::uint64_t hash_bytes(const std::byte* p, std::size_t n) noexcept {
  constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15u;
  std::uint64_t h = n;
  for (; n >= 8; n -= 8, p += 8) h = std::rotl((h ^ load<std::uint64_t>(p)) * kMix, 32);
  if (n != 0) h = std::rotl((h ^ load<std::uint32_t>(p)) * kMix, 32);
  return h * kMix;
}

// Items are of 4 or 8 bytes, so n is a multiple of 4; a call of memcmp would cost more than the comparison.
bool same_bytes(const std::byte* a, const std::byte* b, std::size_t n) noexcept {
  for (; n >= 8; n -= 8, a += 8, b += 8) {
    if (load<std::uint64_t>(a) != load<std::uint64_t>(b)) return false;
  }
  return n == 0 || load<std::uint32_t>(a) == load<std::uint32_t>(b);
}

// Which of a row's slots [begin, end), 64 at most, differ from those of the row before: a bit each.
template <std::size_t known_bytes>
std::uint64_t differing(const std::byte* row, std::size_t row_bytes, std::size_t begin, std::size_t end,
                        std::size_t bytes) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t j = begin; j < end; ++j) {
    const std::byte* cell = row + j * bytes;
    const std::byte* above = cell - row_bytes;
    bool differs;
    if constexpr (known_bytes == 8) {
      differs = load<std::uint64_t>(cell) != load<std::uint64_t>(above);
    } else if constexpr (known_bytes == 12) {
      differs = ((load<std::uint64_t>(cell) ^ load<std::uint64_t>(above)) |
                 (load<std::uint32_t>(cell + 8) ^ load<std::uint32_t>(above + 8))) != 0;
    } else {
      differs = !same_bytes(cell, above, bytes);
    }
    bits |= std::uint64_t{differs} << (j - begin);
  }
  return bits;
}

// `known_bytes` of an entry, if not 0.
template <std::size_t known_bytes>
void number_levels(Bytes rows, Dictionary& d) {
  const std::size_t bytes = known_bytes == 0 ? d.shape.entry_bytes() : known_bytes;
  const std::size_t slots = d.shape.slots, words = d.changed_words();
  Numbering numbering;
  const auto hash_of = [&](std::uint32_t level) { return hash_bytes(d.samples[level], bytes); };
  d.cells.resize(d.n_rows * slots);
  d.changed.resize(d.n_rows * words);
  for (std::size_t r = 0; r < d.n_rows; ++r) {
    const std::byte* row = rows.data() + r * slots * bytes;
    std::uint32_t* cells = d.cells.data() + r * slots;
    if (r != 0) std::copy_n(cells - slots, slots, cells);
    for (std::size_t w = 0; w < words; ++w) {
      const std::size_t end = std::min(slots, w * 64 + 64);
      d.changed[r * words + w] = r == 0 ? ~std::uint64_t{0} >> (w * 64 + 64 - end)
                                        : differing<known_bytes>(row, slots * bytes, w * 64, end, bytes);
    }
    d.for_changed(r, 0, slots, [&](std::size_t j) {
      const std::byte* cell = row + j * bytes;
      const auto next = static_cast<std::uint32_t>(d.samples.size());
      d.samples.push_back(cell);  // growing asks for its hash
      const auto is_it = [&](std::uint32_t level) { return same_bytes(d.samples[level], cell, bytes); };
      cells[j] = numbering.find_or_add(hash_bytes(cell, bytes), next, is_it, hash_of);
      if (cells[j] != next) d.samples.pop_back();
    });
  }
  d.n_levels = d.samples.size();
}

void number_keys(Dictionary& d) {
  const std::size_t bytes = d.shape.item_bytes;
  Numbering numbering;
  std::vector<const std::byte*> samples;
  const auto hash_of = [&](std::uint32_t key) { return hash_bytes(samples[key], bytes); };
  d.keys.resize(d.n_levels);
  for (std::size_t i = 0; i < d.n_levels; ++i) {
    const std::byte* item = d.samples[i];
    const auto next = static_cast<std::uint32_t>(samples.size());
    samples.push_back(item);  // growing asks for its hash
    const auto is_it = [&](std::uint32_t key) { return same_bytes(samples[key], item, bytes); };
    d.keys[i] = numbering.find_or_add(hash_bytes(item, bytes), next, is_it, hash_of);
    if (d.keys[i] != next) samples.pop_back();
  }
  d.n_keys = samples.size();
}

using simd::kInversePowers;
using simd::kPowers;

// The integer that decodes to exactly the item's bits at `scale`, if there is one.
template <class T>
bool to_decimal(const std::byte* item, unsigned scale, std::int32_t* q) noexcept {
  const T v = load<T>(item);
  const double scaled = static_cast<double>(v) * kPowers[scale];
  if (!(std::abs(scaled) < 2147483647.0)) return false;
  *q = static_cast<std::int32_t>(std::lrint(scaled));
  T back;
  if constexpr (sizeof(T) == 4) {
    back = static_cast<float>(*q * kInversePowers[scale]);
  } else {
    back = *q / kPowers[scale];
  }
  return std::memcmp(&back, item, sizeof back) == 0;
}

bool to_decimal(const Shape& shape, const std::byte* item, unsigned scale, std::int32_t* q) noexcept {
  return shape.item_bytes == 4 ? to_decimal<float>(item, scale, q) : to_decimal<double>(item, scale, q);
}

// The smallest exponent at which nearly all of a sample of the feature's values are decimals.
std::uint8_t guess_scale(const Dictionary& d, std::size_t feature) {
  constexpr std::size_t kSample = 24;
  const std::size_t step = d.n_levels / kSample + 1;
  const std::size_t offset = feature * d.shape.item_bytes;
  for (unsigned scale = 0; scale <= kMaxScale; ++scale) {
    std::size_t misses = 0, seen = 0;
    for (std::size_t i = 0; i < d.n_levels; i += step, ++seen) {
      std::int32_t q;
      misses += !to_decimal(d.shape, d.samples[i] + offset, scale, &q);
      if (misses * 8 > kSample) break;
    }
    if (misses * 8 <= seen) return static_cast<std::uint8_t>(scale);
  }
  return simd::LevelsColumns::kBits;
}

// Decoding takes the lane of feature 0 from the entry that a patch replaces: whatever stands there for an
// item that is no decimal, it must be the same in all levels that share the item.
void share_lanes_of_keys(const Dictionary& d, const std::vector<std::uint32_t>& misses, std::uint32_t* lane) {
  std::vector<std::uint32_t> first_level;  // of each key, plus 1
  for (const std::uint32_t i : misses) {
    if (first_level.empty()) first_level.resize(d.n_keys);
    std::uint32_t& first = first_level[d.keys[i]];
    if (first == 0) first = i + 1;
    lane[i] = lane[first - 1];
  }
}

// Fills the feature's lane with decimals; false when too many values are none or the bits are no wider.
bool make_decimal_lane(Dictionary& d, std::size_t feature, std::uint8_t scale, std::uint32_t* lane) {
  const std::size_t offset = feature * d.shape.item_bytes;
  std::vector<std::uint32_t> misses;
  std::int32_t least = INT32_MAX, most = INT32_MIN;
  std::uint64_t least_bits = ~std::uint64_t{0}, most_bits = 0;
  for (std::size_t i = 0; i < d.n_levels; ++i) {
    const std::byte* item = d.samples[i] + offset;
    std::int32_t q = 0;
    if (!to_decimal(d.shape, item, scale, &q)) {
      misses.push_back(static_cast<std::uint32_t>(i));
      if (misses.size() * 16 > d.n_levels + 16 || misses.size() > kMaxSpecials / d.shape.features)
        return false;
      lane[i] = i == 0 ? 0 : lane[i - 1];
      continue;
    }
    lane[i] = static_cast<std::uint32_t>(q);
    least = std::min(least, q);
    most = std::max(most, q);
    const std::uint64_t bits =
        d.shape.item_bytes == 4 ? load<std::uint32_t>(item) : load<std::uint64_t>(item);
    least_bits = std::min(least_bits, bits);
    most_bits = std::max(most_bits, bits);
  }
  if (misses.size() == d.n_levels) return false;
  const auto range = static_cast<std::uint64_t>(std::int64_t{most} - least);
  if (range > most_bits - least_bits) return false;
  if (!misses.empty()) d.is_special.resize(d.n_levels * d.shape.features);
  for (const std::uint32_t i : misses) d.is_special[i * d.shape.features + feature] = true;
  if (feature == 0) share_lanes_of_keys(d, misses, lane);
  return true;
}

void make_lanes(Dictionary& d) {
  const Shape& shape = d.shape;
  for (std::size_t f = 0; f < shape.features; ++f) {
    std::uint8_t scale = shape.floats ? guess_scale(d, f) : simd::LevelsColumns::kBits;
    const std::size_t at = d.lanes.size();
    d.lanes.resize(at + d.n_levels);
    if (scale != simd::LevelsColumns::kBits && !make_decimal_lane(d, f, scale, d.lanes.data() + at)) {
      scale = simd::LevelsColumns::kBits;
    }
    d.scales.of[f] = scale;
    const std::uint32_t lanes = shape.lanes_of(scale);
    d.scales.lanes += lanes;
    if (f == 0) d.scales.key_lanes = lanes;
    if (scale != simd::LevelsColumns::kBits) continue;
    d.lanes.resize(at + lanes * d.n_levels);
    for (std::size_t l = 0; l < lanes; ++l) {
      for (std::size_t i = 0; i < d.n_levels; ++i) {
        d.lanes[at + l * d.n_levels + i] = load<std::uint32_t>(d.samples[i] + f * shape.item_bytes + l * 4);
      }
    }
  }
}

}  // namespace

Dictionary make_dictionary(const Shape& shape, Bytes rows, std::size_t n_rows, std::size_t exception_worth,
                           Coding coding) {
  Dictionary d;
  d.shape = shape;
  d.n_rows = n_rows;
  d.exception_worth = exception_worth;
  d.coding = coding;
  with_known_bytes(shape.entry_bytes(), [&](auto known) { number_levels<known>(rows, d); });
  number_keys(d);
  make_lanes(d);
  return d;
}

std::vector<Special> find_specials(const Dictionary& d, std::span<const std::uint32_t> entry_levels) {
  std::vector<Special> specials;
  if (d.is_special.empty()) return specials;
  const std::size_t features = d.shape.features, item_bytes = d.shape.item_bytes;
  for (std::size_t e = 0; e < entry_levels.size(); ++e) {
    for (std::size_t f = 0; f < features; ++f) {
      if (!d.is_special[entry_levels[e] * features + f]) continue;
      const std::byte* item = d.samples[entry_levels[e]] + f * item_bytes;
      specials.push_back({static_cast<std::uint16_t>(e), static_cast<std::uint8_t>(f),
                          item_bytes == 4 ? load<std::uint32_t>(item) : load<std::uint64_t>(item)});
    }
  }
  return specials;
}

}  // namespace cdd::levels
