// Rows in any order of strides and bytes, as NumPy's views have them: reversed, stepped, broadcast,
// transposed, big-endian. They are copied a piece at a time to where they stand one after the other.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/row_layout.h"

namespace cdd {

struct StridedRows {
  const std::byte* first = nullptr;  // of item (0, 0, ...)
  std::uint64_t rows = 0;
  std::ptrdiff_t row_stride = 0;  // bytes, maybe negative or 0
  std::size_t ndim = 0;           // of a row
  std::array<std::uint32_t, kMaxRowDims> dims{};
  std::array<std::ptrdiff_t, kMaxRowDims> strides{};
  std::size_t item_bytes = 0;
  std::size_t swap_bytes = 0;  // so many bytes of an item are reversed at a time; 0: none
};

// Rows [first, first + count) into `out`, which has exactly their size, in the machine's byte order.
void copy_rows(const StridedRows& from, std::uint64_t first, std::uint64_t count, MutableBytes out) noexcept;

// Rows that are asked for a few at a time and come one after the other: where they are if they stand so, else
// copied, which makes `kPieceBytes` the most that is asked for at once by whoever can choose.
class RowSource {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  RowSource(Bytes rows, std::size_t row_bytes) noexcept : plain_(rows), row_bytes_(row_bytes) {}
  RowSource(const StridedRows& rows, std::size_t row_bytes) noexcept
      : strided_(&rows), row_bytes_(row_bytes) {}

  bool is_copied() const noexcept { return strided_ != nullptr; }

  // Rows [first, first + count), until the next call.
  Bytes at(std::uint64_t first, std::uint64_t count);

  // work(rows, count) for all of n_rows, a piece at a time.
  template <class Work>
  void in_pieces(std::uint64_t n_rows, Work&& work) {
    const std::uint64_t most = is_copied() ? std::max<std::size_t>(1, kPieceBytes / row_bytes_) : n_rows;
    for (std::uint64_t first = 0; first < n_rows; first += most) {
      const std::uint64_t count = std::min(most, n_rows - first);
      work(at(first, count), count);
    }
  }

 private:
  Bytes plain_;
  const StridedRows* strided_ = nullptr;
  std::size_t row_bytes_;
  std::vector<std::byte> piece_;
};

}  // namespace cdd
