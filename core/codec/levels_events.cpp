// Decoder of the events layout: a state of D entry ids, changed row after row.
//
// Ids of entries: 0 to D-1 the first row's slots, then the other entries put in with values of their own,
// then the patches. Only what rows before the end of the range need is unpacked.

#include <cstring>

#include "core/base/scratch.h"
#include "core/codec/levels_segment.h"

namespace cdd::levels {
namespace {

struct Header {
  Scales scales;
  std::uint32_t edges[2]{};
  std::uint32_t n_insert = 0, n_patch = 0, n_known = 0, n_move = 0, n_special = 0;
  std::uint32_t first_key = 0;
  std::size_t n_events = 0, n_entries = 0;
  Stream counts, kinds, slots, moves, known;
  std::array<Stream, kMaxLanes> inserts, patches;
  Bytes specials;
};

void read_header(const Shape& shape, std::size_t n_rows, ByteReader& in, Header& h) {
  h.scales = take_scales(in, shape);
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
  h.counts = take_stream_head(in, n_rows - 1);
  h.kinds = take_stream_head(in, h.n_events);
  h.slots = take_stream_head(in, h.n_events);
  h.moves = take_stream_head(in, h.n_move);
  h.known = take_stream_head(in, h.n_known);
  const std::size_t lanes = h.scales.lanes, keys = h.scales.key_lanes;
  for (std::size_t l = 0; l < lanes; ++l) {
    h.inserts[l] = take_stream_head(in, shape.slots + h.n_insert - (l == 0 ? 1 : 0));
  }
  for (std::size_t l = keys; l < lanes; ++l) h.patches[l] = take_stream_head(in, h.n_patch);
  for (Stream* s : {&h.counts, &h.kinds, &h.slots, &h.moves, &h.known}) take_stream_body(in, *s);
  for (std::size_t l = 0; l < lanes; ++l) take_stream_body(in, h.inserts[l]);
  for (std::size_t l = keys; l < lanes; ++l) take_stream_body(in, h.patches[l]);
  h.specials = in.take(h.n_special * special_bytes(shape));
}

// How many events of each class a prefix has, four counters of 16 bits in one word.
constexpr std::uint64_t kOneInsert = 1, kOnePatch = std::uint64_t{1} << 16,
                        kOneKnown = std::uint64_t{1} << 32, kOneMove = std::uint64_t{1} << 48;
constexpr std::uint64_t kClass[kEvents] = {kOnePatch,           kOneKnown,  kOneInsert, kOneInsert,
                                           kOneKnown,           kOneInsert, kOneKnown,  kOneInsert | kOneMove,
                                           kOneKnown | kOneMove};

struct Work {
  std::uint32_t* op_ends;  // [n_rows]
  std::uint32_t* kinds;
  std::uint32_t* slots;
  std::uint32_t* moves;
  std::uint32_t* known;
  simd::LevelsOp* ops;
  std::uint16_t* state;
  std::uint16_t* first_ids;
  std::uint32_t* lanes;
  std::size_t lane_pitch;
  std::byte* entries;
};

Work carve(const Shape& shape, std::size_t n_rows, const Header& h) {
  Work w{};
  w.lane_pitch = static_cast<std::size_t>(align_up(h.n_entries + 16, 16));
  const std::size_t stride = simd::levels_entry_stride(shape.entry_bytes());
  const std::size_t bytes =
      Arena::bytes_for(n_rows, 4) + 4 * Arena::bytes_for(h.n_events, 4) +
      Arena::bytes_for(h.n_events, sizeof(simd::LevelsOp)) + 2 * Arena::bytes_for(shape.slots, 2) +
      Arena::bytes_for(h.scales.lanes * w.lane_pitch, 4) + Arena::bytes_for((h.n_entries + 16) * stride, 1);
  Arena arena(scratch(Stage::Transform).get(bytes).data());
  w.op_ends = arena.take<std::uint32_t>(n_rows);
  w.kinds = arena.take<std::uint32_t>(h.n_events);
  w.slots = arena.take<std::uint32_t>(h.n_events);
  w.moves = arena.take<std::uint32_t>(h.n_events);
  w.known = arena.take<std::uint32_t>(h.n_events);
  w.ops = arena.take<simd::LevelsOp>(h.n_events);
  w.state = arena.take<std::uint16_t>(shape.slots);
  w.first_ids = arena.take<std::uint16_t>(shape.slots);
  w.lanes = arena.take<std::uint32_t>(h.scales.lanes * w.lane_pitch);
  w.entries = arena.take<std::byte>((h.n_entries + 16) * stride);
  return w;
}

[[noreturn]] void fail_event() { fail(ErrorCode::Corrupt, "levels: an event that no row can have"); }

// The state after each event, and the lanes that depend on it.
class Replay {
 public:
  Replay(const Shape& shape, const Header& h, const Work& w)
      : h_(h), w_(w), slots_(shape.slots), middle_(shape.middle()) {
    next_insert_ = shape.slots;
    first_patch_ = next_patch_ = shape.slots + h.n_insert;
    for (std::size_t l = h.scales.key_lanes; l < h.scales.lanes; ++l) {
      if (h.patches[l].head.delta) delta_lanes_[n_delta_++] = w.lanes + l * w.lane_pitch;
    }
    for (std::uint32_t j = 0; j < slots_; ++j) w.state[j] = static_cast<std::uint16_t>(j);
  }

  void run(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t e = begin; e < end; ++e) step(e);
  }

 private:
  void step(std::uint32_t e) {
    std::uint32_t slot = w_.slots[e];
    if (slot >= slots_) fail_event();
    std::uint32_t from = slot;
    std::uint32_t id;
    std::uint16_t* state = w_.state;
    std::uint32_t* key = w_.lanes;
    const auto kind = static_cast<Event>(w_.kinds[e]);
    switch (kind) {
      case Event::Patch: {
        id = next_patch_++;
        const std::uint32_t parent = state[slot];
        for (std::size_t l = 0; l < h_.scales.key_lanes; ++l) {
          key[l * w_.lane_pitch + id] = key[l * w_.lane_pitch + parent];
        }
        for (std::size_t k = 0; k < n_delta_; ++k) delta_lanes_[k][id] += delta_lanes_[k][parent];
        break;
      }
      case Event::Set:
        id = take_known();
        break;
      case Event::Replace:
        id = next_insert_++;
        key[id] += key[state[slot]];
        break;
      default: {
        if (kind >= Event::MoveNew) {
          from = w_.moves[next_move_++];
          if (from >= slots_) fail_event();
        } else {
          from = h_.edges[slot >= middle_];
          if (kind >= Event::OutNew) std::swap(slot, from);
        }
        shift(state, slot, from);
        const bool is_new = (static_cast<unsigned>(kind) & 1) != 0;
        id = is_new ? next_insert_++ : take_known();
        if (is_new) key[id] = slot != 0 ? key[state[slot - 1]] + key[id] : key[state[1 % slots_]] - key[id];
        break;
      }
    }
    state[slot] = static_cast<std::uint16_t>(id);
    w_.ops[e] = {static_cast<std::uint16_t>(slot), static_cast<std::uint16_t>(from), id};
  }

  std::uint32_t take_known() {
    const std::uint32_t id = w_.known[next_known_++];
    if (id >= next_patch_ || (id >= next_insert_ && id < first_patch_)) fail_event();
    return id;
  }

  static void shift(std::uint16_t* state, std::uint32_t slot, std::uint32_t from) {
    if (from < slot) {
      std::memmove(state + from, state + from + 1, (slot - from) * sizeof *state);
    } else if (from > slot) {
      std::memmove(state + slot + 1, state + slot, (from - slot) * sizeof *state);
    }
  }

  const Header& h_;
  const Work& w_;
  std::uint32_t slots_, middle_;
  std::uint32_t next_insert_, next_patch_, first_patch_, next_known_ = 0, next_move_ = 0;
  std::size_t n_delta_ = 0;
  std::uint32_t* delta_lanes_[kMaxLanes];
};

}  // namespace

void decode_events(const Shape& shape, std::size_t n_rows, ByteReader segment, RowRange range,
                   std::byte* out) {
  Header h;
  read_header(shape, n_rows, segment, h);
  const Work w = carve(shape, n_rows, h);
  const simd::LevelsKernels& kernels = simd::levels_kernels();
  const std::size_t end_row = range.first + range.count;

  w.op_ends[0] = 0;
  read_stream(kernels, h.counts, 0, end_row - 1, w.op_ends + 1);
  std::uint64_t n_events = 0;
  for (std::size_t r = 1; r < end_row; ++r) {
    n_events += w.op_ends[r];
    w.op_ends[r] = static_cast<std::uint32_t>(n_events);
  }
  if (n_events > h.n_events) fail_event();

  read_stream(kernels, h.kinds, 0, n_events, w.kinds);
  read_stream(kernels, h.slots, 0, n_events, w.slots);
  std::uint64_t classes = 0;
  for (std::size_t e = 0; e < n_events; ++e) {
    if (w.kinds[e] >= kEvents) fail_event();
    classes += kClass[w.kinds[e]];
  }
  const auto n_insert = static_cast<std::uint16_t>(classes);
  const auto n_patch = static_cast<std::uint16_t>(classes >> 16);
  const auto n_known = static_cast<std::uint16_t>(classes >> 32);
  const auto n_move = static_cast<std::uint16_t>(classes >> 48);
  if (n_insert > h.n_insert || n_patch > h.n_patch || n_known > h.n_known || n_move > h.n_move) fail_event();

  read_stream(kernels, h.moves, 0, n_move, w.moves);
  read_stream(kernels, h.known, 0, n_known, w.known);
  const std::size_t lanes = h.scales.lanes, first_patch = shape.slots + h.n_insert;
  for (std::size_t l = 0; l < lanes; ++l) {
    std::uint32_t* lane = w.lanes + l * w.lane_pitch;
    const std::size_t skip = l == 0 ? 1 : 0;  // the first key stands in the header
    read_stream(kernels, h.inserts[l], 0, shape.slots + n_insert - skip, lane + skip);
    if (l >= h.scales.key_lanes) read_stream(kernels, h.patches[l], 0, n_patch, lane + first_patch);
  }
  w.lanes[0] = h.first_key;
  kernels.prefix_sum(w.lanes, shape.slots);

  Replay replay(shape, h, w);
  const std::uint32_t before = w.op_ends[range.first];
  replay.run(0, before);
  std::memcpy(w.first_ids, w.state, shape.slots * sizeof *w.state);
  replay.run(before, static_cast<std::uint32_t>(n_events));

  const simd::LevelsColumns columns{w.lanes, w.lane_pitch, h.scales.of.data(), shape.features,
                                    shape.item_bytes};
  kernels.make_entries(columns, 0, shape.slots + n_insert, w.entries);
  kernels.make_entries(columns, first_patch, n_patch, w.entries);
  if (!h.specials.empty()) apply_specials(shape, h.specials, h.n_entries, w.entries);
  const simd::LevelsRows rows{
      w.entries,  simd::levels_entry_stride(shape.entry_bytes()), shape.entry_bytes(), shape.slots, out,
      range.count};
  kernels.replay_rows(rows, w.first_ids, w.ops, w.op_ends + range.first);
}

}  // namespace cdd::levels
