// Rows of many places in one call: each wanted run of rows is cut into pieces of chunks; all pieces, of one
// store or of many, are then read chunk by chunk in the order of the files, on several threads where it pays.
//
// Rows that several pieces share are decoded once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/error.h"
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

// By reader, chunk and first row.
void sort_pieces(std::span<Piece> pieces);

// Is told which piece could not be read, and may throw a better error. Several threads may call it at once.
using Blame = std::function<void(const Piece&, const Error&)>;

// Reads pieces that are sorted, or lists of sorted ones of different readers one after the other. Their whole
// rows are `raw_bytes`. Throws as Reader::read_into, or what `blame` throws.
void read_sorted_pieces(std::span<const Piece> pieces, std::uint64_t raw_bytes, const Blame& blame = {});

}  // namespace cdd
