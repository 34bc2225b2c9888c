// Taking a part of each row out of whole rows: for codecs whose rows lie there, and for all that cannot make
// less than a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/row_layout.h"

namespace cdd {

// Bytes of the cells of one row; null: all of it.
inline std::size_t cells_bytes(const RowLayout& layout, const Cells* cells) noexcept {
  if (cells == nullptr) return layout.row_bytes();
  return std::size_t{cells->levels()} * cells->features() * layout.item_bytes();
}

// The cells of `n_rows` rows, one after the other without gaps, into n_rows * cells_bytes() bytes of `out`.
// They must be within a row; null: all of it.
void copy_cells(const RowLayout& layout, const Cells* cells, const std::byte* rows, std::uint64_t n_rows,
                std::byte* out) noexcept;

}  // namespace cdd
