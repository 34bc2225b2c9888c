// Decoder of the events layout: a state of D entry ids, changed row after row.
//
// Ids of entries: 0 to D-1 the first row's slots, then the other entries put in with values of their own,
// then the patches. Only what rows before the end of the range need is unpacked.

#include <algorithm>
#include <cstring>

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

// The inputs of the replay, unpacked as far as rows before end_row need them.
class Unpacked {
 public:
  Unpacked(const Shape& shape, std::size_t n_rows, const Header& h, RowRange range, std::byte* out)
      : shape_(shape), h_(h), lanes_(h.scales.lanes), lane_stride_((lanes_ + 3) & ~std::size_t{3}) {
    end_row_ = range.first + range.count;
    carve();
    const simd::LevelsKernels& kernels = simd::levels_kernels();
    read_stream(kernels, h.counts, 0, end_row_ - 1, counts_);
    n_events_ = h.n_events;
    if (end_row_ < n_rows) {
      std::uint64_t sum = 0;
      for (std::size_t r = 0; r + 1 < end_row_; ++r) sum += counts_[r];
      n_events_ = std::min<std::uint64_t>(sum, h.n_events);
    }
    n_inserts_ = std::min<std::size_t>(h.n_insert, n_events_);
    n_patches_ = std::min<std::size_t>(h.n_patch, n_events_);
    n_known_ = std::min<std::size_t>(h.n_known, n_events_);
    n_moves_ = std::min<std::size_t>(h.n_move, n_events_);
    read_stream(kernels, h.kinds, 0, n_events_, kinds_);
    read_stream(kernels, h.slots, 0, n_events_, slots_);
    read_stream(kernels, h.moves, 0, n_moves_, moves_);
    read_stream(kernels, h.known, 0, n_known_, known_);
    read_lanes(kernels);
    describe_lanes();
    replay_ = describe(range, out);
  }

  const simd::LevelsReplay& replay() const noexcept { return replay_; }

 private:
  std::size_t first_patch() const noexcept { return std::size_t{shape_.slots} + h_.n_insert; }

  void carve() {
    const std::size_t slots = shape_.slots, events = h_.n_events,
                      stride = simd::levels_entry_stride(shape_.entry_bytes());
    column_pitch_ =
        static_cast<std::size_t>(align_up(std::max<std::size_t>(first_patch(), h_.n_patch) + 16, 16));
    // The least that holds what follows, each array with room for a vector.
    const std::size_t bytes =
        Arena::bytes_for(end_row_, 4) + 4 * Arena::bytes_for(events, 4) +
        Arena::bytes_for(2 * events + 32, 4) + 2 * Arena::bytes_for(slots + 96, 2) +
        Arena::bytes_for(lanes_ * column_pitch_, 4) + Arena::bytes_for(h_.n_entries * lane_stride_, 4) +
        Arena::bytes_for(h_.n_entries * stride, 1) + Arena::bytes_for(8 * lane_stride_, 4) +
        Arena::bytes_for(lane_stride_, 4) + Arena::bytes_for(lane_stride_, 8);
    Arena arena(scratch(Stage::Transform).get(bytes).data());
    counts_ = arena.take<std::uint32_t>(end_row_);
    kinds_ = arena.take<std::uint32_t>(events);
    slots_ = arena.take<std::uint32_t>(events);
    moves_ = arena.take<std::uint32_t>(events);
    known_ = arena.take<std::uint32_t>(events);
    ops_ = arena.take<std::uint32_t>(2 * events + 32);
    for (auto*& state : states_) state = arena.take<std::uint16_t>(slots + 96) + 32;
    columns_ = arena.take<std::uint32_t>(lanes_ * column_pitch_);
    entry_lanes_ = arena.take<std::uint32_t>(h_.n_entries * lane_stride_);
    entries_ = arena.take<std::byte>(h_.n_entries * stride);
    masks_ = arena.take<std::uint32_t>(8 * lane_stride_);
    raw_mask_ = arena.take<std::uint32_t>(lane_stride_);
    factors_ = arena.take<double>(lane_stride_);
  }

  void read_lanes(const simd::LevelsKernels& kernels) {
    const std::size_t slots = shape_.slots, keys = h_.scales.key_lanes;
    for (std::size_t l = 0; l < lanes_; ++l) {
      const std::size_t skip = l == 0 ? 1 : 0;  // the first key stands in the header
      read_stream(kernels, h_.inserts[l], 0, slots + n_inserts_ - skip, columns_ + l * column_pitch_ + skip);
    }
    columns_[0] = h_.first_key;
    kernels.prefix_sum(columns_, slots);
    kernels.interleave(columns_, column_pitch_, lanes_, slots + n_inserts_, lane_stride_, entry_lanes_);
    for (std::size_t l = 0; l < keys; ++l) std::fill_n(columns_ + l * column_pitch_, n_patches_, 0);
    for (std::size_t l = keys; l < lanes_; ++l) {
      read_stream(kernels, h_.patches[l], 0, n_patches_, columns_ + l * column_pitch_);
    }
    kernels.interleave(columns_, column_pitch_, lanes_, n_patches_, lane_stride_,
                       entry_lanes_ + first_patch() * lane_stride_);
  }

  // What a patch takes from its parent, and what makes a lane an item.
  void describe_lanes() {
    std::size_t l = 0;
    for (std::uint32_t f = 0; f < shape_.features; ++f) {
      const std::uint8_t scale = h_.scales.of[f];
      for (std::size_t k = shape_.lanes_of(scale); k > 0; --k, ++l) {
        masks_[l] = f == 0 || h_.patches[l].head.delta ? ~0u : 0;
        raw_mask_[l] = scale == simd::LevelsColumns::kBits ? ~0u : 0;
        factors_[l] = raw_mask_[l] != 0 ? 1.0 : simd::kInversePowers[scale];
      }
    }
    for (; l < lane_stride_; ++l) {
      masks_[l] = raw_mask_[l] = ~0u;
      factors_[l] = 1.0;
    }
    // Patches add as above, inserts to their key alone, known entries nothing; one sign is ever reversed.
    std::fill_n(masks_ + lane_stride_, 7 * lane_stride_, 0);
    masks_[2 * lane_stride_] = masks_[6 * lane_stride_] = masks_[7 * lane_stride_] = ~0u;
  }

  simd::LevelsReplay describe(RowRange range, std::byte* out) const {
    simd::LevelsReplay r{};
    r.rows = {
        entries_,   simd::levels_entry_stride(shape_.entry_bytes()), shape_.entry_bytes(), shape_.slots, out,
        range.count};
    r.states[0] = states_[0];
    r.states[1] = states_[1];
    r.first_row = range.first;
    r.end_row = end_row_;
    r.middle = shape_.middle();
    r.edges[0] = h_.edges[0];
    r.edges[1] = h_.edges[1];
    r.first_patch = static_cast<std::uint32_t>(first_patch());
    r.counts = counts_;
    r.kinds = kinds_;
    r.slots = slots_;
    r.moves = moves_;
    r.known = known_;
    r.ops = ops_;
    r.n_events = n_events_;
    r.n_moves = n_moves_;
    r.n_known = n_known_;
    r.n_inserts = n_inserts_;
    r.n_patches = n_patches_;
    r.n_all_patches = h_.n_patch;
    r.lanes = entry_lanes_;
    r.lane_stride = lane_stride_;
    r.masks = masks_;
    r.factors = factors_;
    r.raw_mask = raw_mask_;
    r.columns = {columns_, column_pitch_, h_.scales.of.data(), shape_.features, shape_.item_bytes};
    return r;
  }

  const Shape& shape_;
  const Header& h_;
  std::size_t lanes_, lane_stride_, column_pitch_, end_row_;
  std::size_t n_events_, n_inserts_, n_patches_, n_known_, n_moves_;
  std::uint32_t *counts_, *kinds_, *slots_, *moves_, *known_, *ops_, *columns_, *entry_lanes_, *masks_,
      *raw_mask_;
  std::uint16_t* states_[2];
  std::byte* entries_;
  double* factors_;
  simd::LevelsReplay replay_;
};

}  // namespace

void decode_events(const Shape& shape, std::size_t n_rows, ByteReader segment, RowRange range,
                   std::byte* out) {
  Header h;
  read_header(shape, n_rows, segment, h);
  const Unpacked unpacked(shape, n_rows, h, range, out);
  const simd::LevelsKernels& kernels = simd::levels_kernels();
  simd::LevelsReplay replay = unpacked.replay();
  bool good = kernels.replay(replay);
  if (good && !h.specials.empty()) {
    // Once more, now that the entries can be corrected: rare, and not worth a check per event.
    apply_specials(shape, h.specials, h.n_entries, replay.rows.entries);
    replay.entries_ready = true;
    good = kernels.replay(replay);
  }
  if (!good) fail(ErrorCode::Corrupt, "levels: an event that no row can have");
}

}  // namespace cdd::levels
