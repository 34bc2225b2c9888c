// Highway code that carries out events: which entry stands where in each row, and what entries inherit.
//
// Two steps: events become ops, many at once; then ops change the state (the entry id of each slot) one after
// another. Of what entries are made of only what they inherit is touched here, so that the rest is done for
// all of them together, and rows are made when all entries are.
#if defined(CDD_SIMD_LEVELS_REPLAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_REPLAY_INL_H_
#undef CDD_SIMD_LEVELS_REPLAY_INL_H_
#else
#define CDD_SIMD_LEVELS_REPLAY_INL_H_
#endif

#include <cstring>

#include "core/simd/levels/codes-inl.h"
#include "core/simd/levels/ladder-inl.h"
#include "core/simd/levels/state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Reverses the keys of some of a vector's inserts, of which `before` came in earlier ones.
HWY_INLINE void NegateKeys(const LevelsReplay& r, hn::Mask<S32> which, hn::Mask<S32> inserts,
                           std::size_t before) {
  const S32 d;
  if (hn::AllFalse(d, which)) return;
  alignas(64) std::uint32_t flips[kSqueezeLanes];
  const std::size_t n = hn::CompressStore(hn::IfThenElseZero(which, hn::Set(d, ~0u)), inserts, d, flips);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t& key = r.lanes[r.slots + before + i];
    key = (key ^ flips[i]) - flips[i];
  }
}

// Kinds, slots and the rest of all events -> ops. Kinds are those of core/codec/levels/segment.h: 0 is a
// patch, other even ones put in a known entry, odd ones a new one. False when a value is not possible. Counts
// those that move levels.
inline bool DecodeEvents(const LevelsReplay& r, std::size_t* n_moving) {
  const S32 d;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1u), two = hn::Set(d, 2u);
  const auto all_slots = hn::Set(d, r.slots), kinds = hn::Set(d, 9u), n_entries = hn::Set(d, r.n_entries);
  const auto lane = hn::Iota(d, 0u), first_patch = hn::Set(d, r.first_patch);
  const auto middle = hn::Set(d, r.middle), low_edge = hn::Set(d, r.edges[0]),
             high_edge = hn::Set(d, r.edges[1]);
  const auto twice = [](auto v) HWY_ATTR { return hn::Or(v, hn::ShiftLeft<16>(v)); };
  std::size_t patches = 0, inserts = 0, known = 0, moves = 0;
  auto good = hn::Eq(zero, zero);
  for (std::size_t i = 0; i < r.n_events; i += kSqueezeLanes) {
    const auto used = hn::FirstN(d, r.n_events - i);
    const auto kind = hn::IfThenElseZero(used, hn::LoadU(d, r.kinds + i));
    const auto given = hn::IfThenElseZero(used, hn::LoadU(d, r.event_slots + i));
    const auto is_patch = hn::And(used, hn::Eq(kind, zero));
    const auto is_insert = hn::Ne(hn::And(kind, one), zero);
    const auto is_known = hn::And(used, hn::Not(Either(is_patch, is_insert)));
    const auto has_from = hn::Gt(kind, hn::Set(d, 6u));
    const auto is_out = hn::AndNot(has_from, hn::Gt(kind, hn::Set(d, 4u)));
    const auto is_move = hn::Gt(kind, two);
    *n_moving += hn::CountTrue(d, is_move);
    // Where a move's other end is.
    const auto edge = hn::IfThenElse(hn::Lt(given, middle), low_edge, high_edge);
    const auto own = hn::Expand(hn::LoadU(d, r.moves + moves), has_from);
    const auto far = hn::IfThenElse(has_from, own, hn::IfThenElse(is_move, edge, given));
    const auto slot = hn::IfThenElse(is_out, far, given);
    const auto from = hn::IfThenElse(is_out, given, far);
    // The entry put in.
    const auto patch_id =
        hn::Expand(hn::Iota(d, static_cast<std::uint32_t>(r.first_patch + patches)), is_patch);
    const auto insert_id = hn::Expand(hn::Iota(d, static_cast<std::uint32_t>(r.slots + inserts)), is_insert);
    const auto known_id = hn::Expand(hn::LoadU(d, r.known + known), is_known);
    // A known entry is one that row 0 or an event before has made, whatever else is in this vector.
    const auto before = [&](auto which) HWY_ATTR { return hn::Sub(lane, hn::Expand(lane, hn::Not(which))); };
    const auto made_inserts =
        hn::Add(hn::Set(d, static_cast<std::uint32_t>(r.slots + inserts)), before(is_insert));
    const auto made_patches =
        hn::Add(hn::Set(d, static_cast<std::uint32_t>(r.first_patch + patches)), before(is_patch));
    const auto made = hn::IfThenElse(hn::Lt(known_id, first_patch), made_inserts, made_patches);
    good = hn::And(good, Either(hn::Lt(known_id, made), hn::Not(is_known)));
    const std::size_t inserts_before = inserts;
    patches += hn::CountTrue(d, is_patch);
    inserts += hn::CountTrue(d, is_insert);
    known += hn::CountTrue(d, is_known);
    moves += hn::CountTrue(d, has_from);
    if (patches > r.n_patches || inserts > r.n_inserts || known > r.n_known || moves > r.n_moves)
      return false;
    const auto id = hn::Or(hn::Or(patch_id, insert_id), known_id);
    // What a new entry builds on: what it replaces or, once the levels have moved, what stands before it;
    // behind it for slot 0, and then its key counts down.
    const auto closes = hn::Lt(slot, from), is_first = hn::Eq(slot, zero);
    const auto parent = hn::MaskedSubOr(slot, hn::AndNot(is_first, closes), slot, one);
    NegateKeys(r, hn::And(is_insert, hn::And(closes, is_first)), is_insert, inserts_before);
    good = hn::And(good,
                   hn::And(hn::Lt(kind, kinds), hn::And(hn::Lt(given, all_slots), hn::Lt(far, all_slots))));
    const auto is_down = hn::Lt(from, slot);
    hn::StoreU(twice(slot), d, r.ops.slot + i);
    hn::StoreU(twice(hn::IfThenElse(is_down, from, hn::Add(slot, one))), d, r.ops.low + i);
    hn::StoreU(twice(hn::Sub(hn::Max(slot, from), hn::Min(slot, from))), d, r.ops.length + i);
    hn::StoreU(hn::IfThenElseZero(is_down, one), d, r.ops.is_down + i);
    hn::StoreU(twice(id), d, r.ops.id + i);
    hn::StoreU(twice(parent), d, r.ops.parent + i);
    const auto heir = hn::IfThenElse(is_known, n_entries, id);
    const auto patch_heir = hn::IfThenElse(is_patch, patch_id, n_entries);
    hn::StoreU(hn::Or(heir, hn::ShiftLeft<16>(patch_heir)), d, r.ops.heirs + i);
  }
  return hn::AllTrue(d, good);
}

// kPatchLanes lanes are inherited by patches; with 3, any number.
template <std::size_t kPatchLanes, class State>
HWY_NOINLINE bool ReplayWith(const LevelsReplay& replay, bool moves_often) {
  const LevelsReplay r = replay;  // copies: no store can change them
  const LevelsOps ops = replay.ops;
  std::uint32_t* patch_lanes[3] = {};
  for (std::size_t k = 0; k < kPatchLanes && k < r.n_patch_lanes; ++k) {
    patch_lanes[k] = r.lanes + r.patch_lanes[k] * r.lane_pitch;
  }
  std::uint16_t* ids = r.ids;
  State state(r.slots, moves_often, ids);
  const auto put = [&](std::size_t e) HWY_ATTR {
    const std::uint32_t heirs = ops.heirs[e], heir = heirs & 0xffff, patch = heirs >> 16;
    const std::uint32_t parent = state.Put(ops, e);
    r.lanes[heir] += r.lanes[parent];
    if constexpr (kPatchLanes < 3) {
      for (std::size_t k = 0; k < kPatchLanes; ++k) patch_lanes[k][patch] += patch_lanes[k][parent];
    } else {
      for (std::size_t k = 0; k < r.n_patch_lanes; ++k) {
        std::uint32_t* lane = r.lanes + r.patch_lanes[k] * r.lane_pitch;
        lane[patch] += lane[parent];
      }
    }
  };
  // Which row the events before the first wanted one belong to does not matter.
  std::uint64_t skipped = 0;
  for (std::size_t i = 0; i < r.first_row; ++i) skipped += r.counts[i];
  if (skipped > r.n_events) return false;
  std::size_t event = 0;
  while (event < skipped) put(event++);
  state.End(ids);
  for (std::size_t i = r.first_row + 1; i < r.end_row; ++i) {
    const std::size_t count = r.counts[i - 1];
    if (count > r.n_events - event) return false;
    ids += r.slots;
    state.Begin(ids);
    for (const std::size_t end = event + count; event < end; ++event) put(event);
    state.End(ids);
  }
  return true;
}

template <std::size_t kPatchLanes>
bool ReplayOf(const LevelsReplay& r, bool moves_often) {
#if CDD_LEVELS_VECTOR_STATE
  if (r.slots <= VectorState::kMaxSlots) return ReplayWith<kPatchLanes, VectorState>(r, moves_often);
#endif
  return ReplayWith<kPatchLanes, MemoryState>(r, moves_often);
}

inline bool ReplayEvents(const LevelsReplay& r) {
  std::size_t n_moving = 0;
  if (!DecodeEvents(r, &n_moving)) return false;
  const bool moves_often = n_moving * 8 > r.n_events;
  switch (r.n_patch_lanes) {
    case 0:
      return ReplayOf<0>(r, moves_often);
    case 1:
      return ReplayOf<1>(r, moves_often);
    case 2:
      return ReplayOf<2>(r, moves_often);
    default:
      return ReplayOf<3>(r, moves_often);
  }
}

inline const LevelsKernels* LevelsKernelsOfTarget() {
  static constexpr LevelsKernels kKernels{Unpack,       UnpackWide, Unzigzag,   PrefixSum,   MakeEntries,
                                          ReplayEvents, Gather,     SumIds,     GatherBlock, StartLadder,
                                          LadderBlock,  TakeEach,   GatherRows, ReadCodes};
  return &kKernels;
}

#undef CDD_LEVELS_VECTOR_STATE

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_REPLAY_INL_H_
