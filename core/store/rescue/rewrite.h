// Makes a new store of another's rows: what repair, truncate and compact do, each all or nothing.
//
// The source is only read. The target is a file that gets its name when it is complete and durable; where
// that is the source's own name (`replace`), its lock is held until then, and readers keep the file they
// have open; Windows replaces no file that is open, that is an error there. Errors: Io, InvalidArgument,
// OutOfRange, and what reading the source throws. `progress` is told chunks or rows; what it throws ends the
// work with everything as it was.
#pragma once

#include <span>
#include <string>

#include "core/store/rescue/salvage.h"
#include "core/store/writer.h"

namespace cdd {

// Writes a whole store to `to`: the header of `from` with a new salt, and these records as they are, checked
// before, in this order. Appends stay whole where all their records are there.
void copy_records(const Storage& from, const Header& header, const RowLayout& layout,
                  std::span<const WholeRecord> records, WritableStorage& to, const Progress& progress = {});

// A new file with every whole record of a damaged one, which no writer may have open. Records of more raw
// bytes than `max_chunk_raw_bytes` are no records.
Salvage repair_file(const std::string& path, const std::string& output, bool replace,
                    std::uint64_t max_chunk_raw_bytes = kMaxChunkRawBytes, const Progress& progress = {});

// A new file with the first `rows` rows. Their chunks are verified and kept as they are, but the last one if
// it is cut.
void truncate_file(const std::string& path, const std::string& output, bool replace, std::uint64_t rows,
                   const Progress& progress = {});

struct Compacted {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;  // as compacted, whether or not that was kept
};

// A new file with the same rows in full chunks, encoded anew by `options` (layout and user_meta are the
// source's). `only_smaller`: unless it is smaller, it is dropped and nothing changes.
Compacted compact_file(const std::string& path, const std::string& output, bool replace, bool only_smaller,
                       WriterOptions options, const Progress& progress = {});

}  // namespace cdd
