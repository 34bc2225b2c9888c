// Finds every whole record of a file without trusting its index: what `repair` keeps.
//
// A record is whole when its rows decode to their BLAKE3 hash and its record_check holds for a chunk number
// that fits between its neighbours'. The number stands nowhere but in that check, so it is found by trying.
// The index is asked for one thing only, which rows those were that are gone. The header must be intact: it
// has the salt of all checks. Bears any file, as readers do; the storage must not change meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/storage/storage.h"
#include "core/store/header.h"

namespace cdd {

struct WholeRecord {
  std::uint64_t chunk = 0;  // its number in the file it was found in
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t n_rows = 0;
};

// Chunks [first, first + count) of which no whole record is there.
struct LostChunks {
  std::uint64_t first = 0;
  std::uint64_t count = 0;  // 0 behind the last record: bytes are there, how many chunks is unknown
  std::optional<std::uint64_t> row_begin;  // their rows, as far as the index or their neighbours tell
  std::optional<std::uint64_t> row_end;
};

struct Salvage {
  Header header;
  RowLayout layout;                  // unset when the header has none and nothing was found
  std::vector<WholeRecord> records;  // in the order of the file, which is that of their numbers
  std::uint64_t rows = 0;            // of all of them
  std::uint64_t whole_end = 0;       // the number after the last of them that ends an append
  std::vector<LostChunks> lost;
  // False when the search was given up, as a file that is made to keep it busy deserves: there may be more.
  bool complete = true;
};

// Throws what read_header throws, and Io. Records of more raw bytes than `max_chunk_raw_bytes` are no
// records.
Salvage salvage(const Storage& storage, std::uint64_t max_chunk_raw_bytes = kMaxChunkRawBytes);

}  // namespace cdd
