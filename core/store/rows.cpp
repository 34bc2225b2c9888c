#include "core/store/rows.h"

#include "core/codec/cells.h"

namespace cdd {
namespace {

using ull = unsigned long long;  // for printf

}  // namespace

void check_range(RowRange range, std::uint64_t rows) {
  if (range.first <= rows && range.count <= rows - range.first) return;
  if (range.count > ~range.first) {
    fail(ErrorCode::OutOfRange, "%llu rows from %llu on are not within the store's %llu", ull{range.count},
         ull{range.first}, ull{rows});
  }
  fail(ErrorCode::OutOfRange, "rows %llu to %llu are not within the store's %llu", ull{range.first},
       ull{range.first} + range.count, ull{rows});
}

const Cells* checked_cells(const RowLayout& layout, const Cells* cells) {
  if (cells == nullptr) return nullptr;
  if (cells->level_begin >= cells->level_end || cells->level_end > layout.levels() ||
      cells->feature_begin >= cells->feature_end || cells->feature_end > layout.features() ||
      cells->level_step == 0) {
    fail(ErrorCode::InvalidArgument,
         "levels %u to %u by %u and features %u to %u are not within rows of %u and %u", cells->level_begin,
         cells->level_end, cells->level_step, cells->feature_begin, cells->feature_end, layout.levels(),
         layout.features());
  }
  return cells_bytes(layout, cells) == layout.row_bytes() ? nullptr : cells;
}

std::uint64_t check_windows(std::uint64_t count, std::uint64_t rows, std::uint64_t row_bytes,
                            std::size_t bytes) {
  std::uint64_t all_rows = 0;
  std::uint64_t needed = ~std::uint64_t{0};
  if (!checked_mul(count, rows, &all_rows) || !checked_mul(all_rows, row_bytes, &needed) || needed != bytes) {
    fail(ErrorCode::InvalidArgument,
         "a buffer of %zu bytes is too %s for %llu windows of %llu rows of %llu bytes", bytes,
         bytes > needed ? "long" : "short", ull{count}, ull{rows}, ull{row_bytes});
  }
  return all_rows;
}

}  // namespace cdd
