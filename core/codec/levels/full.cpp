// Decoder of the full layout: entries sorted by feature 0, each row as differences between neighbouring ids.

#include <algorithm>

#include "core/codec/levels/segment.h"
#include "core/codec/work.h"

namespace cdd::levels {

void decode_full(const Shape& shape, std::size_t n_rows, Cursor in, Coding coding, RowRange range,
                 const Cells* cells, std::byte* out) {
  Scales scales;
  take_scales(in, shape, scales);
  const std::size_t n_entries = std::size_t{take_number(in, coding)} + 1;
  const std::size_t n_special = take_number(in, coding);
  const auto first_key = in.take<std::uint32_t>();
  const std::size_t steps = shape.slots - 1;
  if (n_entries > n_rows * shape.slots)
    fail(ErrorCode::Corrupt, "levels: %zu entries in %zu rows", n_entries, n_rows);
  std::array<Stream, kMaxLanes> lanes;
  Stream starts, deltas;
  const std::byte* specials =
      take_streams(in, coding, n_special * special_bytes(shape), [&](const auto& visit) {
        for (std::size_t l = 0; l < scales.lanes; ++l) visit(lanes[l], n_entries - (l == 0 ? 1 : 0), false);
        visit(starts, n_rows, false);
        visit(deltas, n_rows * steps, false);
      });

  constexpr std::size_t kBlock = simd::kIdBlockRows;
  const std::size_t stride = simd::levels_entry_stride(shape.entry_bytes());
  const std::size_t pitch = static_cast<std::size_t>(align_up(n_entries + 16, 16));
  const RowSpan wanted(range);
  const std::size_t first_row = wanted.first / kBlock * kBlock;
  const std::size_t end = wanted.end();
  const std::size_t end_row = std::min<std::size_t>(n_rows, static_cast<std::size_t>(align_up(end, kBlock)));
  const std::size_t n_deltas = (end_row - first_row) * steps;
  Arena arena(scratch<CodecWork>()
                  .get(Arena::bytes_for(scales.lanes * pitch, 4) +
                       Arena::bytes_for((n_entries + 16) * stride, 1) +
                       Arena::bytes_for(end_row - first_row, 4) + Arena::bytes_for(n_deltas, 4) +
                       Arena::bytes_for(kBlock * shape.slots, 2))
                  .data());
  auto* columns = arena.take<std::uint32_t>(scales.lanes * pitch);
  auto* entries = arena.take<std::byte>((n_entries + 16) * stride);
  auto* start = arena.take<std::uint32_t>(end_row - first_row);
  auto* delta = arena.take<std::uint32_t>(n_deltas);
  auto* ids = arena.take<std::uint16_t>(kBlock * shape.slots);

  const simd::LevelsKernels& kernels = simd::levels_kernels();
  for (std::size_t l = 0; l < scales.lanes; ++l) {
    const std::size_t skip = l == 0 ? 1 : 0;
    read_stream(kernels, lanes[l], 0, n_entries - skip, columns + l * pitch + skip);
  }
  columns[0] = first_key;
  kernels.prefix_sum(columns, n_entries);
  kernels.make_entries({columns, pitch, scales.of.data(), shape.features, shape.item_bytes}, n_entries,
                       entries);
  apply_specials(shape, specials, n_special, n_entries, entries);

  read_stream(kernels, starts, first_row, end_row - first_row, start);
  read_stream(kernels, deltas, first_row * steps, n_deltas, delta);
  bool good = true;
  for (std::size_t row = first_row; row < end_row; row += kBlock) {
    const std::size_t rows = std::min(kBlock, n_rows - row);
    good &= kernels.sum_ids(start + (row - first_row), delta + (row - first_row) * steps, rows, shape.slots,
                            static_cast<std::uint32_t>(n_entries), ids);
    const std::size_t from = std::max(wanted.first, row);
    const std::size_t to = std::min<std::size_t>(end, row + rows);
    if (cells != nullptr) {
      const auto ids_of = [&](std::size_t i) { return ids + (from - row) + i; };
      out = gather_cells(shape, *cells, entries, stride, ids_of, kBlock, to - from, out);
    } else {
      kernels.gather_block({entries, stride, shape.entry_bytes(), shape.slots, out, to - from}, ids,
                           from - row);
      out += (to - from) * shape.row_bytes();
    }
  }
  if (!good) fail(ErrorCode::Corrupt, "levels: an id beyond %zu entries", n_entries);
}

}  // namespace cdd::levels
