// Decoder of the events layout: parses a segment and unpacks, as far as rows before the end of the range need
// it, what core/simd/levels_replay-inl.h makes rows of.
//
// Ids of entries: 0 to D-1 the first row's slots, then the other entries put in with values of their own,
// then the patches.

#include <algorithm>

#include "core/base/scratch.h"
#include "core/codec/levels_segment.h"

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

void take_counts(const Shape& shape, std::size_t n_rows, Cursor& in, Header& h) {
  take_scales(in, shape, h.scales);
  h.edges[0] = in.take<std::uint16_t>();
  h.edges[1] = in.take<std::uint16_t>();
  h.n_insert = in.take<std::uint16_t>();
  h.n_patch = in.take<std::uint16_t>();
  h.n_known = in.take<std::uint16_t>();
  h.n_move = in.take<std::uint16_t>();
  h.n_special = in.take<std::uint16_t>();
  h.first_key = in.take<std::uint32_t>();
  h.n_events = std::size_t{h.n_insert} + h.n_patch + h.n_known;
  h.n_entries = std::size_t{shape.slots} + h.n_insert + h.n_patch;
  if (h.edges[0] >= shape.slots || h.edges[1] >= shape.slots || h.n_entries > n_rows * shape.slots ||
      h.n_events > (n_rows - 1) * shape.slots || h.n_move > h.n_events) {
    fail(ErrorCode::Corrupt, "levels: a segment of %zu rows with %zu events", n_rows, h.n_events);
  }
}

void take_header(const Shape& shape, std::size_t n_rows, Cursor in, Header& h) {
  take_counts(shape, n_rows, in, h);
  take_stream_head(in, n_rows - 1, h.counts);
  take_stream_head(in, h.n_events, h.kinds);
  take_stream_head(in, h.n_events, h.slots);
  take_stream_head(in, h.n_move, h.moves);
  take_stream_head(in, h.n_known, h.known);
  const std::size_t lanes = h.scales.lanes, keys = h.scales.key_lanes;
  for (std::size_t l = 0; l < lanes; ++l) {
    take_stream_head(in, shape.slots + h.n_insert - (l == 0 ? 1 : 0), h.inserts[l]);
  }
  for (std::size_t l = keys; l < lanes; ++l) take_stream_head(in, h.n_patch, h.patches[l]);
  for (Stream* s : {&h.counts, &h.kinds, &h.slots, &h.moves, &h.known}) take_stream_body(in, *s);
  for (std::size_t l = 0; l < lanes; ++l) take_stream_body(in, h.inserts[l]);
  for (std::size_t l = keys; l < lanes; ++l) take_stream_body(in, h.patches[l]);
  h.specials = in.take(h.n_special * special_bytes(shape));
}

// Working memory for the whole segment; every array has room for a vector behind it.
void carve(const Shape& shape, const Header& h, std::size_t end_row, simd::LevelsReplay& r) {
  constexpr std::size_t kBefore = 32, kBehind = 96;  // around a state
  const std::size_t events = h.n_events, stride = r.rows.entry_stride, lanes = r.lane_stride;
  const std::size_t column = r.columns.lane_pitch * h.scales.lanes, state = kBefore + shape.slots + kBehind;
  const std::size_t bytes = Arena::bytes_for(end_row, 4) + 4 * Arena::bytes_for(events, 4) +
                            Arena::bytes_for(events + 16, sizeof(simd::LevelsOp)) +
                            2 * Arena::bytes_for(state, 2) + Arena::bytes_for(column, 4) +
                            Arena::bytes_for(h.n_entries * lanes, 4) +
                            Arena::bytes_for(h.n_entries * stride, 1) + Arena::bytes_for(8 * lanes, 4) +
                            Arena::bytes_for(lanes, 4) + Arena::bytes_for(lanes, 8);
  Arena arena(scratch(Stage::Transform).get(bytes).data());
  r.counts = arena.take<std::uint32_t>(end_row);
  for (std::uint32_t** p : {&r.kinds, &r.slots, &r.moves, &r.known}) *p = arena.take<std::uint32_t>(events);
  r.ops = arena.take<simd::LevelsOp>(events + 16);
  for (std::uint16_t*& p : r.states) p = arena.take<std::uint16_t>(state) + kBefore;
  r.columns.lanes = arena.take<std::uint32_t>(column);
  r.lanes = arena.take<std::uint32_t>(h.n_entries * lanes);
  r.rows.entries = arena.take<std::byte>(h.n_entries * stride);
  r.masks = arena.take<std::uint32_t>(8 * lanes);
  r.raw_mask = arena.take<std::uint32_t>(lanes);
  r.factors = arena.take<double>(lanes);
}

void read_events(const simd::LevelsKernels& kernels, const Header& h, std::size_t n_rows,
                 simd::LevelsReplay& r) {
  read_stream(kernels, h.counts, 0, r.end_row - 1, r.counts);
  r.n_events = h.n_events;
  if (r.end_row < n_rows) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i + 1 < r.end_row; ++i) sum += r.counts[i];
    r.n_events = static_cast<std::size_t>(std::min<std::uint64_t>(sum, h.n_events));
  }
  r.n_inserts = std::min<std::size_t>(h.n_insert, r.n_events);
  r.n_patches = std::min<std::size_t>(h.n_patch, r.n_events);
  r.n_known = std::min<std::size_t>(h.n_known, r.n_events);
  r.n_moves = std::min<std::size_t>(h.n_move, r.n_events);
  read_stream(kernels, h.kinds, 0, r.n_events, r.kinds);
  read_stream(kernels, h.slots, 0, r.n_events, r.slots);
  read_stream(kernels, h.moves, 0, r.n_moves, r.moves);
  read_stream(kernels, h.known, 0, r.n_known, r.known);
}

void read_lanes(const simd::LevelsKernels& kernels, const Shape& shape, const Header& h,
                simd::LevelsReplay& r) {
  const std::size_t slots = shape.slots, lanes = h.scales.lanes, keys = h.scales.key_lanes;
  const std::size_t pitch = r.columns.lane_pitch;
  std::uint32_t* columns = r.columns.lanes;
  columns[0] = h.first_key;
  for (std::size_t l = 0; l < lanes; ++l) {
    const std::size_t skip = l == 0 ? 1 : 0;
    read_stream(kernels, h.inserts[l], 0, slots + r.n_inserts - skip, columns + l * pitch + skip);
  }
  kernels.prefix_sum(columns, slots);
  kernels.interleave(columns, pitch, lanes, slots + r.n_inserts, r.lane_stride, r.lanes);
  for (std::size_t l = 0; l < keys; ++l) std::fill_n(columns + l * pitch, r.n_patches, 0);
  for (std::size_t l = keys; l < lanes; ++l) {
    read_stream(kernels, h.patches[l], 0, r.n_patches, columns + l * pitch);
  }
  kernels.interleave(columns, pitch, lanes, r.n_patches, r.lane_stride,
                     r.lanes + r.first_patch * r.lane_stride);
}

// What makes a lane an item, and what entries take over from their parents.
void describe_lanes(const Shape& shape, const Header& h, simd::LevelsReplay& r) {
  const std::size_t stride = r.lane_stride;
  std::uint32_t *add_patch = r.masks, *add_insert = r.masks + 2 * stride, *add_before = r.masks + 6 * stride;
  std::uint32_t* negate_before = r.masks + 7 * stride;
  std::fill_n(r.masks, 8 * stride, 0);
  add_insert[0] = add_before[0] = negate_before[0] = ~0u;  // the key
  std::fill_n(r.raw_mask, stride, ~0u);
  std::fill_n(r.factors, stride, 1.0);
  std::size_t l = 0;
  for (std::uint32_t f = 0; f < shape.features; ++f) {
    const std::uint8_t scale = h.scales.of[f];
    if (scale != simd::LevelsColumns::kBits) {
      r.raw_mask[l] = 0;
      r.factors[l] = simd::kInversePowers[scale];
    }
    for (std::size_t k = shape.lanes_of(scale); k > 0; --k, ++l) {
      if (f == 0 || h.patches[l].head.delta) add_patch[l] = ~0u;
    }
  }
}

}  // namespace

void decode_events(const Shape& shape, std::size_t n_rows, Cursor segment, RowRange range, std::byte* out) {
  Header h;
  take_header(shape, n_rows, segment, h);
  simd::LevelsReplay r;
  r.rows = {nullptr, simd::levels_entry_stride(shape.entry_bytes()), shape.entry_bytes(), shape.slots,
            out,     static_cast<std::size_t>(range.count)};
  r.first_row = static_cast<std::size_t>(range.first);
  r.end_row = static_cast<std::size_t>(range.first + range.count);
  r.middle = shape.middle();
  r.edges[0] = h.edges[0];
  r.edges[1] = h.edges[1];
  r.first_patch = shape.slots + h.n_insert;
  r.n_all_patches = h.n_patch;
  r.lane_stride = static_cast<std::size_t>(align_up(h.scales.lanes, 4));
  const std::size_t pitch = static_cast<std::size_t>(align_up(std::max(r.first_patch, h.n_patch) + 16, 16));
  r.columns = {nullptr, pitch, h.scales.of.data(), shape.features, shape.item_bytes};
  r.entries_ready = false;
  carve(shape, h, r.end_row, r);
  const simd::LevelsKernels& kernels = simd::levels_kernels();
  read_events(kernels, h, n_rows, r);
  read_lanes(kernels, shape, h, r);
  describe_lanes(shape, h, r);
  bool good = kernels.replay(r);
  if (good && h.n_special != 0) {
    // Once more, now that the entries can be corrected: rare, and not worth a check per event.
    apply_specials(shape, h.specials, h.n_special, h.n_entries, r.rows.entries);
    r.entries_ready = true;
    good = kernels.replay(r);
  }
  if (!good) fail(ErrorCode::Corrupt, "levels: an event that no row can have");
}

}  // namespace cdd::levels
