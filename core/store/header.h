// The header of a file: METADATA and USER_META in their zstd frames, and where the first index block stands.
// Specification: docs/formats/cdd.md, "Header".
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/format/cdd/metadata.h"
#include "core/storage/storage.h"

namespace cdd {

struct Header {
  Metadata metadata;
  std::vector<std::byte> user_meta;  // the user's bytes, as given
  std::uint64_t first_block = 0;     // offset of the first CHUNK_OFFSETS block
};

// The header's bytes: as many as first_block. InvalidArgument when user_meta is over kMaxUserMetaBytes.
std::vector<std::byte> encode_header(const Metadata& metadata, Bytes user_meta);

// The salt of a new file.
std::array<std::byte, 16> random_salt();

// Throws Corrupt (not a cdd file), Truncated, Checksum, Unsupported (a newer version), at Place{Header}.
Header read_header(const Storage& storage);

}  // namespace cdd
