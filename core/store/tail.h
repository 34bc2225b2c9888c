// The rows of a writer that do not fill a chunk yet.
//
// An append's rows follow them, and a chunk may begin here and end there: such rows are put together behind
// the tail. They are copies, no part of it, until extend() takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/strided.h"

namespace cdd {

class Tail {
 public:
  Tail() = default;
  explicit Tail(std::size_t row_bytes) noexcept : row_bytes_(row_bytes) {}

  std::uint64_t rows() const noexcept { return rows_; }
  Bytes bytes() const noexcept { return Bytes(bytes_).first(bytes_of(rows_)); }

  // Rows [first, first + count) of the tail and `more` after it, in one piece; until the next call.
  Bytes run(RowSource& more, std::uint64_t first, std::uint64_t count);
  // A tail that holds all of these from row `first` on, of which there are `count`.
  Tail rest(RowSource& more, std::uint64_t first, std::uint64_t count);
  // Adds the first `count` rows of `more`: all of them, or none when there is no memory.
  void extend(RowSource& more, std::uint64_t count);

  // Lets go of what run() put together.
  void drop_copies() noexcept { bytes_.resize(bytes_of(rows_)); }
  void clear() noexcept;

 private:
  std::size_t bytes_of(std::uint64_t rows) const noexcept {
    return static_cast<std::size_t>(rows * row_bytes_);
  }

  std::size_t row_bytes_ = 0;
  std::uint64_t rows_ = 0;
  std::vector<std::byte> bytes_;  // rows_ and copies of those after them
};

}  // namespace cdd
