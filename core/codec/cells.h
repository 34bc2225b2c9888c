// Taking a part of each row out of whole rows: for codecs whose rows lie there, and for all that cannot make
// less than a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/base/row_layout.h"
#include "core/codec/work.h"

namespace cdd {

// Bytes of the cells of one row; null: all of it.
inline std::size_t cells_bytes(const RowLayout& layout, const Cells* cells) noexcept {
  if (cells == nullptr) return layout.row_bytes();
  return std::size_t{cells->levels()} * cells->features() * layout.item_bytes();
}

// f(bytes) with the number as a constant where it is a common one, so that copying so many is a load and a
// store; else with 0.
template <class F>
void with_known_bytes(std::size_t bytes, const F& f) {
  switch (bytes) {
    case 1:
      return f(std::integral_constant<std::size_t, 1>());
    case 2:
      return f(std::integral_constant<std::size_t, 2>());
    case 4:
      return f(std::integral_constant<std::size_t, 4>());
    case 8:
      return f(std::integral_constant<std::size_t, 8>());
    case 12:
      return f(std::integral_constant<std::size_t, 12>());
    case 16:
      return f(std::integral_constant<std::size_t, 16>());
    default:
      return f(std::integral_constant<std::size_t, 0>());
  }
}

// The cells of `n_rows` rows, one after the other without gaps, into n_rows * cells_bytes() bytes of `out`.
// They must be within a row; null: all of it.
void copy_cells(const RowLayout& layout, const Cells* cells, const std::byte* rows, std::uint64_t n_rows,
                std::byte* out) noexcept;

// The cells of rows that decode_rows(range, rows) makes: block by block in scratch<ChunkRows>(), as long as a
// core's own cache holds. A codec may have to begin at the chunk's first row each time, so there are never
// many blocks.
template <class DecodeRows>
void decode_in_blocks(const RowLayout& layout, RowRange range, const Cells& cells, std::byte* out,
                      DecodeRows&& decode_rows) {
  constexpr std::uint64_t kBlockBytes = std::uint64_t{256} << 10, kMostBlocks = 8;
  const std::uint64_t row_bytes = layout.row_bytes();
  const std::uint64_t block_bytes = std::max(kBlockBytes, range.count * row_bytes / kMostBlocks + row_bytes);
  const std::uint64_t block_rows = std::min(range.count, std::max<std::uint64_t>(1, block_bytes / row_bytes));
  std::byte* const rows = scratch<ChunkRows>().get(static_cast<std::size_t>(block_rows * row_bytes)).data();
  for (std::uint64_t done = 0; done < range.count; done += block_rows) {
    const std::uint64_t count = std::min(block_rows, range.count - done);
    decode_rows(RowRange{range.first + done, count}, rows);
    copy_cells(layout, &cells, rows, count, out);
    out += count * cells_bytes(layout, &cells);
  }
}

}  // namespace cdd
