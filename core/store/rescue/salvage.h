// Finds every whole record of a file whose index need not be there: what `repair` keeps.
//
// A record is whole when its rows decode to their BLAKE3 hash and its record_check holds for a chunk number.
// What a slot of the index points at is taken first, for that slot's number. All else is looked for; its
// number stands nowhere but in that check, so it is found by trying those that are not taken. So a record may
// be out of place, and one that is pushes out no other. The header must be intact: it has the salt of all
// checks. Bears any file, as readers do; the storage must not change meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/storage/storage.h"
#include "core/store/header.h"

namespace cdd {

inline constexpr std::uint64_t kWorkPerFileByte = 16;

struct WholeRecord {
  std::uint64_t chunk = 0;  // its number in the file it was found in
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t n_rows = 0;
};

// Chunks [first, first + count) of which no whole record is there.
struct LostChunks {
  std::uint64_t first = 0;
  std::uint64_t count = 0;                 // 0 at the end: more is or was there, how many chunks is unknown
  std::optional<std::uint64_t> row_begin;  // their rows, as far as the index or their neighbours tell
  std::optional<std::uint64_t> row_end;
};

struct Salvage {
  Header header;
  RowLayout layout;                  // unset when the header has none and nothing was found
  std::vector<WholeRecord> records;  // in the order of their numbers; offsets may be in another
  std::uint64_t rows = 0;            // of all of them
  std::uint64_t whole_end = 0;       // the number after the highest of them that ends an append
  std::vector<LostChunks> lost;
  // False when the search was given up, as a file that is made to keep it busy deserves: there may be more.
  bool complete = true;
};

// Throws what read_header throws, and Io. Records of more raw bytes than `max_chunk_raw_bytes` are no
// records. `progress` is told bytes of the file.
//
// Decoding, checks and numbers that lead to no record take at most kWorkPerFileByte bytes of work for each
// byte of the file and that of two of the largest chunks; then the search is given up.
Salvage salvage(const Storage& storage, std::uint64_t max_chunk_raw_bytes = kMaxChunkRawBytes,
                const Progress& progress = {});

}  // namespace cdd
