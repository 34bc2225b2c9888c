// Rows written as CSV text: quotes only where a field needs them, LF after each row.
//
// As Python's csv.writer does with QUOTE_MINIMAL and LF, but that a field with a CR is quoted, too: it would
// not be read back otherwise. A row of one empty field is "".
#pragma once

#include <vector>

#include "core/packed/columns.h"
#include "core/packed/packed_file.h"

namespace cdd::packed {

// Rows [first, first + count) of packed rows.
void append_csv(const simd::CsvDialect& dialect, const PackedFile& file, std::uint64_t first,
                std::uint64_t count, std::vector<std::byte>* out);

// Typed columns; nulls are empty fields, numbers the shortest text that reads back the same.
void append_csv(const simd::CsvDialect& dialect, const Columns& columns, std::vector<std::byte>* out);

}  // namespace cdd::packed
