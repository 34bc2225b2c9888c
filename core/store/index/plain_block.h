// CHUNK_OFFSETS blocks of types 0 and 1: plain offsets, sealed for good. This version reads them and never
// writes them. They say where records start and no more: rows and sizes come from the records, all of which
// are therefore read.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codec/chunk_codec.h"
#include "core/format/cdd/slot.h"
#include "core/storage/storage.h"

namespace cdd {

struct PlainBlock {
  std::vector<Slot> slots;  // of its chunks; fewer than the capacity in a file's last block
  std::uint64_t next = 0;   // offset of the next block, 0 for none
};

// Reads the block at `offset`, `capacity` chunks from `key` on, after `row_begin` rows, and the records
// themselves: rows after a record that is damaged have no numbers. Throws Corrupt, Truncated, Unsupported, or
// Checksum when the hash of the block or a check of a record does not hold.
PlainBlock read_plain_block(const Storage& storage, std::uint64_t offset, std::uint32_t capacity,
                            std::uint64_t row_begin, ChunkKey key);

}  // namespace cdd
