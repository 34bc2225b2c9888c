// Reads one row of CSV at a time, byte by byte: what the kernels leave. Quotes out of place, comments, blank
// lines that count, and the words for what is wrong.
#pragma once

#include "core/packed/csv/options.h"

namespace cdd::packed {

struct MachineRow {
  std::vector<simd::CsvCell> cells;  // their bytes are in the arena
  std::vector<std::size_t> begins;   // of the text: where each of them begins
  std::size_t end = 0;               // of the text: where the next row may begin
};

enum class Machine { Row, End, Unfinished };

// Reads the next row of `text` from `at` on. Unfinished: the text ends within it, and `last` is false; End:
// there is none. Writes the fields' bytes to `arena`, which has room for text.size() - at, and moves it on.
// `place` is the row's number and the text's offset in the file, for errors. Throws Corrupt with the place.
Machine read_csv_row(const CsvOptions& options, Bytes text, std::size_t at, bool last, std::byte*& arena,
                     std::uint64_t row, std::uint64_t text_offset, MachineRow* out);

// Where a field of a row of `text` begins, found by reading all before it again: for errors alone. Rows that
// have not `columns` fields do not count where options.ragged is Skip.
std::size_t find_field(const CsvOptions& options, Bytes text, std::uint64_t row, std::uint32_t columns,
                       std::size_t field);

}  // namespace cdd::packed
