// Highway code that makes rows out of events: the inner loop of reading a book.
//
// One pass: each event changes the state (the entry id of each slot), a new entry is completed from the one
// it replaces or stands beside, and after a row's events the row is written. A row whose levels did not move
// is a copy of the row before with the changed entries written over it; any other is gathered from the state.
#if defined(CDD_SIMD_LEVELS_REPLAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_REPLAY_INL_H_
#undef CDD_SIMD_LEVELS_REPLAY_INL_H_
#else
#define CDD_SIMD_LEVELS_REPLAY_INL_H_
#endif

#include <cstring>

#include "core/simd/levels_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
using Quad = hn::CappedTag<std::uint32_t, 1>;
#else
using Quad = hn::FixedTag<std::uint32_t, 4>;
#endif
constexpr std::size_t kQuad = hn::MaxLanes(Quad());

// float32 bits of the entry lanes in v.
HWY_INLINE hn::Vec<Quad> QuadFloatBits(hn::Vec<Quad> v, const double* factors,
                                       const std::uint32_t* raw_mask) {
  const Quad d;
#if HWY_TARGET != HWY_SCALAR && HWY_HAVE_FLOAT64
  const hn::Rebind<float, Quad> df;
  const auto ints = hn::BitCast(hn::RebindToSigned<Quad>(), v);
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
  const hn::FixedTag<double, 4> d64;
  const auto scaled = hn::DemoteTo(df, hn::Mul(hn::PromoteTo(d64, ints), hn::LoadU(d64, factors)));
#else
  const hn::FixedTag<double, 2> d64;
  const hn::Half<hn::RebindToSigned<Quad> > dih;
  const hn::Half<decltype(df)> dfh;
  const auto low = hn::Mul(hn::PromoteTo(d64, hn::LowerHalf(dih, ints)), hn::LoadU(d64, factors));
  const auto high = hn::Mul(hn::PromoteTo(d64, hn::UpperHalf(dih, ints)), hn::LoadU(d64, factors + 2));
  const auto scaled = hn::Combine(df, hn::DemoteTo(dfh, high), hn::DemoteTo(dfh, low));
#endif
  const auto raw = hn::LoadU(d, raw_mask);
  return hn::Or(hn::And(raw, v), hn::AndNot(raw, hn::BitCast(d, scaled)));
#else
  std::uint32_t lanes[kQuad];
  hn::StoreU(v, d, lanes);
  for (std::size_t i = 0; i < kQuad; ++i) {
    if (raw_mask[i] != 0) continue;
    const float f = static_cast<float>(static_cast<std::int32_t>(lanes[i]) * factors[i]);
    std::memcpy(lanes + i, &f, 4);
  }
  return hn::LoadU(d, lanes);
#endif
}

// An entry of 8-byte items from its lanes.
inline void MakeWideEntry(const LevelsColumns& c, const std::uint32_t* lanes, std::byte* entry) {
  for (std::uint32_t f = 0; f < c.features; ++f, entry += 8) {
    if (c.scales[f] == LevelsColumns::kBits) {
      std::memcpy(entry, lanes, 8);
      lanes += 2;
    } else {
      const double v = static_cast<std::int32_t>(*lanes++) / kPowers[c.scales[f]];
      std::memcpy(entry, &v, 8);
    }
  }
}

// Exactly n bytes between places that do not overlap.
HWY_INLINE void CopyRow(std::byte* to, const std::byte* from, std::size_t n) {
  const hn::CappedTag<std::uint8_t, 64> d8;
  const std::size_t step = hn::Lanes(d8);
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  const auto* in = reinterpret_cast<const std::uint8_t*>(from);
  if (n < step) {
    std::memcpy(to, from, n);
    return;
  }
  for (std::size_t i = 0; i + step <= n; i += step) hn::StoreU(hn::LoadU(d8, in + i), d8, out + i);
  hn::StoreU(hn::LoadU(d8, in + n - step), d8, out + n - step);
}

// What an event adds to the lanes of the entry it puts in, and the sign of what stands there.
enum : std::uint32_t { kPatch = 0, kInsert = 1, kKnown = 2, kInsertBefore = 3 };

// Kinds, slots and the rest of all events -> ops. Kinds are those of levels_segment.h: 0 is a patch, other
// even ones put in a known entry, odd ones a new one. False when a value is not possible.
// Counts those that move levels.
inline bool DecodeEvents(const LevelsReplay& r, std::size_t* n_moving) {
  const D32 d;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1u), two = hn::Set(d, 2u);
  const auto slots = static_cast<std::uint32_t>(r.rows.slots);
  const auto all_slots = hn::Set(d, slots), kinds = hn::Set(d, 9u),
             n_entries = hn::Set(d, r.first_patch + r.n_all_patches);
  std::size_t patches = 0, inserts = 0, known = 0, moves = 0;
  auto good = hn::Eq(zero, zero);
  for (std::size_t i = 0; i < r.n_events; i += kLanes) {
    const auto used = hn::FirstN(d, r.n_events - i);
    const auto kind = hn::IfThenElseZero(used, hn::LoadU(d, r.kinds + i));
    const auto given = hn::IfThenElseZero(used, hn::LoadU(d, r.slots + i));
    const auto is_patch = hn::And(used, hn::Eq(kind, zero));
    const auto is_insert = hn::Ne(hn::And(kind, one), zero);
    const auto is_known = hn::And(used, hn::Not(hn::Or(is_patch, is_insert)));
    const auto has_from = hn::Gt(kind, hn::Set(d, 6u));
    const auto is_out = hn::AndNot(has_from, hn::Gt(kind, hn::Set(d, 4u)));
    const auto is_move = hn::Gt(kind, two);
    *n_moving += hn::CountTrue(d, is_move);
    // Where a move's other end is.
    const auto is_low = hn::Lt(given, hn::Set(d, r.middle));
    const auto edge = hn::IfThenElse(is_low, hn::Set(d, r.edges[0]), hn::Set(d, r.edges[1]));
    const auto own = hn::LoadExpand(has_from, d, r.moves + moves);
    const auto far = hn::IfThenElse(has_from, own, hn::IfThenElse(is_move, edge, given));
    const auto slot = hn::IfThenElse(is_out, far, given);
    const auto from = hn::IfThenElse(is_out, given, far);
    // The entry put in.
    const auto patch_id =
        hn::Expand(hn::Iota(d, static_cast<std::uint32_t>(r.first_patch + patches)), is_patch);
    const auto insert_id = hn::Expand(hn::Iota(d, static_cast<std::uint32_t>(slots + inserts)), is_insert);
    const auto known_id = hn::LoadExpand(is_known, d, r.known + known);
    patches += hn::CountTrue(d, is_patch);
    inserts += hn::CountTrue(d, is_insert);
    known += hn::CountTrue(d, is_known);
    moves += hn::CountTrue(d, has_from);
    if (patches > r.n_patches || inserts > r.n_inserts || known > r.n_known || moves > r.n_moves)
      return false;
    const auto id = hn::Or(hn::Or(patch_id, insert_id), known_id);
    // What a new entry builds on: what it replaces or, once the levels have moved, what stands before it;
    // behind it for slot 0.
    const auto closes = hn::Gt(from, slot), is_first = hn::Eq(slot, zero);
    const auto parent = hn::MaskedSubOr(slot, hn::AndNot(is_first, closes), slot, one);
    const auto insert_kind = hn::IfThenElse(hn::And(closes, is_first), hn::Set(d, kInsertBefore), one);
    const auto what = hn::IfThenElse(is_insert, insert_kind, hn::IfThenElseZero(is_known, two));
    // No id of an entry that none of these or earlier events has made.
    const auto is_late = hn::Ge(id, hn::Set(d, r.first_patch));
    const auto made = hn::IfThenElse(is_late, hn::Set(d, static_cast<std::uint32_t>(r.first_patch + patches)),
                                     hn::Set(d, static_cast<std::uint32_t>(slots + inserts)));
    good = hn::And(
        good, hn::And(hn::And(hn::Lt(kind, kinds), hn::Lt(given, all_slots)),
                      hn::And(hn::Lt(far, all_slots), hn::And(hn::Lt(id, made), hn::Lt(id, n_entries)))));
    const auto low = hn::Min(slot, from);
    const auto length = hn::Sub(hn::Max(slot, from), low);
    const auto step = hn::IfThenElse(hn::Lt(slot, from), hn::Set(d, 0xffff0000u), hn::Set(d, 0x10000u));
    hn::StoreInterleaved4(hn::Or(slot, hn::ShiftLeft<16>(low)), hn::Or(length, step),
                          hn::Or(id, hn::ShiftLeft<16>(parent)), what, d, &r.ops[i].slot_low);
  }
  return hn::AllTrue(d, good);
}

// kBytes is the size of an entry of 4-byte items where it is known at compile time, else 0.
template <std::size_t kBytes, class State>
class Replay {
 public:
  HWY_INLINE Replay(const LevelsReplay& r, std::size_t n_moving)
      : r_(r), state_(r), slots_(static_cast<std::uint32_t>(r.rows.slots)) {
    state_.Expect(n_moving, r.n_events);
  }

  HWY_INLINE bool Run() {
    if (!r_.entries_ready) {
      for (std::uint32_t j = 0; j < slots_; ++j) MakeEntry(j, r_.lanes + j * LaneStride());
    }
    // The events of the rows before the first wanted: which row they belong to does not matter.
    std::uint64_t skipped = 0;
    for (std::size_t i = 1; i <= r_.first_row; ++i) skipped += r_.counts[i - 1];
    if (skipped > r_.n_events) return false;
    std::size_t event = 0;
    while (event < skipped) Step(r_.ops[event++]);
    std::byte* row = r_.rows.out;
    const std::size_t row_bytes = slots_ * EntryBytes();
    GatherRow<kBytes>(r_.rows, state_.Ids(), 1, row);
    for (std::size_t i = r_.first_row + 1; i < r_.end_row; ++i) {
      row += row_bytes;
      const std::size_t begin = event, count = r_.counts[i - 1];
      if (count > r_.n_events - begin) return false;
      std::uint32_t moved = 0;
      for (const std::size_t end = begin + count; event < end; ++event) moved |= Step(r_.ops[event]);
      // A gathered row costs about as much as a copied one with this many entries written over it.
      if (moved != 0 || count * 4 > slots_) {
        GatherRow<kBytes>(r_.rows, state_.Ids(), 1, row);
      } else {
        CopyRow(row, row - row_bytes, row_bytes);
        for (std::size_t e = begin; e < event; ++e) WriteEntry(row, r_.ops[e]);
      }
    }
    return true;
  }

 private:
  // Returns how far levels moved.
  HWY_INLINE std::uint32_t Step(const LevelsOp& op) {
    const std::uint32_t parent = state_.IdAt(op.parent());
    state_.Put(op);
    if (!r_.entries_ready) Finish(op.id(), parent, op.what);
    return op.length();
  }

  // Completes the lanes of a new entry; adds nothing to those of a known one.
  HWY_INLINE void Finish(std::uint32_t id, std::uint32_t parent, std::uint32_t what) {
    std::uint32_t* lanes = r_.lanes + id * LaneStride();
    const std::uint32_t* from = r_.lanes + parent * LaneStride();
    const std::uint32_t* masks = r_.masks + what * 2 * LaneStride();
    const Quad d;
    for (std::size_t l = 0; l < LaneStride(); l += kQuad) {
      const auto inherited = hn::And(hn::LoadU(d, from + l), hn::LoadU(d, masks + l));
      const auto flip = hn::LoadU(d, masks + LaneStride() + l);
      const auto given = hn::Sub(hn::Xor(hn::LoadU(d, lanes + l), flip), flip);
      hn::StoreU(hn::Add(given, inherited), d, lanes + l);
    }
    MakeEntry(id, lanes);
  }

  HWY_INLINE std::size_t LaneStride() const { return kBytes != 0 ? 4 : r_.lane_stride; }
  HWY_INLINE std::size_t EntryBytes() const { return kBytes != 0 ? kBytes : r_.rows.entry_bytes; }
  HWY_INLINE std::byte* EntryOf(std::uint32_t id) const {
    return r_.rows.entries + id * (kBytes != 0 ? levels_entry_stride(kBytes) : r_.rows.entry_stride);
  }

  HWY_INLINE void MakeEntry(std::uint32_t id, const std::uint32_t* lanes) {
    if (kBytes == 0 && r_.columns.item_bytes == 8) {
      MakeWideEntry(r_.columns, lanes, EntryOf(id));
      return;
    }
    auto* entry = reinterpret_cast<std::uint32_t*>(EntryOf(id));
    const Quad d;
    for (std::size_t l = 0; l < LaneStride(); l += kQuad) {
      hn::StoreU(QuadFloatBits(hn::LoadU(d, lanes + l), r_.factors + l, r_.raw_mask + l), d, entry + l);
    }
  }

  HWY_INLINE void WriteEntry(std::byte* row, const LevelsOp& op) const {
    std::memcpy(row + op.slot() * EntryBytes(), EntryOf(op.id()), EntryBytes());
  }

  const LevelsReplay r_;  // a copy: what is written to rows cannot change it
  State state_;
  std::uint32_t slots_;
};

template <std::size_t kBytes>
HWY_NOINLINE bool ReplayOf(const LevelsReplay& r, std::size_t n_moving) {
#if CDD_LEVELS_VECTOR_STATE
  if (r.rows.slots <= VectorState::kMaxSlots) {
    Replay<kBytes, VectorState> replay(r, n_moving);
    return replay.Run();
  }
#endif
  Replay<kBytes, MemoryState> replay(r, n_moving);
  return replay.Run();
}

inline bool ReplayEvents(const LevelsReplay& r) {
  std::size_t n_moving = 0;
  if (!DecodeEvents(r, &n_moving)) return false;
  if (r.columns.item_bytes == 4) {
    switch (r.rows.entry_bytes) {
      case 8:
        return ReplayOf<8>(r, n_moving);
      case 12:
        return ReplayOf<12>(r, n_moving);
      case 16:
        return ReplayOf<16>(r, n_moving);
      default:
        break;
    }
  }
  return ReplayOf<0>(r, n_moving);
}

inline void Interleave(const std::uint32_t* columns, std::size_t pitch, std::size_t lanes, std::size_t n,
                       std::size_t stride, std::uint32_t* out) {
  if (stride == 4 && lanes >= 2) {
    const D32 d;
    const auto zero = hn::Zero(d);
    for (std::size_t i = 0; i < n; i += kLanes) {
      const auto a = hn::LoadU(d, columns + i), b = hn::LoadU(d, columns + pitch + i);
      const auto c = lanes > 2 ? hn::LoadU(d, columns + 2 * pitch + i) : zero;
      const auto e = lanes > 3 ? hn::LoadU(d, columns + 3 * pitch + i) : zero;
      hn::StoreInterleaved4(a, b, c, e, d, out + i * 4);
    }
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t l = 0; l < stride; ++l) out[i * stride + l] = l < lanes ? columns[l * pitch + i] : 0;
  }
}

inline const LevelsKernels* LevelsKernelsOfTarget() {
  static constexpr LevelsKernels kKernels{Unpack,     Unzigzag,     PrefixSum, MakeEntries,
                                          Interleave, ReplayEvents, SumIds,    GatherRows};
  return &kKernels;
}

#undef CDD_LEVELS_VECTOR_STATE

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_REPLAY_INL_H_
