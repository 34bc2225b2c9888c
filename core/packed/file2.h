// Reads version 2: by its trailer and footer, or what is whole of a stream that was cut.
#pragma once

#include "core/format/packed/blocks.h"
#include "core/packed/columns.h"
#include "core/packed/packed_file.h"

namespace cdd::packed {

class File2 final : public PackedFile {
 public:
  explicit File2(Bytes bytes);

  unsigned version() const noexcept override { return 2; }
  std::uint64_t rows() const noexcept override { return rows_; }
  std::uint32_t columns() const noexcept override;
  const std::vector<std::string>& names() const noexcept override { return names_; }
  std::shared_ptr<const RowBlock> block_of(std::uint64_t row) const override;
  void check(Check check) const override;

  const Schema& schema() const noexcept { return schema_; }
  // Bytes at the end of a stream that was cut, which belong to no whole block; 0 for a finished file.
  std::uint64_t torn_bytes() const noexcept { return torn_; }
  // Whether there is a footer: no rows are missing.
  bool finished() const noexcept { return finished_; }

  // Typed columns of rows [first, first + count) of blocks of columns. Throws InvalidArgument where a block
  // has rows of text.
  Columns read_columns(std::uint64_t first, std::uint64_t count) const;

 private:
  void walk(std::uint64_t begin);
  const IndexEntry& entry_of(std::uint64_t row) const;
  BlockHeader header_of(const IndexEntry& entry) const;
  std::shared_ptr<RowBlock> read_rows(const BlockHeader& header) const;
  Columns read_block(const BlockHeader& header) const;

  Bytes bytes_;
  Schema schema_;
  std::vector<std::string> names_;
  std::vector<IndexEntry> index_;
  std::uint64_t rows_ = 0;
  std::uint64_t torn_ = 0;
  bool finished_ = false;
};

// Rows of typed columns as text: numbers as the shortest text that reads back the same, nulls empty.
std::shared_ptr<RowBlock> rows_of_columns(const Columns& columns);

}  // namespace cdd::packed
