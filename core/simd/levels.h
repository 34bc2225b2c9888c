// The vector kernels of the LEVELS codec: plain pointers in, plain pointers out, no validation.
//
// The caller (core/codec/levels_*.cpp) has checked every count, slot and id before it calls. Kernels may read
// up to 64 bytes behind their inputs and write up to 64 bytes behind arrays of uint32 and entries; they never
// write behind rows. Specification of what they decode: docs/codecs.md, "LEVELS".
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// Rows whose ids are stored side by side, slot by slot, in the full layout.
inline constexpr std::size_t kIdBlockRows = 16;

// One change of a row: slot `from` is taken out, the slots between move by one, `entry` is put in at `slot`.
struct LevelsOp {
  std::uint16_t slot;
  std::uint16_t from;
  std::uint32_t entry;
};

// What an entry (one level: `features` items of `item_bytes`) is made of: for each feature one or two lanes
// of `lane_pitch` uint32, and how they become an item.
struct LevelsColumns {
  static constexpr std::uint8_t kBits = 0xff;

  const std::uint32_t* lanes;
  std::size_t lane_pitch;
  const std::uint8_t*
      scales;  // per feature: the decimal exponent, or kBits (the item's own bits, low lane first)
  std::uint32_t features;
  std::uint32_t item_bytes;  // 4 or 8
};

// Where entries and rows are.
struct LevelsRows {
  const std::byte* entries;
  std::size_t entry_stride;  // levels_entry_stride(entry_bytes)
  std::size_t entry_bytes;
  std::size_t slots;
  std::byte* out;
  std::size_t rows;
};

inline constexpr std::size_t levels_entry_stride(std::size_t entry_bytes) {
  return entry_bytes <= 8 ? 8 : (entry_bytes + 15) & ~std::size_t{15};
}

struct LevelsKernels {
  // n values of `width` bits (0 to 24), little-endian, plus `base` each (modulo 2^32).
  void (*unpack)(const std::byte* in, unsigned width, std::size_t n, std::uint32_t base, std::uint32_t* out);
  // v = (v >> 1) ^ -(v & 1)
  void (*unzigzag)(std::uint32_t* values, std::size_t n);
  // v[i] += v[i - 1], from left to right, modulo 2^32.
  void (*prefix_sum)(std::uint32_t* values, std::size_t n);
  // Entries [first, first + n) from their columns.
  void (*make_entries)(const LevelsColumns& columns, std::size_t first, std::size_t n, std::byte* entries);
  // The first row from `ids`, every further row from the row before and its ops: op_ends[r] is the end of row
  // r's ops (op_ends[0] is where row 1's begin).
  void (*replay_rows)(const LevelsRows& rows, const std::uint16_t* ids, const LevelsOp* ops,
                      const std::uint32_t* op_ends);
  // The ids of one block of `rows` rows (<= kIdBlockRows): ids[slot * kIdBlockRows + row], the first from
  // `starts`, the others by adding deltas[(slot - 1) * rows + row]. Ids are clamped to n_entries - 1; true
  // when none had to be.
  bool (*sum_ids)(const std::uint32_t* starts, const std::uint32_t* deltas, std::size_t rows,
                  std::size_t slots, std::uint32_t n_entries, std::uint32_t* ids);
  // rows.rows rows of a block, beginning at its row `first`.
  void (*gather_rows)(const LevelsRows& rows, const std::uint32_t* ids, std::size_t first);
};

// The kernels for this processor (or the targets a test allows).
const LevelsKernels& levels_kernels() noexcept;

}  // namespace cdd::simd
