// Where rows and fields of CSV text begin and end, 64 bytes a step, and packed rows made of them.
//
// Rows are those of Python's csv module in its strict mode: LF, CRLF and a lone CR end a row outside quotes,
// inside they are data; blank lines are no rows. What a bare prefix-xor of the quotes reads differently is
// *bad*: a quote that opens inside a field, text after a closing one. Kernels stop there and say so;
// machine.h reads it. Pure functions: total, noexcept, no alignment needed, no byte read outside [text, text
// + n) unless said. Every SIMD target gives what `reference` gives.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

inline constexpr std::size_t kCsvNone = ~std::size_t{0};

// Three different ASCII bytes, none of them CR or LF; a file without quotes has quotes == false.
struct CsvDialect {
  std::uint8_t delimiter = ',';
  std::uint8_t quote = '"';
  bool quotes = true;
};

// What is known before a byte: whether it stands in quotes, and what its left neighbour is.
struct CsvState {
  bool inside = false;
  bool after_separator = true;  // a delimiter or line end, or the start of the text
  bool after_end = true;        // a line end, or the start
  bool after_closing = false;   // a closing quote

  bool operator==(const CsvState&) const = default;
};

// The state after `before`, given whether quotes are open there.
CsvState csv_state_after(const CsvDialect& dialect, std::uint8_t before, bool inside) noexcept;

struct CsvCounts {
  std::uint64_t delimiters = 0;     // outside quotes, as are
  std::uint64_t ends = 0;           // line ends: CR and LF each count
  std::uint64_t rows = 0;           // line ends that end a row: no blank line, no LF of a CRLF
  std::uint64_t quotes = 0;         // all of them
  std::uint64_t quoted_fields = 0;  // fields that begin with a quote

  bool operator==(const CsvCounts&) const = default;
};

struct CsvScan {
  CsvCounts total;
  CsvCounts at_first_end;            // up to the first end of a row, that included
  std::size_t first_end = kCsvNone;  // the byte after it
  std::size_t first_bad = kCsvNone;  // the first quote out of place
  bool ascii = true;
  CsvState after;

  bool operator==(const CsvScan&) const = default;
};

// Counts text[0, n), which begins in `state`.
CsvScan scan_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, CsvState state) noexcept;

// A field: its bytes without the outer quotes. `doubled`: inner quotes are still doubled.
struct CsvCell {
  const std::byte* data;
  std::uint32_t bytes;
  std::uint16_t quoted;
  std::uint16_t doubled;
};

struct CsvCells {
  CsvCell* cells;
  std::size_t max_cells;    // at least 64 more than a row has
  std::uint32_t* row_ends;  // row r has cells [row_ends[r - 1], row_ends[r])
  std::size_t max_rows;     // at least 64
};

struct CsvTokens {
  std::size_t rows = 0;
  std::size_t consumed = 0;  // bytes: where the next row begins, blank lines passed over
  bool bad = false;          // that row has a quote out of place
  bool full = false;         // there was no room for more
};

// Cells of the whole rows of text[0, n), which begins with a row; n is below 2^32. Ends where the text does,
// where cells or rows are full, or before a row that is bad. `last`: a row without a line end ends at n,
// unless a quote is open.
CsvTokens tokenise_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                       const CsvCells& out) noexcept;

// Where packed rows of version 1 go.
struct CsvPackTarget {
  std::byte* fields;      // lengths and bytes, up to
  std::byte* fields_end;  // where nothing is written
  std::byte* offsets;     // a u32 a row
  std::size_t max_rows;
  std::uint64_t first_offset;  // of `fields` in the file
  std::uint32_t columns;
};

struct CsvPackedRows {
  std::size_t rows = 0;
  std::size_t bytes = 0;  // of fields
  bool whole = false;     // false: a row is bad, has not `columns` fields or an offset of 2^32, a
                          // field has 2^16 bytes, or there is no room; what was written has no meaning then
};

// Packs all rows of text[0, n), which begins with a row; the last may have no line end. Bytes up to
// text[readable) may be read, n <= readable.
CsvPackedRows pack_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, std::size_t readable,
                       const CsvPackTarget& target) noexcept;

// Where fields end, for columns to be read one after the other.
struct CsvFields {
  std::size_t rows = 0;
  std::size_t consumed = 0;  // bytes: the last of the rows ends here, blank lines may follow
  bool regular = false;      // false: a row is bad or has not `columns` fields; nothing else is known then
  bool quotes = false;       // there are some
};

// The ends of all fields of the whole rows of text[0, n), which begins with a row, one row after the other; n
// is below 2^32. ends[-1] is written, too: field i has the bytes [ends[i - 1] + 1, ends[i]) in arithmetic
// modulo 2^32, after the line ends that the first of a row may begin with. `ends` has room for n + 72 numbers
// and the one before. `last`: a row without a line end ends at n.
CsvFields find_csv_fields(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                          std::uint32_t columns, std::uint32_t* ends) noexcept;

// One column of `rows` rows, by the ends of its fields, which are `stride` apart.
struct CsvColumn {
  const std::byte* text;
  std::size_t readable;  // bytes of the text that may be read
  const std::uint32_t* ends;
  std::size_t rows;
  std::size_t stride;
  bool first;   // of the row: line ends may stand before it
  bool quotes;  // the text has some
};

// Copies a column's fields to `out`, one after the other, unescaped, and writes where each ends, `base`
// added, to `offsets`, an int64 a row. `out` has room for the bytes of the fields and kCsvSlack more, which
// may be written over. Returns how many bytes the fields are.
inline constexpr std::size_t kCsvSlack = 64;
std::size_t gather_csv_column(const CsvDialect& dialect, const CsvColumn& column, std::byte* out,
                              std::int64_t base, std::byte* offsets) noexcept;

namespace reference {
CsvFields find_csv_fields(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                          std::uint32_t columns, std::uint32_t* ends) noexcept;
std::size_t gather_csv_column(const CsvDialect& dialect, const CsvColumn& column, std::byte* out,
                              std::int64_t base, std::byte* offsets) noexcept;
CsvScan scan_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, CsvState state) noexcept;
CsvTokens tokenise_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                       const CsvCells& out) noexcept;
CsvPackedRows pack_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, std::size_t readable,
                       const CsvPackTarget& target) noexcept;
}  // namespace reference

}  // namespace cdd::simd
