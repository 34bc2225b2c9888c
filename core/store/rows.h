// What a store and a dataset's column have in common: rows of one layout, read by range into the caller's
// memory. Whoever takes a Rows (the Python type of arrays, joins by time) does not ask where they lie.
//
// All functions may be called from any number of threads at once. They throw what Reader says.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/base/row_layout.h"

namespace cdd {

// On which side of equal values a searched one belongs: before the first, or after the last.
enum class Side : std::uint8_t { Left, Right };

class Rows {
 public:
  virtual ~Rows() = default;

  // Unset as long as nothing tells it.
  virtual const RowLayout& layout() const noexcept = 0;
  virtual std::uint64_t rows() const noexcept = 0;

  // Rows [range.first, range.first + range.count) into `out`, which has exactly their size; with `cells` only
  // these of each row, one after the other without gaps.
  virtual void read_into(RowRange range, MutableBytes out, const Cells* cells = nullptr) const = 0;

  // Has the processor fetch what reading rows from `row` on begins with, where it is not at hand; returns at
  // once. Any number will do.
  virtual void fetch_ahead(std::uint64_t row) const noexcept { static_cast<void>(row); }

  // `rows` rows from each of `starts`, one window after the other into `out`, which has exactly their size.
  virtual void read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                            const Cells* cells = nullptr) const = 0;

  // For each of `values`, items of the layout's dtype, the number of rows before the place where it belongs
  // among rows of one item that do not decrease. Throws InvalidArgument for rows of another kind.
  virtual void search(Bytes values, Side side, std::span<std::uint64_t> places) const = 0;

 protected:
  Rows() = default;
  Rows(const Rows&) = default;
  Rows& operator=(const Rows&) = default;
};

// Whether an item stands before the place of a value among sorted ones. Both are of this dtype; NaN comes
// last, as NumPy sorts. Throws InvalidArgument for a dtype without an order.
bool is_before(DType dtype, const std::byte* item, const std::byte* value, Side side);

// Throws OutOfRange unless `range` is within `rows`.
void check_range(RowRange range, std::uint64_t rows);

// Null where the cells are all there are. Throws InvalidArgument for cells that are not within `layout`.
const Cells* checked_cells(const RowLayout& layout, const Cells* cells);

// Throws InvalidArgument unless `count` windows of `rows` rows of `row_bytes` take exactly `bytes`. Returns
// how many rows that are.
std::uint64_t check_windows(std::uint64_t count, std::uint64_t rows, std::uint64_t row_bytes,
                            std::size_t bytes);

}  // namespace cdd
