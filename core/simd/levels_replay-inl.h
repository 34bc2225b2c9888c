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
#include <utility>

#include "core/simd/levels-inl.h"

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

// The entry id of each slot, in memory.
class MemoryState {
 public:
  explicit MemoryState(const LevelsReplay& r) : ids_(r.states[0]), other_(r.states[1]), slots_(r.rows.slots) {
    for (std::size_t j = 0; j < slots_; ++j) ids_[j] = static_cast<std::uint16_t>(j);
  }

  HWY_INLINE const std::uint16_t* Ids() const { return ids_; }
  HWY_INLINE void Set(std::uint32_t slot, std::uint32_t id) { ids_[slot] = static_cast<std::uint16_t>(id); }

  // Moves the slots between by one, so that `from` is gone and `slot` is free.
  HWY_INLINE void Shift(std::uint32_t slot, std::uint32_t from) {
    const hn::CappedTag<std::uint16_t, 32> d;
    const std::size_t step = hn::Lanes(d);
    const std::uint32_t low = HWY_MIN(slot, from), high = HWY_MAX(slot, from);
    const std::uint16_t* moved = slot < from ? ids_ - 1 : ids_ + 1;
    const auto length = hn::Set(d, static_cast<std::uint16_t>(high - low));
    const auto steps = hn::Set(d, static_cast<std::uint16_t>(step));
    auto place = hn::Iota(d, static_cast<std::uint16_t>(0 - low));
    for (std::size_t j = 0; j < slots_; j += step) {
      const auto inside = hn::Le(place, length);
      hn::StoreU(hn::IfThenElse(inside, hn::LoadU(d, moved + j), hn::LoadU(d, ids_ + j)), d, other_ + j);
      place = hn::Add(place, steps);
    }
    std::swap(ids_, other_);
  }

 private:
  std::uint16_t* ids_;
  std::uint16_t* other_;
  std::size_t slots_;
};

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
#define CDD_LEVELS_VECTOR_STATE 1
// The same for up to 64 slots in two registers, mirrored in memory: loads that reach over two earlier stores
// would have to wait for both.
class VectorState {
  using D = hn::FixedTag<std::uint16_t, 32>;
  using V = hn::Vec<D>;

  // Which of the 64 slots each slot takes its id from.
  static HWY_INLINE auto Sources(V slots, V start, V length, V step) {
    const auto inside = hn::Le(hn::Sub(slots, start), length);
    const auto sources = hn::MaskedAddOr(slots, inside, slots, step);
    return hn::IndicesFromVec(D(), hn::And(sources, hn::Set(D(), 63)));
  }

 public:
  static constexpr std::size_t kMaxSlots = 64;

  explicit VectorState(const LevelsReplay& r) : ids_(r.states[0]) {
    low_ = hn::Iota(D(), 0);
    high_ = hn::Iota(D(), 32);
    Mirror();
  }

  HWY_INLINE const std::uint16_t* Ids() const { return ids_; }

  HWY_INLINE void Set(std::uint32_t slot, std::uint32_t id) {
    const auto at = hn::Set(D(), static_cast<std::uint16_t>(slot)),
               value = hn::Set(D(), static_cast<std::uint16_t>(id));
    low_ = hn::IfThenElse(hn::Eq(hn::Iota(D(), 0), at), value, low_);
    high_ = hn::IfThenElse(hn::Eq(hn::Iota(D(), 32), at), value, high_);
    ids_[slot] = static_cast<std::uint16_t>(id);
  }

  HWY_INLINE void Shift(std::uint32_t slot, std::uint32_t from) {
    const std::uint32_t first = HWY_MIN(slot, from), last = HWY_MAX(slot, from);
    const auto start = hn::Set(D(), static_cast<std::uint16_t>(first));
    const auto length = hn::Set(D(), static_cast<std::uint16_t>(last - first));
    const auto step = hn::Set(D(), static_cast<std::uint16_t>(slot < from ? -1 : 1));
    const auto low =
        hn::TwoTablesLookupLanes(D(), low_, high_, Sources(hn::Iota(D(), 0), start, length, step));
    high_ = hn::TwoTablesLookupLanes(D(), low_, high_, Sources(hn::Iota(D(), 32), start, length, step));
    low_ = low;
    Mirror();
  }

 private:
  HWY_INLINE void Mirror() {
    hn::StoreU(low_, D(), ids_);
    hn::StoreU(high_, D(), ids_ + 32);
  }

  V low_, high_;
  std::uint16_t* ids_;
};
#endif

// kBytes is the size of an entry of 4-byte items where it is known at compile time, else 0.
template <std::size_t kBytes, class State>
class Replay {
 public:
  explicit HWY_INLINE Replay(const LevelsReplay& r)
      : r_(r), state_(r), slots_(static_cast<std::uint32_t>(r.rows.slots)) {}

  HWY_INLINE bool Run() {
    if (!r_.entries_ready) {
      for (std::uint32_t j = 0; j < slots_; ++j) MakeEntry(j, r_.lanes + j * r_.lane_stride);
    }
    std::byte* row = r_.rows.out;
    const std::size_t row_bytes = slots_ * EntryBytes();
    std::size_t event = 0;
    for (std::size_t i = 0; i < r_.end_row; ++i) {
      const std::size_t begin = event;
      moved_ = false;
      if (i != 0) {
        const std::size_t count = r_.counts[i - 1];
        if (count > r_.n_events - begin) return false;
        for (const std::size_t end = begin + count; event < end; ++event) {
          if (!Step(event)) return false;
        }
      }
      if (i < r_.first_row) continue;
      // A gathered row costs about as much as a copied one with this many entries written over it.
      if (i == r_.first_row || moved_ || (event - begin) * 4 > slots_) {
        GatherRow<kBytes>(r_.rows, state_.Ids(), 1, row);
      } else {
        CopyRow(row, row - row_bytes, row_bytes);
        for (std::size_t e = begin; e < event; ++e) WriteEntry(row, r_.slots[e]);
      }
      row += row_bytes;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kSet = 1, kReplace = 2, kMoveNew = 7, kKinds = 9;  // see levels_segment.h

  HWY_INLINE bool Step(std::size_t e) {
    const std::uint32_t kind = r_.kinds[e];
    std::uint32_t slot = r_.slots[e];
    if (slot >= slots_ || kind >= kKinds) return false;
    std::uint32_t parent;
    bool before = false;  // the parent is the slot behind: the key's step counts downwards
    if (kind <= kReplace) {
      parent = state_.Ids()[slot];
    } else {
      std::uint32_t from;
      if (kind >= kMoveNew) {
        if (next_move_ >= r_.n_moves) return false;
        from = r_.moves[next_move_++];
        if (from >= slots_) return false;
      } else {
        from = r_.edges[slot >= r_.middle];
        if (kind > 4) std::swap(slot, from);
      }
      state_.Shift(slot, from);
      moved_ = true;
      before = slot == 0;
      parent = state_.Ids()[!before ? slot - 1 : slots_ > 1 ? 1 : 0];
    }
    std::uint32_t id;
    if (kind == kSet || (kind > kReplace && kind % 2 == 0)) {
      if (next_known_ >= r_.n_known) return false;
      id = r_.known[next_known_++];
      const bool is_patch = id >= r_.first_patch;
      if (id - (is_patch ? r_.first_patch : 0) >= (is_patch ? next_patch_ : slots_ + next_insert_))
        return false;
    } else if (kind == 0) {
      if (next_patch_ >= r_.n_patches) return false;
      id = r_.first_patch + next_patch_++;
      if (!r_.entries_ready) FinishPatch(id, parent);
    } else {
      if (next_insert_ >= r_.n_inserts) return false;
      id = slots_ + next_insert_++;
      if (!r_.entries_ready) FinishInsert(id, parent, before);
    }
    state_.Set(slot, id);
    return true;
  }

  HWY_INLINE void FinishPatch(std::uint32_t id, std::uint32_t parent) {
    std::uint32_t* lanes = r_.lanes + id * LaneStride();
    const std::uint32_t* from = r_.lanes + parent * LaneStride();
    const Quad d;
    for (std::size_t l = 0; l < LaneStride(); l += kQuad) {
      const auto inherited = hn::And(hn::LoadU(d, from + l), hn::LoadU(d, r_.patch_mask + l));
      hn::StoreU(hn::Add(hn::LoadU(d, lanes + l), inherited), d, lanes + l);
    }
    MakeEntry(id, lanes);
  }

  HWY_INLINE void FinishInsert(std::uint32_t id, std::uint32_t parent, bool before) {
    // Whole vectors even for one lane: a narrow store would stall the wide load of MakeEntry.
    std::uint32_t* lanes = r_.lanes + id * LaneStride();
    const Quad d;
    const auto key = hn::FirstN(d, 1);
    const auto step = hn::LoadU(d, lanes);
    const auto signed_step = before ? hn::IfThenElse(key, hn::Sub(hn::Zero(d), step), step) : step;
    const auto base = hn::IfThenElseZero(key, hn::LoadU(d, r_.lanes + parent * LaneStride()));
    hn::StoreU(hn::Add(signed_step, base), d, lanes);
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

  HWY_INLINE void WriteEntry(std::byte* row, std::uint32_t slot) const {
    std::memcpy(row + slot * EntryBytes(), EntryOf(state_.Ids()[slot]), EntryBytes());
  }

  const LevelsReplay r_;  // a copy: what is written to rows cannot change it
  State state_;
  std::uint32_t slots_;
  std::uint32_t next_insert_ = 0, next_patch_ = 0, next_known_ = 0, next_move_ = 0;
  bool moved_ = false;
};

template <std::size_t kBytes>
HWY_NOINLINE bool ReplayOf(const LevelsReplay& r) {
#if CDD_LEVELS_VECTOR_STATE
  if (r.rows.slots <= VectorState::kMaxSlots) {
    Replay<kBytes, VectorState> replay(r);
    return replay.Run();
  }
#endif
  Replay<kBytes, MemoryState> replay(r);
  return replay.Run();
}

inline bool ReplayEvents(const LevelsReplay& r) {
  if (r.columns.item_bytes == 4) {
    switch (r.rows.entry_bytes) {
      case 8:
        return ReplayOf<8>(r);
      case 12:
        return ReplayOf<12>(r);
      case 16:
        return ReplayOf<16>(r);
      default:
        break;
    }
  }
  return ReplayOf<0>(r);
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
