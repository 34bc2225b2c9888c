// Rows of CSV text as cells, a block of rows at a time, with every option: the kernels where they may, the
// machine for what they leave. One thread; the text need not be whole.
#pragma once

#include <memory>

#include "core/packed/csv/machine.h"

namespace cdd::packed {

// A run of rows. Row r has cells [ends[r - 1], ends[r]), all unescaped; they point into the text or into the
// reader's memory, until the next block.
struct CsvBlock {
  const simd::CsvCell* cells = nullptr;
  const std::uint32_t* ends = nullptr;
  std::size_t rows = 0;
  std::uint32_t columns = 0;    // of each row
  std::uint64_t first_row = 0;  // in the file; rows that were skipped do not count
  std::uint64_t begin = 0;      // bytes of the text before it
  std::uint64_t end = 0;        // and with it
};

// What goes on from one text to the next of the same file.
struct CsvProgress {
  std::uint64_t rows = 0;         // given so far
  std::uint64_t lines = 0;        // rows read so far, those skipped for their length included
  std::uint64_t skipped = 0;      // by ragged = Skip
  std::uint64_t text_offset = 0;  // of the text in the file
  std::uint32_t columns = 0;      // of a row; 0: the first row decides
};

class CsvRows {
 public:
  // `text` begins with a row. `last`: it ends with the file. It outlives the reader.
  CsvRows(const CsvOptions& options, Bytes text, bool last, CsvProgress& progress);

  // The next rows, about `piece_bytes` of text. False where there are no more whole ones. Throws Corrupt with
  // the row's place, Limit.
  bool next(CsvBlock* block);

  // Where the first row begins that was not given.
  std::size_t consumed() const noexcept { return at_; }

 private:
  bool next_piece(CsvBlock* block);
  enum class Next { Kernel, Machine, Stop };  // who reads on

  void read_rows(Bytes piece, bool piece_is_last);
  Next read_by_kernel(Bytes piece, bool piece_is_last);
  bool read_by_machine(Bytes piece, bool piece_is_last);
  void unescape();
  void fit_columns(std::size_t first_row_cells);
  void check_utf8(Bytes used) const;
  [[noreturn]] void fail_columns(std::size_t columns) const;

  const CsvOptions& options_;
  Bytes text_;
  bool last_;
  CsvProgress& progress_;
  std::size_t at_ = 0;
  std::size_t window_;
  bool machine_only_;

  std::vector<simd::CsvCell> cells_;
  std::vector<std::uint32_t> ends_;
  std::size_t n_cells_ = 0;
  std::size_t n_rows_ = 0;
  std::size_t piece_used_ = 0;
  std::unique_ptr<std::byte[]> arena_;
  std::size_t arena_bytes_ = 0;
  std::byte* arena_at_ = nullptr;
  MachineRow row_;
  std::vector<simd::CsvCell> fitted_;
};

}  // namespace cdd::packed
