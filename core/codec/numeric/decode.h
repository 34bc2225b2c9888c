// NUMERIC, reading. The contracts are those of Codec.
#pragma once

#include "core/base/bytes.h"
#include "core/base/row_layout.h"

namespace cdd::numeric {

void decode_rows_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                      RowRange range, std::byte* out);

void decode_cells_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                       RowRange range, const Cells& cells, std::byte* out);

}  // namespace cdd::numeric
