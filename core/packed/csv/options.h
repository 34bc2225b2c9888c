// How CSV text is to be read: what cdd.csv calls by the same names.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/simd/csv/csv.h"

namespace cdd::packed {

// What becomes of a row that has not as many fields as the first.
enum class Ragged : std::uint8_t { Error, Pad, Skip };   // Pad fills short rows, a longer one is an error
enum class Blank : std::uint8_t { Skip, Field, Error };  // Field: a row of one empty field

struct CsvOptions {
  simd::CsvDialect dialect;
  bool strict = true;  // false: quotes out of place are read as Python's csv module does
  bool utf8 = true;    // text that is no UTF-8 is an error
  bool has_comment = false;
  std::uint8_t comment = '#';  // a row that begins with it is none
  Ragged ragged = Ragged::Error;
  Blank blank = Blank::Skip;
  std::uint64_t skip_lines = 0;        // before the text; quotes mean nothing in them
  std::vector<std::uint32_t> columns;  // those that are wanted, in this order; empty: all
  std::uint64_t max_row_bytes = 1u << 30;
  std::uint32_t max_columns = 1u << 16;

  // Whether rows are what the kernels alone make of the text.
  bool plain() const noexcept {
    return !has_comment && ragged == Ragged::Error && blank == Blank::Skip && columns.empty();
  }
};

// Throws InvalidArgument where delimiter, quote and comment are not three different ASCII bytes other than CR
// and LF.
void check_options(const CsvOptions& options);

// Throws Limit for a row that has more bytes than options.max_row_bytes, with its place.
void check_row_bytes(const CsvOptions& options, std::size_t bytes, std::uint64_t row, std::uint64_t offset);

// How many bytes to pass over before the first row: a UTF-8 byte order mark and options.skip_lines lines.
// Throws Unsupported for UTF-16, OutOfRange where there are fewer lines and `last` says that the text ends.
// kCsvNone where more text is needed.
std::size_t csv_begin(const CsvOptions& options, Bytes text, bool last);

}  // namespace cdd::packed
