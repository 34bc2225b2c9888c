// Joins by time: for each time of one column its row in another, both sorted. One pass over both, block by
// block and on several threads, in memory that does not depend on how long they are.
#pragma once

#include <cstdint>
#include <span>

#include "core/store/rows.h"

namespace cdd {

struct AsOf {
  enum class Direction : std::uint8_t { Backward, Forward, Nearest };
  static constexpr std::uint64_t kAny = ~std::uint64_t{0};

  Direction direction = Direction::Backward;
  std::uint64_t tolerance = kAny;  // in the common unit
  bool exact = true;               // whether equal times are joined
  // Times are multiplied by these to have a common unit.
  std::uint64_t left_factor = 1;
  std::uint64_t right_factor = 1;
};

// For each time of left's rows in `ranges` the row of `right` that it is joined with, -1 where there is none.
// Ranges lie one after the other: none begins before the last one ended.
// Backward: the last row that is not later; forward: the first that is not earlier; nearest: of these two the
// nearer, the earlier one where both are as near. Both have rows of one 64-bit integer of the same
// signedness. Throws InvalidArgument for others, for ranges that overlap and for a time that the common unit
// cannot hold, and as
// Rows::read_into.
void join_asof(const Rows& left, std::span<const RowRange> ranges, const Rows& right, const AsOf& how,
               std::span<std::int64_t> rows);

}  // namespace cdd
