// A column of a dataset: rows that lie in many stores, as one. It is told by a list of extents which rows of
// which file it has, in order; where a file lies, a prefix and its number say, or a table of exceptions.
//
// A Column never changes: a dataset that has grown makes a new one of the same extents. Nothing is opened
// before it is read.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/dataset/superchunks.h"
#include "core/store/rows.h"

namespace cdd {

// Rows [first, first + rows) of a superchunk; a row of the pages of a manifest, as it stands there.
struct Extent {
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};  // rows: to the end of the file

  std::uint64_t number = 0;  // of the superchunk; 0: no file, all items are the first bytes of `salt`
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  Salt salt{};                   // of the superchunk
  std::uint64_t first_item = 0;  // of a clock: its first and last item, where has_items says so
  std::uint64_t last_item = 0;
  std::uint64_t has_items = 0;
};
static_assert(sizeof(Extent) == 64);

// The extents of a column, with what was found out about their files.
class Extents {
 public:
  // Where a superchunk lies that is not at the column's own place.
  struct Elsewhere {
    std::string path;
    std::shared_ptr<Storage> memory;  // may be null
  };
  using Exceptions = std::unordered_map<std::uint64_t, Elsewhere>;

  // Throws Corrupt unless only the last extent is open and the rows can be counted.
  Extents(std::span<const Extent> extents, std::string prefix, Exceptions exceptions);

  std::size_t count() const noexcept { return extents_.size(); }
  const Extent& operator[](std::size_t i) const noexcept { return extents_[i]; }
  std::uint64_t begin(std::size_t i) const noexcept { return i == 0 ? 0 : ends_[i - 1]; }
  std::uint64_t end(std::size_t i) const noexcept { return ends_[i]; }  // kOpen for an open one
  // Whether any file is far away.
  bool is_far() const noexcept { return is_far_; }
  // The extent that has row `row`, which is below the last one's end.
  std::size_t with_row(std::uint64_t row) const noexcept;

  // "<prefix>17__.cdd"
  std::string path(std::size_t i) const;
  Superchunks::File& file(std::size_t i, Superchunks& superchunks) const;

  // Whether see() was told of file i as it is open now: that is once a reader, so its number tells.
  bool has_seen(std::size_t i, const Superchunks::Opened& opened) const noexcept {
    return seen_[i].number.load(std::memory_order_relaxed) == opened.number;
  }
  void see(std::size_t i, const Superchunks::Opened& opened) const noexcept;
  // Has the processor fetch what reading file i needs, all at once: of a thousand files that are read in
  // turns each piece is far away, and leads to the next.
  void fetch_ahead(std::size_t i) const noexcept;

 private:
  // Of a file: where reading it begins. But for the first, what is there may be closed by now.
  struct Seen {
    std::atomic<Superchunks::File*> file{nullptr};
    std::atomic<std::uint64_t> number{0};
    std::atomic<const Superchunks::Opened*> opened{nullptr};
    std::atomic<const Storage*> storage{nullptr};
  };

  std::vector<Extent> extents_;
  std::vector<std::uint64_t> ends_;
  double extents_in_a_row_ = 0;  // of those that have an end
  std::string prefix_;
  Exceptions exceptions_;
  bool is_far_ = false;
  mutable std::vector<Seen> seen_;
};

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

  // Has the processor fetch what reading rows from `row` on needs of an open superchunk.
  void fetch_ahead(std::uint64_t row) const noexcept;

  // Throws an error of a superchunk again, with the names of the column and the file.
  [[noreturn]] void blame(std::size_t extent, const Error& error) const;

 private:
  Superchunks::Use use(std::size_t extent) const;
  void search_extent(std::size_t extent, Bytes values, Side side, std::span<std::uint64_t> places) const;
  void need_rows(std::size_t extent, Reader& reader, std::uint64_t end) const;
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
