// Where the slots of an index stand, what their checks are keyed with, and what a block's header says of it:
// for the writer, the walk, recovery and rescue alike. Specification: docs/formats/cdd.md, "CHUNK_OFFSETS".
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/hash.h"
#include "core/format/cdd/slot.h"

namespace cdd {

// The place in the file of a slot of the block at `block`; the link's position is the block's capacity.
constexpr std::uint64_t slot_offset(std::uint64_t block, std::uint64_t position) noexcept {
  return block + kBlockHeaderBytes + kSlotBytes * position;
}

// The key of the check of the slot at a position of block k.
inline std::uint64_t slot_key(const BlockGeometry& geometry, std::uint64_t k,
                              std::uint64_t position) noexcept {
  return position == geometry.capacity(k) ? kLinkKey | k : geometry.first_chunk(k) + position;
}

// Whether a slot is the clean-close slot of its position: one of an earlier time says another.
inline bool is_commit_at(const std::optional<Slot>& slot, std::uint64_t position) noexcept {
  constexpr std::uint32_t kFlags = slot_flags::kCommit | slot_flags::kSynced;
  return slot && (slot->flags & kFlags) == kFlags && slot->record_check == position;
}

// The seal in a block's header: the hash of its slots, zero while the block is open.
inline Hash128 seal_of(const std::byte* header) noexcept {
  return {load<std::uint64_t>(header + kBlockHashAt), load<std::uint64_t>(header + kBlockHashAt + 8)};
}
// Something is there: a writer began to seal the block.
inline bool has_seal(const Hash128& seal) noexcept { return seal[0] != 0 || seal[1] != 0; }
// It is not torn. Sealing follows a sync: where all else was durable, that tells enough.
inline bool is_whole_seal(const Hash128& seal) noexcept { return seal[0] != 0 && seal[1] != 0; }
// It is the hash of these slots, the link included.
inline bool seal_holds(const Hash128& seal, Bytes slots) noexcept {
  return has_seal(seal) && hash128(slots) == seal;
}

}  // namespace cdd
