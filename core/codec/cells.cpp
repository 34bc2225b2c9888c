#include "core/codec/cells.h"

#include <cstring>

namespace cdd {
namespace {

// What lies together in a row, and where the next of it begins.
struct Runs {
  std::size_t count;  // in a row
  std::size_t bytes;
  std::size_t stride;
  std::size_t row_stride;
};

// kBytes: of a run, 0 for any number.
template <std::size_t kBytes>
void copy_runs(const Runs& runs, const std::byte* from, std::uint64_t n_rows, std::byte* out) noexcept {
  const std::size_t bytes = kBytes == 0 ? runs.bytes : kBytes;
  for (std::uint64_t row = 0; row < n_rows; ++row, from += runs.row_stride) {
    const std::byte* run = from;
    for (std::size_t i = 0; i < runs.count; ++i, run += runs.stride, out += bytes) {
      std::memcpy(out, run, bytes);
    }
  }
}

}  // namespace

void copy_cells(const RowLayout& layout, const Cells* cells, const std::byte* rows, std::uint64_t n_rows,
                std::byte* out) noexcept {
  if (cells == nullptr) {
    std::memcpy(out, rows, static_cast<std::size_t>(n_rows * layout.row_bytes()));
    return;
  }
  const std::size_t item_bytes = layout.item_bytes();
  const std::size_t level_bytes = layout.features() * item_bytes;
  Runs runs{cells->levels(), cells->features() * item_bytes, cells->level_step * level_bytes,
            layout.row_bytes()};
  if (runs.bytes == level_bytes && cells->level_step == 1)
    runs = {1, cells_bytes(layout, cells), 0, layout.row_bytes()};
  const std::byte* const from = rows + cells->level_begin * level_bytes + cells->feature_begin * item_bytes;
  with_known_bytes(runs.bytes, [&](auto bytes) { copy_runs<bytes>(runs, from, n_rows, out); });
}

}  // namespace cdd
