// Slots and the geometry of slot blocks (CHUNK_OFFSETS of type Slots). Bytes <-> structs, no I/O.
// Specification: docs/formats/cdd.md, "CHUNK_OFFSETS".
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/bytes.h"
#include "core/format/cdd/constants.h"

namespace cdd {

// One slot without its check. For a chunk: where its record is, how long, its record_check, and the number of
// rows in the file up to and including it. For a link: offset of the next block, row_end, zeros. For a
// commit: offset is the end of the file, row_end its rows, record_check the slot's position in its block.
struct Slot {
  std::uint64_t offset = 0;
  std::uint64_t row_end = 0;
  std::uint32_t size = 0;
  std::uint32_t record_check = 0;
  std::uint32_t flags = 0;

  bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
  bool is_chunk() const noexcept { return !has(slot_flags::kCommit | slot_flags::kLink); }
};

// Writes the slot with its check; `key` is the chunk number, or kLinkKey | block for a link position.
void put_slot(const Slot& slot, std::uint64_t salt, std::uint64_t key, std::byte* out) noexcept;

// Nothing when the check does not hold, as for zeros, a torn write, or another position's slot.
std::optional<Slot> parse_slot(const std::byte* bytes, std::uint64_t salt, std::uint64_t key) noexcept;

bool is_zero_slot(const std::byte* bytes) noexcept;

// Block k holds min(first_capacity * 2^k, max_capacity) chunks, so the block of a chunk and its slot there
// are arithmetic. Both capacities are powers of two.
class BlockGeometry {
 public:
  BlockGeometry() = default;
  // The caller has checked: powers of two, first <= max.
  BlockGeometry(std::uint32_t first_capacity, std::uint32_t max_capacity) noexcept;

  std::uint32_t capacity(std::uint64_t block) const noexcept;
  std::uint64_t first_chunk(std::uint64_t block) const noexcept;
  std::uint64_t block_of(std::uint64_t chunk) const noexcept;
  // Size of the whole block: header, slots, link.
  std::uint64_t block_bytes(std::uint64_t block) const noexcept {
    return kBlockHeaderBytes + kSlotBytes * (std::uint64_t{capacity(block)} + 1);
  }

 private:
  std::uint32_t first_capacity_ = kDefaultFirstCapacity;
  std::uint32_t max_capacity_ = kMaxCapacity;
  std::uint32_t doublings_ = 13;  // blocks before the capacity stays at max
};

// Where a block may start at or after `end`: its slot array is 64-byte aligned.
constexpr std::uint64_t align_block(std::uint64_t end) noexcept {
  return align_up(end + kBlockHeaderBytes, kSlotArrayAlignment) - kBlockHeaderBytes;
}

// u32 size, u16 type and a zero hash: an open slot block.
void put_block_header(std::uint64_t block_bytes, std::byte* out) noexcept;

}  // namespace cdd
