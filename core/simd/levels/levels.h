// The vector kernels of the LEVELS codec: plain pointers in, plain pointers out, no validation.
//
// The caller (core/codec/levels/) has checked every count, slot and id before it calls. Kernels may read
// up to 64 bytes behind their inputs and write up to 64 bytes behind arrays of uint32 and entries; they never
// write behind rows. Specification of what they decode: docs/formats/codecs/levels.md, "LEVELS".
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// Rows whose ids are stored side by side, slot by slot, in the full layout.
inline constexpr std::size_t kIdBlockRows = 16;

// What an entry (one level: `features` items of `item_bytes`) is made of: for each feature one or two lanes
// of `lane_pitch` uint32, and how they become an item.
struct LevelsColumns {
  static constexpr std::uint8_t kBits = 0xff;

  std::uint32_t* lanes;
  std::size_t lane_pitch;
  const std::uint8_t*
      scales;  // per feature: the decimal exponent, or kBits (the item's own bits, low lane first)
  std::uint32_t features;
  std::uint32_t item_bytes;  // 4 or 8
};

// Rows to make, one after another, of entries.
struct LevelsRows {
  const std::byte* entries;
  std::size_t entry_stride;  // levels_entry_stride(entry_bytes)
  std::size_t entry_bytes;
  std::size_t slots;
  std::byte* out;
  std::size_t rows;
};

inline constexpr std::size_t levels_entry_stride(std::size_t entry_bytes) {
  return entry_bytes == 8 ? 8 : (entry_bytes + 15) & ~std::size_t{15};
}

// Events in the form in which they are carried out, a column for each part. Values that vectors of uint16
// work with stand in both halves of their words.
struct LevelsOps {
  std::uint32_t* slot;     // twice: where the entry is put in
  std::uint32_t* low;      // twice: slots [low, low + length) take what stands
  std::uint32_t* length;   // twice
  std::uint32_t* is_down;  // one slot below (0) or above (1)
  std::uint32_t* id;       // twice: the entry put in
  std::uint32_t* parent;   // twice: the slot of the entry it builds on, before anything moves
  std::uint32_t* heirs;    // the entries to which the parent's lanes are added: lane 0 (low half), the lanes
                           // that patches inherit (high half)
};
inline constexpr std::size_t kLevelsOpColumns = 7;

// The events of a segment and what they work on. Counts are those of the arrays; their values may be
// anything.
struct LevelsReplay {
  std::uint32_t slots;
  // Rows [0, end_row) are replayed; `ids` gets the entries of those from first_row on.
  std::size_t first_row, end_row;
  std::uint32_t middle;       // slots below it have edges[0], the others edges[1]
  std::uint32_t edges[2];     // below slots
  std::uint32_t first_patch;  // the id of the first patch; inserts come before

  std::uint32_t* counts;  // of rows 1 to end_row - 1
  std::uint32_t* kinds;
  std::uint32_t* event_slots;
  std::uint32_t* moves;
  std::uint32_t* known;
  std::size_t n_events, n_moves, n_known, n_inserts, n_patches;
  std::uint32_t n_entries;  // those of later rows, too; below 65536

  LevelsOps ops;  // each column has room for n_events and a vector
  // Lane l of entry i is lanes[l * lane_pitch + i]. What is inherited is added there; entry n_entries takes
  // what nobody inherits.
  std::uint32_t* lanes;
  std::size_t lane_pitch;
  const std::uint8_t* patch_lanes;  // the lanes other than 0 that patches inherit
  std::size_t n_patch_lanes;

  std::uint16_t* ids;  // for all slots of a row, row after row; 128 bytes more are written
};

// What an event of a ladder does at its place.
enum class LadderKind : std::uint8_t {
  New = 0,    // the next new entry stands there
  Gone = 1,   // nothing stands there
  Known = 2,  // the next of the known entries does
};
inline constexpr std::uint16_t kLadderNothing = 0xffff;  // no id
// The places of a side take whole groups of so many.
inline constexpr std::size_t kLadderGrain = 32;
inline constexpr std::size_t ladder_pitch(std::size_t n_places) {
  return (n_places + kLadderGrain - 1) / kLadderGrain * kLadderGrain;
}

inline constexpr std::size_t kLadderBlockRows = 64;

// A segment in which every row is what stands at places on two sides, one behind the other. Counts are those
// of the arrays; values may be anything where nothing is said of them.
struct LevelsLadder {
  std::uint32_t slots, split;  // slots below `split` are the first side's
  std::uint32_t places[2];
  bool keeps_last;                 // rows show the last places of the first side on which something stands
  std::uint32_t most_hidden;       // on the first side then, in front of them
  const std::byte* first_bits[2];  // of each side: a bit for each place, set where something stands in row 0

  // Rows [0, end_row) are replayed; ids are made of those from first_row on.
  std::size_t first_row, end_row;
  const std::uint32_t* counts;  // of rows 1 to end_row - 1, together at most n_events
  const std::uint32_t* codes;   // place << kind_bits | kind
  unsigned kind_bits;
  const std::uint32_t* known;
  std::size_t n_events, n_new, n_known;

  // Working memory with room for a vector behind each.
  std::uint16_t* at;                        // of each event: its place, plus the gap on the second side
  std::uint16_t* id;                        // and what it puts there
  std::uint16_t *standing, *standing_next;  // standing_pitch() and a grain each, aligned to 64 bytes
  std::size_t next_event;

  // Results: of all entries made the places (with room for all places more), and of a block of rows which
  // state each is in and where the ids of that, all twice, begin; `ids` has room for slots + most_hidden a
  // row, and standing_pitch() more.
  std::uint16_t* places_of_entries;
  std::uint16_t* ids;
  std::uint32_t states[kLadderBlockRows], starts[kLadderBlockRows];

  // The second side begins so far behind the first: a grain, unless nothing is between the parts of a row.
  std::size_t gap() const { return keeps_last ? 0 : ladder_pitch(places[0]) - places[0]; }
  std::size_t standing_pitch() const { return ladder_pitch(places[0] + gap() + places[1]); }
};

// Coded streams: values in bins, each the code of its bin and then bits that say where in the bin it is.
// What the next bits, as many as the longest code has, mean.
struct CodeEntry {
  std::uint32_t base;   // of the bin
  std::uint8_t length;  // bits of the code
  std::uint8_t width;   // bits behind it, at most 31
  std::uint8_t bits;    // both
  std::uint8_t unused;
};
static_assert(sizeof(CodeEntry) == 8);
inline constexpr unsigned kMaxCodeLength = 10;

struct CodeTable {
  const CodeEntry* entries;  // 2^index_bits
  unsigned index_bits;       // at most kMaxCodeLength
  unsigned most_bits;        // of a value
};

// Values are dealt out to lanes that are read side by side: value i of a stream is in lane i mod kCodeLanes.
inline constexpr std::size_t kCodeLanes = 4;
struct CodeLanes {
  const std::byte* bytes;       // what positions are relative to
  std::size_t bit[kCodeLanes];  // where each lane is read on, in bits
  std::size_t end[kCodeLanes];  // and ends
  std::size_t all_bytes;        // of all lanes; nothing further than 64 behind these is read
};

struct LevelsKernels {
  // n values of `width` bits (0 to 24), little-endian, plus `base` each (modulo 2^32).
  void (*unpack)(const std::byte* in, unsigned width, std::size_t n, std::uint32_t base, std::uint32_t* out);
  // The same for values whose low 16 bits stand apart from the others, of which there are 1 to 16.
  void (*unpack_wide)(const std::byte* low, const std::byte* high, unsigned high_width, std::size_t n,
                      std::uint32_t base, std::uint32_t* out);
  // v = (v >> 1) ^ -(v & 1)
  void (*unzigzag)(std::uint32_t* values, std::size_t n);
  // v[i] += v[i - 1], from left to right, modulo 2^32.
  void (*prefix_sum)(std::uint32_t* values, std::size_t n);
  // n entries from their columns.
  void (*make_entries)(const LevelsColumns& columns, std::size_t n, std::byte* entries);
  // Carries out the events of a segment; false when one is not possible, lanes and ids then hold anything.
  bool (*replay)(const LevelsReplay& replay);
  // Rows of entries by the ids of all their slots.
  void (*gather)(const LevelsRows& rows, const std::uint16_t* ids);
  // The ids of one block of `rows` rows (<= kIdBlockRows): ids[slot * kIdBlockRows + row], the first from
  // `starts`, the others by adding deltas[(slot - 1) * rows + row]. Ids are clamped to n_entries - 1; true
  // when none had to be.
  bool (*sum_ids)(const std::uint32_t* starts, const std::uint32_t* deltas, std::size_t rows,
                  std::size_t slots, std::uint32_t n_entries, std::uint16_t* ids);
  // rows.rows rows of a block, beginning at its row `first`.
  void (*gather_block)(const LevelsRows& rows, const std::uint16_t* ids, std::size_t first);
  // Reads the events of a ladder, says how many new entries they make, and carries out those of rows up to
  // the first; false when one is not possible.
  bool (*start_ladder)(LevelsLadder& ladder, std::size_t* n_new);
  // The ids of rows [row, row + n_rows) of the segment, at most kLadderBlockRows. Blocks follow one another
  // from the first row on. False when a row lacks something; ids then hold anything.
  bool (*ladder_block)(LevelsLadder& ladder, std::size_t row, std::size_t n_rows);
  // out[i] = table[index[i]] for n of them; index values of the n only are looked up.
  void (*take_each)(const std::uint32_t* table, const std::uint16_t* index, std::size_t n,
                    std::uint32_t* out);
  // Rows of entries, each by the doubled ids from ids[starts[states[row]]] on.
  void (*gather_rows)(const LevelsRows& rows, const std::uint16_t* ids, const std::uint32_t* starts,
                      const std::uint32_t* states);
  // The next n values of a stream, of which the first is in lane 0, and where the lanes are read on then. No
  // lane is to be read on behind its end. Where one ends too early, it is read on behind that, and values
  // are anything.
  void (*read_codes)(const CodeTable& table, CodeLanes& lanes, std::size_t n, std::uint32_t* out);
};

// A decimal lane's integer times this is its float32, rounded once from double.
inline constexpr double kInversePowers[] = {1e-0, 1e-1, 1e-2, 1e-3,  1e-4,  1e-5, 1e-6,
                                            1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12};
// Divided by this it is its float64.
inline constexpr double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

// The kernels for this processor (or the targets a test allows).
const LevelsKernels& levels_kernels() noexcept;

}  // namespace cdd::simd
