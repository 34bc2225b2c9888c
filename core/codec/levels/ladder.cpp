// Decoder of the ladder layout: takes a segment apart and unpacks, as far as rows before the end of the range
// need it, what core/simd/levels/ladder-inl.h makes rows of.

#include <algorithm>

#include "core/codec/levels/segment.h"
#include "core/codec/work.h"

namespace cdd::levels {
namespace {

// Not initialised: most of the room for lanes is not used.
struct Header {
  Scales scales;
  std::uint8_t flags;
  std::uint32_t split, places[2];
  std::uint32_t n_new, n_gone, n_known, n_special, first_key;
  std::size_t n_events, n_places, n_entries;
  const std::byte* first_bits[2];
  Stream counts, kinds, codes, known;
  std::array<Stream, kMaxLanes> lanes;
  const std::byte* specials;

  unsigned kind_bits() const noexcept { return flags & kKindBits; }
};

void take_counts(const Shape& shape, std::size_t n_rows, Cursor& in, Coding coding, Header& h) {
  take_scales(in, shape, h.scales);
  h.flags = in.take<std::uint8_t>();
  h.split = take_number(in, coding);
  h.places[0] = take_number(in, coding);
  h.places[1] = take_number(in, coding);
  h.n_new = take_number(in, coding);
  h.n_gone = take_number(in, coding);
  h.n_known = take_number(in, coding);
  h.n_special = take_number(in, coding);
  h.first_key = in.take<std::uint32_t>();
  h.n_events = std::size_t{h.n_new} + h.n_gone + h.n_known;
  h.n_places = std::size_t{h.places[0]} + h.places[1];
  h.n_entries = std::size_t{shape.slots} + h.n_new;
  if (h.flags > (kKindBits | kKeepsLast) || h.kind_bits() > 2 || h.split > shape.slots ||
      h.places[0] < h.split || h.places[1] < shape.slots - h.split || h.n_places > kMaxLadderPlaces ||
      h.n_entries > kMaxLadderEntries || h.n_events > (n_rows - 1) * (shape.slots + most_hidden(shape))) {
    fail(ErrorCode::Corrupt, "levels: a ladder of %zu rows with %zu events at %zu places", n_rows, h.n_events,
         h.n_places);
  }
}

void take_header(const Shape& shape, std::size_t n_rows, Cursor in, Coding coding, Header& h) {
  take_counts(shape, n_rows, in, coding, h);
  for (std::size_t s = 0; s < 2; ++s) h.first_bits[s] = in.take((h.places[s] + 7) / 8);
  h.specials = take_streams(in, coding, h.n_special * special_bytes(shape), [&](const auto& visit) {
    visit(h.counts, n_rows - 1, false);
    if (coding == Coding::Coded) visit(h.kinds, h.kind_bits() == 0 ? 0 : h.n_events, false);
    visit(h.codes, h.n_events, false);
    visit(h.known, h.n_known, false);
    const std::size_t lanes = h.scales.lanes, keys = h.scales.key_lanes;
    for (std::size_t l = 0; l < lanes; ++l) {
      visit(h.lanes[l], l == 0 ? h.n_places - 1 : l < keys ? h.n_places : h.n_entries, false);
    }
  });
}

// What is worked on; every array has room for a vector behind it.
struct Work {
  std::uint32_t *counts, *codes, *known, *kinds;
  std::uint32_t* key;    // of each place, one lane of it at a time
  std::uint32_t* lanes;  // of the entries
  std::size_t lane_pitch;
  std::byte* entries;
};

Work carve(const Shape& shape, const Header& h, Coding coding, simd::LevelsLadder& r) {
  const std::size_t pitch = r.standing_pitch();
  const std::size_t stride = simd::levels_entry_stride(shape.entry_bytes());
  const std::size_t ids = simd::kLadderBlockRows * (r.slots + r.most_hidden) + pitch;
  const std::size_t standing = pitch + simd::kLadderGrain;
  Work w;
  w.lane_pitch = static_cast<std::size_t>(align_up(h.n_entries + 16, 16));
  const std::size_t kinds = coding == Coding::Coded ? h.n_events : 0;
  const std::size_t words[] = {r.end_row,  h.n_events, h.n_known,
                               h.n_places, kinds,      w.lane_pitch * h.scales.lanes};
  const std::size_t halves[] = {standing, standing, h.n_events, h.n_events, h.n_entries + h.n_places, ids};
  std::size_t bytes = Arena::bytes_for((h.n_entries + 16) * stride, 1);
  for (const std::size_t n : words) bytes += Arena::bytes_for(n, 4);
  for (const std::size_t n : halves) bytes += Arena::bytes_for(n, 2);
  Arena arena(scratch<CodecWork>().get(bytes).data());
  for (auto** p : {&r.standing, &r.standing_next}) *p = arena.take<std::uint16_t>(standing);
  r.at = arena.take<std::uint16_t>(h.n_events);
  r.id = arena.take<std::uint16_t>(h.n_events);
  r.places_of_entries = arena.take<std::uint16_t>(h.n_entries + h.n_places);
  r.ids = arena.take<std::uint16_t>(ids);
  w.counts = arena.take<std::uint32_t>(r.end_row);
  w.codes = arena.take<std::uint32_t>(h.n_events);
  w.known = arena.take<std::uint32_t>(h.n_known);
  w.kinds = arena.take<std::uint32_t>(kinds);
  w.key = arena.take<std::uint32_t>(h.n_places);
  w.lanes = arena.take<std::uint32_t>(w.lane_pitch * h.scales.lanes);
  w.entries = arena.take<std::byte>((h.n_entries + 16) * stride);
  return w;
}

// Of coded segments places and kinds are told apart.
void read_codes(const simd::LevelsKernels& kernels, const Header& h, const Work& w,
                const simd::LevelsLadder& r) {
  sum_in_rows(kernels, w.counts, r.end_row - 1, w.codes, r.n_events, w.kinds);
  const unsigned kind_bits = h.kind_bits();
  if (kind_bits == 0) return;
  read_stream(kernels, h.kinds, 0, r.n_events, w.kinds);
  std::uint32_t all_kinds = 0, all_places = 0;
  for (std::size_t e = 0; e < r.n_events; ++e) {
    all_kinds |= w.kinds[e];
    all_places |= w.codes[e];
    w.codes[e] = w.codes[e] << kind_bits | w.kinds[e];
  }
  if (all_kinds >> kind_bits != 0 || all_places >> 16 != 0) {
    fail(ErrorCode::Corrupt, "levels: an event that no row can have");
  }
}

void read_events(const simd::LevelsKernels& kernels, const Header& h, std::size_t n_rows, Coding coding,
                 const Work& w, simd::LevelsLadder& r) {
  read_stream(kernels, h.counts, 0, r.end_row - 1, w.counts);
  r.n_events = events_before(w.counts, r.end_row, n_rows, h.n_events);
  r.n_known = std::min<std::size_t>(h.n_known, r.n_events);
  r.n_new = h.n_new;
  read_stream(kernels, h.codes, 0, r.n_events, w.codes);
  if (coding == Coding::Coded) read_codes(kernels, h, w, r);
  read_stream(kernels, h.known, 0, r.n_known, w.known);
  r.counts = w.counts;
  r.codes = w.codes;
  r.known = w.known;
}

// The first n entries, which stand at these places.
void make_entries(const simd::LevelsKernels& kernels, const Shape& shape, const Header& h,
                  const std::uint16_t* places, std::size_t n, const Work& w) {
  for (std::size_t l = 0; l < h.scales.lanes; ++l) {
    std::uint32_t* lane = w.lanes + l * w.lane_pitch;
    if (l >= h.scales.key_lanes) {
      read_stream(kernels, h.lanes[l], 0, n, lane);
      continue;
    }
    const std::size_t skip = l == 0 ? 1 : 0;
    read_stream(kernels, h.lanes[l], 0, h.n_places - skip, w.key + skip);
    if (l == 0) {
      w.key[0] = h.first_key;
      kernels.prefix_sum(w.key, h.n_places);
    }
    kernels.take_each(w.key, places, n, lane);
  }
  kernels.make_entries({w.lanes, w.lane_pitch, h.scales.of.data(), shape.features, shape.item_bytes}, n,
                       w.entries);
  apply_specials(shape, h.specials, h.n_special, h.n_entries, w.entries);
}

}  // namespace

void decode_ladder(const Shape& shape, std::size_t n_rows, Cursor segment, Coding coding, RowRange range,
                   const Cells* cells, std::byte* out) {
  Header h;
  take_header(shape, n_rows, segment, coding, h);
  simd::LevelsLadder r;
  r.slots = shape.slots;
  r.split = h.split;
  r.keeps_last = (h.flags & kKeepsLast) != 0;
  r.most_hidden = most_hidden(shape);
  r.kind_bits = h.kind_bits();
  r.first_row = static_cast<std::size_t>(range.first);
  r.end_row = static_cast<std::size_t>(range.first + range.count);
  for (std::size_t s = 0; s < 2; ++s) {
    r.places[s] = h.places[s];
    r.first_bits[s] = h.first_bits[s];
  }
  const Work w = carve(shape, h, coding, r);
  const simd::LevelsKernels& kernels = simd::levels_kernels();
  read_events(kernels, h, n_rows, coding, w, r);
  std::size_t n_new = 0;
  const auto check = [](bool good) {
    if (!good) fail(ErrorCode::Corrupt, "levels: an event that no row can have");
  };
  check(kernels.start_ladder(r, &n_new));
  make_entries(kernels, shape, h, r.places_of_entries, shape.slots + n_new, w);
  const std::size_t stride = simd::levels_entry_stride(shape.entry_bytes());
  for (std::size_t row = r.first_row; row < r.end_row; row += simd::kLadderBlockRows) {
    const std::size_t rows = std::min(simd::kLadderBlockRows, r.end_row - row);
    check(kernels.ladder_block(r, row, rows));
    if (cells != nullptr) {
      const auto ids_of = [&](std::size_t i) { return r.ids + r.starts[r.states[i]]; };
      out = gather_cells(shape, *cells, w.entries, stride / 2, ids_of, 1, rows, out);
    } else {
      kernels.gather_rows({w.entries, stride, shape.entry_bytes(), shape.slots, out, rows}, r.ids, r.starts,
                          r.states);
      out += rows * shape.row_bytes();
    }
  }
}

}  // namespace cdd::levels
