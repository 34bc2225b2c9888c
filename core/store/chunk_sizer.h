// How many rows the next chunk gets, so that its record is about as long as asked.
//
// The only way to know how well rows compress is to compress them, so the size follows what the chunks so far
// came to. Until the first chunk that is long enough, attempts double; one that is too long is cut. From then
// on it changes only every 16 chunks, so that so many may be encoded at once, or when they are on average far
// too long or short.
#pragma once

#include <cstdint>

#include "core/base/row_layout.h"

namespace cdd {

class ChunkSizer {
 public:
  // `fixed_rows` not 0: always that many. Otherwise records of about `target_bytes`, chunks of at most
  // `max_raw_bytes` (one row at least).
  ChunkSizer(const RowLayout& layout, std::uint32_t fixed_rows, std::uint32_t target_bytes,
             std::uint64_t max_raw_bytes);

  std::uint32_t rows() const noexcept { return rows_; }

  // Chunks from the next one on that rows() most likely stays the same for; 1 where accept() may refuse.
  std::uint32_t ahead() const noexcept;

  // Told that a chunk of rows() rows came to `record_bytes`. False: it is far too short or too long and
  // rows() has changed, so encode that many. True: keep it. Whatever the bytes are, refusals end: rows()
  // doubles at most until it shrinks, and from then on only shrinks.
  bool accept(std::uint32_t record_bytes) noexcept;

 private:
  bool refuses(std::uint32_t record_bytes) noexcept;
  std::uint32_t limit(double rows) const noexcept;
  void follow(std::uint32_t record_bytes) noexcept;

  bool fixed_;
  bool settled_ = false;
  bool has_shrunk_ = false;
  std::uint32_t target_bytes_;
  std::uint32_t max_rows_;
  std::uint32_t rows_;
  std::uint32_t group_chunks_ = 0;  // since rows_ changed
  std::uint64_t group_bytes_ = 0;   // of their records
};

}  // namespace cdd
