// METADATA: the 128 bytes that fix how a file is read, before zstd. Bytes <-> struct, no I/O, no compression.
// Specification: docs/formats/cdd.md, "METADATA".
#pragma once

#include <array>
#include <cstdint>

#include "core/base/hash.h"
#include "core/base/row_layout.h"
#include "core/format/cdd/constants.h"
#include "core/format/cdd/slot.h"

namespace cdd {

struct Metadata {
  std::uint32_t incompatible = 0;         // features a reader must know to read
  std::uint32_t readonly_compatible = 0;  // features a writer must know to append
  std::uint32_t compatible = 0;           // features anyone may ignore
  std::array<std::byte, 16> salt{};
  std::uint32_t first_capacity = kDefaultFirstCapacity;
  std::uint32_t max_capacity = kMaxCapacity;
  BlockType index_type = BlockType::Slots;  // Offsets: all blocks are of types 0 and 1, the file is read-only
  RowLayout layout;                         // unset: the first chunk's record fixes it
  std::uint32_t chunk_rows = 0;             // hint: rows of a chunk as the user set them, 0 for "by bytes"
  std::uint64_t max_chunk_raw_bytes = kMaxChunkRawBytes;
  std::uint64_t created_ns = 0;  // since 1970, UTC

  std::uint64_t check_salt() const noexcept { return load<std::uint64_t>(salt.data()); }
  BlockGeometry geometry() const noexcept { return {first_capacity, max_capacity}; }
};

// Writes kMetadataBytes; the last 16 are the hash over MAGIC, VERSION, the bytes before and `user_meta_blob`.
void put_metadata(const Metadata& metadata, Bytes user_meta_blob, std::byte* out);

// Throws Corrupt, Checksum or Unsupported (an unknown incompatible feature, index type or dtype).
Metadata parse_metadata(Bytes bytes, Bytes user_meta_blob);

}  // namespace cdd
