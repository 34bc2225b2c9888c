// Packed rows of either version over bytes that somebody else keeps: which block has a row, and the block.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/format/packed/rows.h"
#include "core/os/pages.h"

namespace cdd::packed {

// Rows that lie together: a whole file of version 1, a block of version 2. A view into the file, or into
// `memory` where the block had to be decompressed or made.
struct RowBlock {
  RowsView view;
  std::uint64_t first_row = 0;
  Pages memory;
};

// Any number of threads may read. The bytes outlive it and do not change.
class PackedFile {
 public:
  virtual ~PackedFile() = default;

  // Looks at the header, and of version 2 at the index. Throws Truncated, Corrupt, Unsupported.
  static std::unique_ptr<PackedFile> open(Bytes bytes);

  virtual unsigned version() const noexcept = 0;
  virtual std::uint64_t rows() const noexcept = 0;
  virtual std::uint32_t columns() const noexcept = 0;  // of the longest row

  // Names of the columns in version 2; empty in version 1, whose names may be its row 0.
  virtual const std::vector<std::string>& names() const noexcept = 0;

  // The block that has `row`, which is below rows(). Version 2: may decompress and check it. Throws Corrupt,
  // Checksum and others with the row.
  virtual std::shared_ptr<const RowBlock> block_of(std::uint64_t row) const = 0;

  // Everything that `check` says, in each block. Throws the first thing that is wrong.
  virtual void check(Check check) const = 0;
};

// Column j of rows [first, first + count): where each text ends in `bytes`, and the bytes one after the
// other.
struct TextColumn {
  std::vector<std::uint64_t> ends;
  std::vector<std::byte> bytes;
};
TextColumn read_text_column(const PackedFile& file, std::uint32_t j, std::uint64_t first,
                            std::uint64_t count);

}  // namespace cdd::packed
