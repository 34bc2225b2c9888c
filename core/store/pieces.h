// Rows of many places in one call: each wanted run of rows is cut into pieces of chunks; all pieces, of one
// store or of many, are then read chunk by chunk in the order of the files, on several threads where it pays.
//
// Rows that several pieces share are decoded once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/row_layout.h"

namespace cdd {

class Reader;

// Rows [first, first + count) of a chunk that are to stand at `to`.
struct Piece {
  const Reader* reader = nullptr;
  const Cells* cells = nullptr;  // null: whole rows; the same for all pieces of a reader
  std::uint64_t chunk = 0;
  std::uint64_t first = 0;  // of the store
  std::uint64_t count = 0;
  std::byte* to = nullptr;

  std::uint64_t end() const noexcept { return first + count; }
};

// Reads all of them, of which the whole rows are `raw_bytes`, and leaves them sorted. Throws as
// Reader::read_into.
void read_pieces(std::vector<Piece>& pieces, std::uint64_t raw_bytes);

}  // namespace cdd
