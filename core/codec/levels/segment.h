// What the parts of the LEVELS codec share: a segment's shape, its entries, and the three layouts.
//
// A chunk is cut into segments, each of which decodes alone. Private to core/codec/levels*.cpp.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/row_layout.h"
#include "core/codec/cells.h"
#include "core/codec/levels/coded.h"
#include "core/codec/levels/pack.h"

namespace cdd::levels {

inline constexpr std::uint32_t kMaxSlots = 4096;
inline constexpr std::uint32_t kMaxFeatures = 64;
inline constexpr std::uint32_t kMaxLanes = 2 * kMaxFeatures;
inline constexpr std::size_t kMaxCells = 65536;  // rows * slots of a segment, so that ids fit into 16 bits
inline constexpr std::size_t kMaxSpecials = 0xffff;  // of a segment: they are counted in 16 bits
inline constexpr std::uint32_t kMaxScale = 12;       // decimal exponents 0 to 12

enum class Layout : std::uint8_t { Events = 0, Full = 1, Ladder = 2 };

// What an event does. "In" and "out" mean the far end of the move is the edge of the slot's half of the row.
enum class Event : std::uint8_t {
  Patch = 0,    // in place: a new entry that shares feature 0 with the entry it replaces
  Replace = 1,  // in place: a new entry
  Set = 2,      // in place: a known entry
  InNew = 3,    // put in at the slot, taken out at the edge
  InKnown = 4,
  OutNew = 5,  // taken out at the slot, put in at the edge
  OutKnown = 6,
  MoveNew = 7,  // put in at the slot, taken out at a slot of its own
  MoveKnown = 8,
};

// A number of a header: 16 bits, or in a coded segment 7 bits a byte, low ones first.
inline std::uint32_t take_number(Cursor& in, Coding coding) {
  if (coding == Coding::Packed) return in.take<std::uint16_t>();
  std::uint32_t v = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = in.take<std::uint8_t>();
    v |= (byte & 0x7fu) << shift;
    if (v > 0xffff || shift > 14) fail(ErrorCode::Corrupt, "levels: a number of more than 16 bits");
    if (byte < 0x80) return v;
  }
}

// Of a ladder: flags, and limits.
inline constexpr std::uint8_t kKindBits = 3, kKeepsLast = 4;
inline constexpr std::uint32_t kMaxLadderPlaces = 32768;
inline constexpr std::uint32_t kMaxLadderEntries = 32767;

struct Shape {
  std::uint32_t slots = 0;
  std::uint32_t features = 0;
  std::uint32_t item_bytes = 0;
  bool floats = false;

  std::size_t entry_bytes() const noexcept { return std::size_t{features} * item_bytes; }
  std::size_t row_bytes() const noexcept { return slots * entry_bytes(); }
  std::uint32_t lanes_of(std::uint8_t scale) const noexcept {
    return item_bytes == 8 && scale == simd::LevelsColumns::kBits ? 2 : 1;
  }
  // The edges of the two halves: of slots below the middle and of the others.
  std::uint32_t middle() const noexcept { return slots / 2; }
};

// What no row shows of a ladder's first side where rows show its last places.
inline std::uint32_t most_hidden(const Shape& shape) noexcept { return 2 * shape.slots + 64; }

// An item of an entry that its column cannot express: a NaN or -0.0 among decimals.
struct Special {
  std::uint16_t entry;
  std::uint8_t feature;
  std::uint64_t bits;
};
inline std::size_t special_bytes(const Shape& shape) noexcept { return 3 + std::size_t{shape.item_bytes}; }

// The decoders: rows [first, first + count) of a segment of n_rows, or these cells of them if not null;
// `segment` is without its layout byte.
void decode_events(const Shape& shape, std::size_t n_rows, Cursor segment, Coding coding, RowRange range,
                   const Cells* cells, std::byte* out);
void decode_full(const Shape& shape, std::size_t n_rows, Cursor segment, Coding coding, RowRange range,
                 const Cells* cells, std::byte* out);
void decode_ladder(const Shape& shape, std::size_t n_rows, Cursor segment, Coding coding, RowRange range,
                   const Cells* cells, std::byte* out);

// Of `rows` rows the cells, when the entry of a row's slot is ids_of(row)[slot * slot_step] times `stride`
// bytes from the first one. Returns their end.
template <class IdsOf>
std::byte* gather_cells(const Shape& shape, const Cells& cells, const std::byte* entries, std::size_t stride,
                        const IdsOf& ids_of, std::size_t slot_step, std::size_t rows, std::byte* out) {
  const std::size_t bytes = std::size_t{cells.features()} * shape.item_bytes;
  entries += std::size_t{cells.feature_begin} * shape.item_bytes;
  const std::size_t n_levels = cells.levels();
  const auto gather = [&](auto known, std::size_t step) {
    const std::size_t n = known == 0 ? bytes : known;
    std::byte* to = out;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto* ids = ids_of(r) + cells.level_begin * slot_step;
      for (std::size_t j = 0; j < n_levels; ++j, ids += step, to += n) {
        std::memcpy(to, entries + std::size_t{*ids} * stride, n);
      }
    }
  };
  with_known_bytes(bytes, [&](auto known) { gather(known, slot_step * cells.level_step); });
  return out + rows * cells.levels() * bytes;
}

// Reading what all layouts have: the scales, and how many lanes they make.
struct Scales {
  std::array<std::uint8_t, kMaxFeatures> of;
  std::uint32_t lanes;
  std::uint32_t key_lanes;  // lanes of feature 0
};
void take_scales(Cursor& in, const Shape& shape, Scales& scales);
// How many of a segment's n_events are wanted for rows before end_row, by the counts of those: for all rows
// all of them. Corrupt when rows have more than there are.
inline std::size_t events_before(const std::uint32_t* counts, std::size_t end_row, std::size_t n_rows,
                                 std::size_t n_events) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < end_row; ++i) sum += counts[i];
  if (sum > n_events) fail(ErrorCode::Corrupt, "levels: rows of more than %zu events", n_events);
  return end_row == n_rows ? n_events : static_cast<std::size_t>(sum);
}
// Overwrites the items that `n` specials name in the entries; Corrupt when one names none.
void apply_specials(const Shape& shape, const std::byte* specials, std::size_t n, std::size_t n_entries,
                    std::byte* entries);

// What sum_in_rows() takes back.
void subtract_in_rows(const std::vector<std::uint32_t>& counts, std::vector<std::uint32_t>& values);
// Each of n numbers becomes the sum of those from its row's first one on; counts[i] of them are row i + 1's.
// `work` has room for n + 1 numbers and a vector.
void sum_in_rows(const simd::LevelsKernels& kernels, const std::uint32_t* counts, std::size_t n_counts,
                 std::uint32_t* values, std::size_t n, std::uint32_t* work);

// Cuts one buffer into arrays of working memory, each with room for a vector behind it.
class Arena {
 public:
  explicit Arena(std::byte* next) noexcept : next_(next) {}
  static constexpr std::size_t bytes_for(std::size_t n, std::size_t item_bytes) noexcept {
    return static_cast<std::size_t>(align_up(n * item_bytes + 64, 64));
  }
  template <class T>
  T* take(std::size_t n) noexcept {
    T* p = reinterpret_cast<T*>(next_);
    next_ += bytes_for(n, sizeof(T));
    return p;
  }

 private:
  std::byte* next_;
};

// The distinct levels of a segment and its rows in terms of them; what all encoders start from.
struct Dictionary {
  Shape shape;
  std::size_t n_rows = 0;
  std::size_t exception_worth = 0;  // of streams: see plan_stream()
  Coding coding = Coding::Packed;
  std::size_t n_levels = 0;
  std::vector<std::uint32_t> cells;  // n_rows * slots level numbers, in order of first appearance
  // A bit for each cell, a row's in words of their own: set in all of row 0, and where the level is not that
  // of the row before. Most rows have few, and no processor predicts which.
  std::vector<std::uint64_t> changed;
  std::vector<const std::byte*> samples;  // of each level: where it stands in the rows
  Scales scales{};
  std::vector<std::uint32_t> lanes;  // lanes * n_levels
  std::vector<std::uint32_t> keys;   // of each level: the number of its feature 0
  std::size_t n_keys = 0;
  std::vector<bool> is_special;  // n_levels * features; empty when there is none

  const std::uint32_t* lane(std::size_t l) const noexcept { return lanes.data() + l * n_levels; }
  std::size_t changed_words() const noexcept { return (shape.slots + 63) / 64; }

  // f(slot) for the changed cells of a row in [begin, end), in order.
  template <class F>
  void for_changed(std::size_t row, std::size_t begin, std::size_t end, const F& f) const {
    const std::uint64_t* words = changed.data() + row * changed_words();
    for (std::size_t w = begin / 64; w * 64 < end; ++w) {
      std::uint64_t bits = words[w];
      if (begin > w * 64) bits &= ~std::uint64_t{0} << begin % 64;
      if (end < w * 64 + 64) bits &= ~(~std::uint64_t{0} << end % 64);
      for (; bits != 0; bits &= bits - 1) f(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
};
Dictionary make_dictionary(const Shape& shape, Bytes rows, std::size_t n_rows, std::size_t exception_worth,
                           Coding coding);
// The specials of the entries given by their level numbers, in order of entry.
std::vector<Special> find_specials(const Dictionary& dictionary, std::span<const std::uint32_t> entry_levels);

// A planned segment: its bytes are known before any is written, of a coded one a few too many.
struct SegmentPlan {
  Layout layout = Layout::Events;
  std::size_t work = 0;           // events or entries: what decoding costs beside the rows themselves
  std::vector<std::byte> header;  // after the layout byte, up to the stream heads
  std::vector<std::vector<std::uint32_t>> values;  // what the streams point into
  std::vector<StreamPlan> streams;
  std::vector<Special> specials;

  std::size_t bytes(const Shape& shape) const noexcept;
};
// Codes of its streams instead of widths.
void code_streams(SegmentPlan& plan);
// No streams when the rows differ so much that the full layout is better.
SegmentPlan plan_events(const Dictionary& dictionary);
// The same, and when rows are not sorted.
SegmentPlan plan_ladder(const Dictionary& dictionary, bool* is_sorted);
SegmentPlan plan_full(const Dictionary& dictionary);

template <class T>
void append(std::vector<std::byte>& out, T v) {
  const auto* p = as_bytes(&v);
  out.insert(out.end(), p, p + sizeof v);
}
inline void append_number(const Dictionary& d, std::size_t v, std::vector<std::byte>& header) {
  if (d.coding == Coding::Packed) return append(header, static_cast<std::uint16_t>(v));
  for (; v >= 0x80; v >>= 7) append(header, static_cast<std::uint8_t>(v | 0x80));
  append(header, static_cast<std::uint8_t>(v));
}
inline void append_scales(const Dictionary& d, std::vector<std::byte>& header) {
  for (std::size_t f = 0; f < d.shape.features; ++f) append(header, d.scales.of[f]);
}

}  // namespace cdd::levels
