// Cells of one column made into items of a type, and which types a cell is of.
#pragma once

#include <string_view>
#include <vector>

#include "core/packed/columns.h"

namespace cdd::packed {

constexpr TypeMask mask_of(Type type) noexcept { return 1u << static_cast<unsigned>(type); }

// The types a field is of, when types are found: what reads back as the same text, and exactly.
TypeMask accepted_types(Bytes field) noexcept;

// Every `stride`th cell.
struct CellRun {
  const simd::CsvCell* cells;
  std::size_t rows;
  std::size_t stride;
};

// A column by the ends of its fields.
struct FieldRun {
  simd::CsvColumn column;
  bool ahead;  // 16 bytes before the end of each field may be read, whatever they are
  std::uint8_t quote;
  std::uint32_t* left;  // working memory, a number a row

  // Field r without line ends before it and outer quotes. Doubled quotes stay: what has some is text.
  std::string_view field(std::size_t r) const noexcept {
    const auto* const text = reinterpret_cast<const char*>(column.text);
    const std::uint32_t* const ends = column.ends + r * column.stride;
    std::uint32_t begin = ends[-1] + 1;
    const std::uint32_t end = ends[0];
    while (column.first && begin < end && (text[begin] == '\n' || text[begin] == '\r')) ++begin;
    const bool quoted = column.quotes && end - begin >= 2 && text[begin] == static_cast<char>(quote);
    return {text + begin + quoted, end - begin - 2 * std::size_t{quoted}};
  }
};

// Writes items of `type`, which is not text, and adds first_row + r to `nulls` for each empty cell r, whose
// item is 0. `found`: the type was found, so only what accepted_types() says is of it. Returns how many rows
// it did: fewer than there are where one is not of the type.
std::size_t convert(Type type, bool found, const CellRun& run, std::byte* items, std::uint64_t first_row,
                    std::vector<std::uint64_t>& nulls);
std::size_t convert(Type type, bool found, const FieldRun& run, std::byte* items, std::uint64_t first_row,
                    std::vector<std::uint64_t>& nulls);

// An item as text: the shortest that reads back the same. Writes at most kMaxNumberText characters.
std::size_t format_item(Type type, const std::byte* item, char* out) noexcept;

}  // namespace cdd::packed
