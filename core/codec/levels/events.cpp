// Decoder of the events layout: parses a segment and unpacks, as far as rows before the end of the range need
// it, what core/simd/levels/replay-inl.h makes rows of.
//
// Ids of entries: 0 to D-1 the first row's slots, then the other entries put in with values of their own,
// then the patches.

#include <algorithm>

#include "core/codec/levels/segment.h"
#include "core/codec/work.h"

namespace cdd::levels {
namespace {

// Not initialised: most of the room for lanes is not used.
struct Header {
  Scales scales;
  std::uint32_t edges[2];
  std::uint32_t n_insert, n_patch, n_known, n_move, n_special, first_key;
  std::size_t n_events, n_entries;
  Stream counts, kinds, slots, moves, known;
  std::array<Stream, kMaxLanes> inserts, patches;
  const std::byte* specials;
};

void take_counts(const Shape& shape, std::size_t n_rows, Cursor& in, Coding coding, Header& h) {
  take_scales(in, shape, h.scales);
  h.edges[0] = take_number(in, coding);
  h.edges[1] = take_number(in, coding);
  h.n_insert = take_number(in, coding);
  h.n_patch = take_number(in, coding);
  h.n_known = take_number(in, coding);
  h.n_move = take_number(in, coding);
  h.n_special = take_number(in, coding);
  h.first_key = in.take<std::uint32_t>();
  h.n_events = std::size_t{h.n_insert} + h.n_patch + h.n_known;
  h.n_entries = std::size_t{shape.slots} + h.n_insert + h.n_patch;
  if (h.edges[0] >= shape.slots || h.edges[1] >= shape.slots || h.n_entries > n_rows * shape.slots ||
      h.n_entries >= kMaxCells || h.n_events > (n_rows - 1) * shape.slots || h.n_move > h.n_events) {
    fail(ErrorCode::Corrupt, "levels: a segment of %zu rows with %zu events", n_rows, h.n_events);
  }
}

// visit(stream, how many values it has, whether it may be relative), in their order.
template <class Visit>
void for_each_stream(const Shape& shape, std::size_t n_rows, Header& h, const Visit& visit) {
  visit(h.counts, n_rows - 1, false);
  visit(h.kinds, h.n_events, false);
  visit(h.slots, h.n_events, false);
  visit(h.moves, h.n_move, false);
  visit(h.known, h.n_known, false);
  const std::size_t lanes = h.scales.lanes, keys = h.scales.key_lanes;
  for (std::size_t l = 0; l < lanes; ++l) {
    visit(h.inserts[l], shape.slots + h.n_insert - (l == 0 ? 1 : 0), false);
  }
  for (std::size_t l = keys; l < lanes; ++l) visit(h.patches[l], h.n_patch, true);
}

void take_header(const Shape& shape, std::size_t n_rows, Cursor in, Coding coding, Header& h) {
  take_counts(shape, n_rows, in, coding, h);
  h.specials = take_streams(in, coding, h.n_special * special_bytes(shape),
                            [&](const auto& visit) { for_each_stream(shape, n_rows, h, visit); });
}

// Working memory for the whole segment; every array has room for a vector behind it. Returns that of entries.
std::byte* carve(const Shape& shape, const Header& h, simd::LevelsReplay& r) {
  const std::size_t events = h.n_events, ids = (r.end_row - r.first_row) * shape.slots + 64;
  const std::size_t lanes = r.lane_pitch * h.scales.lanes;
  const std::size_t entries = (h.n_entries + 16) * simd::levels_entry_stride(shape.entry_bytes());
  const std::size_t bytes =
      Arena::bytes_for(r.end_row, 4) + (4 + simd::kLevelsOpColumns) * Arena::bytes_for(events, 4) +
      Arena::bytes_for(ids, 2) + Arena::bytes_for(lanes, 4) + Arena::bytes_for(entries, 1);
  Arena arena(scratch<CodecWork>().get(bytes).data());
  r.counts = arena.take<std::uint32_t>(r.end_row);
  for (auto** p : {&r.kinds, &r.event_slots, &r.moves, &r.known, &r.ops.slot, &r.ops.low, &r.ops.length,
                   &r.ops.is_down, &r.ops.id, &r.ops.parent, &r.ops.heirs}) {
    *p = arena.take<std::uint32_t>(events);
  }
  r.ids = arena.take<std::uint16_t>(ids);
  r.lanes = arena.take<std::uint32_t>(lanes);
  return arena.take<std::byte>(entries);
}

void read_events(const simd::LevelsKernels& kernels, const Header& h, std::size_t n_rows, Coding coding,
                 simd::LevelsReplay& r) {
  read_stream(kernels, h.counts, 0, r.end_row - 1, r.counts);
  r.n_events = events_before(r.counts, r.end_row, n_rows, h.n_events);
  r.n_inserts = std::min<std::size_t>(h.n_insert, r.n_events);
  r.n_patches = std::min<std::size_t>(h.n_patch, r.n_events);
  r.n_known = std::min<std::size_t>(h.n_known, r.n_events);
  r.n_moves = std::min<std::size_t>(h.n_move, r.n_events);
  read_stream(kernels, h.kinds, 0, r.n_events, r.kinds);
  read_stream(kernels, h.slots, 0, r.n_events, r.event_slots);
  if (coding == Coding::Coded) {
    sum_in_rows(kernels, r.counts, r.end_row - 1, r.event_slots, r.n_events, r.ops.slot);
  }
  read_stream(kernels, h.moves, 0, r.n_moves, r.moves);
  read_stream(kernels, h.known, 0, r.n_known, r.known);
}

void read_lanes(const simd::LevelsKernels& kernels, const Shape& shape, const Header& h,
                simd::LevelsReplay& r) {
  const std::size_t slots = shape.slots, lanes = h.scales.lanes, keys = h.scales.key_lanes;
  r.lanes[0] = h.first_key;
  for (std::size_t l = 0; l < lanes; ++l) {
    std::uint32_t* lane = r.lanes + l * r.lane_pitch;
    const std::size_t skip = l == 0 ? 1 : 0;
    // Inserts first: reading them may write a little into the room of the patches.
    read_stream(kernels, h.inserts[l], 0, slots + r.n_inserts - skip, lane + skip);
    if (l < keys) {
      std::fill_n(lane + r.first_patch, r.n_patches, 0);
    } else {
      read_stream(kernels, h.patches[l], 0, r.n_patches, lane + r.first_patch);
    }
  }
  kernels.prefix_sum(r.lanes, slots);
}

// Patches take over the lanes of feature 0, and those that are stored as what they differ by.
std::size_t list_patch_lanes(const Header& h, std::uint8_t* list) {
  std::size_t n = 0;
  for (std::uint32_t l = 1; l < h.scales.lanes; ++l) {
    if (l < h.scales.key_lanes || h.patches[l].head.delta) list[n++] = static_cast<std::uint8_t>(l);
  }
  return n;
}

}  // namespace

void decode_events(const Shape& shape, std::size_t n_rows, Cursor segment, Coding coding, RowRange range,
                   const Cells* cells, std::byte* out) {
  Header h;
  take_header(shape, n_rows, segment, coding, h);
  std::array<std::uint8_t, kMaxLanes> patch_lanes;
  simd::LevelsReplay r;
  r.slots = shape.slots;
  r.first_row = static_cast<std::size_t>(range.first);
  r.end_row = static_cast<std::size_t>(range.first + range.count);
  r.middle = shape.middle();
  r.edges[0] = h.edges[0];
  r.edges[1] = h.edges[1];
  r.first_patch = shape.slots + h.n_insert;
  r.n_entries = static_cast<std::uint32_t>(h.n_entries);
  r.lane_pitch = static_cast<std::size_t>(align_up(h.n_entries + 17, 16));
  r.patch_lanes = patch_lanes.data();
  r.n_patch_lanes = list_patch_lanes(h, patch_lanes.data());
  std::byte* entries = carve(shape, h, r);
  const simd::LevelsKernels& kernels = simd::levels_kernels();
  read_events(kernels, h, n_rows, coding, r);
  read_lanes(kernels, shape, h, r);
  if (!kernels.replay(r)) fail(ErrorCode::Corrupt, "levels: an event that no row can have");
  const std::size_t stride = simd::levels_entry_stride(shape.entry_bytes());
  simd::LevelsColumns columns{r.lanes, r.lane_pitch, h.scales.of.data(), shape.features, shape.item_bytes};
  kernels.make_entries(columns, shape.slots + r.n_inserts, entries);
  columns.lanes += r.first_patch;
  kernels.make_entries(columns, r.n_patches, entries + r.first_patch * stride);
  apply_specials(shape, h.specials, h.n_special, h.n_entries, entries);
  const std::size_t rows = r.end_row - r.first_row;
  if (cells != nullptr) {
    const auto ids_of = [&](std::size_t row) { return r.ids + row * shape.slots; };
    gather_cells(shape, *cells, entries, stride, ids_of, 1, rows, out);
    return;
  }
  kernels.gather({entries, stride, shape.entry_bytes(), shape.slots, out, rows}, r.ids);
}

}  // namespace cdd::levels
