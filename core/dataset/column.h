// A column of a dataset: rows that lie in many stores, as one. It is told by a list of extents which rows of
// which file it has, in order; where a file lies, a prefix and its number say, or a table of exceptions.
//
// A Column never changes: a dataset that has grown makes a new one of the same extents. Nothing is opened
// before it is read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/dataset/extents.h"
#include "core/dataset/superchunks.h"
#include "core/store/rows.h"

namespace cdd {

class Column final : public Rows {
 public:
  // `name` for error texts. The last extent, when it is open, has whatever of `rows` the others have not.
  Column(std::string name, RowLayout layout, std::shared_ptr<const Extents> extents, std::uint64_t rows,
         std::shared_ptr<Superchunks> superchunks);

  const RowLayout& layout() const noexcept override { return layout_; }
  std::uint64_t rows() const noexcept override { return rows_; }
  const std::string& name() const noexcept { return name_; }
  const std::shared_ptr<const Extents>& extents() const noexcept { return extents_; }

  // Throw as Reader's; Corrupt for a superchunk that is missing, another or of other rows, Truncated for one
  // that has fewer rows than the column needs.
  void read_into(RowRange range, MutableBytes out, const Cells* cells = nullptr) const override;
  void fetch_ahead(std::uint64_t row) const noexcept override;
  void read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                    const Cells* cells = nullptr) const override;
  void search(Bytes values, Side side, std::span<std::uint64_t> places) const override;

  // Has files that are far away and not open yet begin to be fetched: those of several ranges at once.
  void ask_for_files(RowRange range) const;

  // Looks at the open extent's file again: how many rows the column could show. rows() where none is open.
  std::uint64_t rows_there() const;

  // Files that pieces are of: they stay open, and errors name them.
  struct PieceUse {
    Superchunks::Use file;
    const Column* column;
    std::size_t extent;
    std::size_t first_piece;
  };

  // Cuts rows as Reader::cut_into_pieces does. What no file holds stands at `out` at once.
  void cut_into_pieces(RowRange range, const Cells* cells, std::byte* out, std::vector<Piece>& pieces,
                       std::vector<PieceUse>& uses) const;

  // Throws an error of a superchunk again, with the names of the column and the file.
  [[noreturn]] void blame(std::size_t extent, const Error& error) const;

 private:
  // Errors of these two are of the file: blame() names the column.
  Superchunks::Use use(std::size_t extent) const;
  static void need_rows(const Superchunks::Use& use, std::uint64_t needed);
  static void look_for_rows(const Superchunks::Use& use, std::uint64_t needed);
  void check_layout(std::size_t extent, const Superchunks::Use& use) const;
  void read_parts(RowRange range, MutableBytes out, const Cells* cells) const;
  void read_part(std::size_t extent, RowRange range, MutableBytes out, const Cells* cells) const;
  void search_extent(std::size_t extent, Bytes values, Side side, std::span<std::uint64_t> places) const;
  void fill(const Extent& extent, MutableBytes out) const;
  std::uint64_t end(std::size_t extent) const noexcept { return std::min(extents_->end(extent), rows_); }
  std::size_t extent_for(const std::byte* value, Side side) const;

  std::string name_;
  RowLayout layout_;
  std::shared_ptr<const Extents> extents_;
  std::uint64_t rows_;
  std::shared_ptr<Superchunks> superchunks_;
};

// What one column contributes to a call of read_columns().
struct ColumnWindows {
  const Column* column = nullptr;
  const Cells* cells = nullptr;
  std::span<const std::uint64_t> starts;
  std::uint64_t rows = 0;
  MutableBytes out;
};

// Windows of several columns in one call: the pieces of all are read by file and chunk, on several threads
// where it pays. Throws as Column::read_windows.
void read_columns(std::span<const ColumnWindows> columns);

}  // namespace cdd
