// Rows of an array as text, a line each: CSV, or JSON with the brackets of the row's shape.
//
// Texts are those of format_item(): the shortest that read back the same. What a column repeats is not made
// again, so books, whose rows repeat most of the one before, are written at the speed of copying.
#pragma once

#include <vector>

#include "core/packed/columns.h"

namespace cdd::packed {

inline constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};

// Borrowed: `rows` rows of prod(dims) items each, one after the other; dims is empty for rows of one item.
struct ArrayRows {
  Type type = Type::Float32;  // Bool, Int64, UInt64, Float64, Time or Float32
  const std::byte* items = nullptr;
  std::uint64_t rows = 0;
  std::vector<std::uint32_t> dims;
  std::uint64_t first_number = kNoNumber;  // of the first row, where lines begin with their row's number
  std::int64_t number_step = 1;            // from one row to the next
};

// Fields that no number needs quotes for: not with every delimiter.
bool is_plain_for_numbers(const simd::CsvDialect& dialect) noexcept;

// One line a row, items in order. NaT is an empty field. The dialect is plain for numbers.
void append_csv(const simd::CsvDialect& dialect, const ArrayRows& rows, std::vector<std::byte>* out);

// One line a row: nested arrays, an item where rows are single ones; with numbers {"row": 7, "values": ...}.
// Floats that are no numbers are NaN, Infinity and -Infinity, as Python's json has them; -0 is -0.0, times
// are strings, NaT is null.
void append_json(const ArrayRows& rows, std::vector<std::byte>* out);

}  // namespace cdd::packed
