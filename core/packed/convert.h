// Cells of one column made into items of a type, and which types a cell is of.
#pragma once

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

// Writes items of `type`, which is not text, and adds first_row + r to `nulls` for each empty cell r, whose
// item is 0. `found`: the type was found, so only what accepted_types() says is of it. Returns how many rows
// it did: fewer than there are where one is not of the type.
std::size_t convert(Type type, bool found, const CellRun& run, std::byte* items, std::uint64_t first_row,
                    std::vector<std::uint64_t>& nulls);

// An item as text: the shortest that reads back the same. Writes at most kMaxNumberText characters.
std::size_t format_item(Type type, const std::byte* item, char* out) noexcept;

}  // namespace cdd::packed
