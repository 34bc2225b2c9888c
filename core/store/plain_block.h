// CHUNK_OFFSETS blocks of types 0 and 1: plain offsets, sealed for good. This version reads them and never
// writes them. They say where records start and no more, so rows, sizes and checks come from the records.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/format/slot.h"
#include "core/storage/storage.h"

namespace cdd {

struct PlainBlock {
  std::vector<std::optional<Slot>> slots;  // of its chunks; fewer than the capacity in a file's last block
  std::uint64_t next = 0;                  // offset of the next block, 0 for none
};

// Whether `block_header` (kBlockHeaderBytes of it) is one of type 0 or 1.
bool is_plain_block(const std::byte* block_header) noexcept;

// Reads the block at `offset`, `capacity` chunks, after `row_begin` rows. A record whose header cannot be
// read gives an empty slot. Throws Corrupt, Truncated, or Checksum when the block's hash does not hold.
PlainBlock read_plain_block(const Storage& storage, std::uint64_t offset, std::uint32_t capacity,
                            std::uint64_t row_begin);

}  // namespace cdd
