// The state of replaying events: the entry id of each slot, in memory or in registers.
//
// Both put an entry in at a slot and move the ids between by one, as LevelsOps say, and return the id of its
// parent.
#if defined(CDD_SIMD_LEVELS_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_STATE_INL_H_
#undef CDD_SIMD_LEVELS_STATE_INL_H_
#else
#define CDD_SIMD_LEVELS_STATE_INL_H_
#endif

#include <cstring>

#include "core/simd/levels/levels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The state is the row of ids itself.
class MemoryState {
 public:
  MemoryState(std::uint32_t slots, bool, std::uint16_t* row) : ids_(row), slots_(slots) {
    for (std::size_t j = 0; j < slots_; ++j) ids_[j] = static_cast<std::uint16_t>(j);
  }

  // Around the events of a row.
  HWY_INLINE void Begin(std::uint16_t* row) {
    std::memcpy(row, ids_, slots_ * sizeof *row);
    ids_ = row;
  }
  HWY_INLINE void End(std::uint16_t*) {}

  HWY_INLINE std::uint32_t Put(const LevelsOps& ops, std::size_t e) {
    const std::uint32_t parent = ids_[ops.parent[e] & 0xffff];
    std::uint16_t* low = ids_ + (ops.low[e] & 0xffff);
    const std::size_t bytes = (ops.length[e] & 0xffff) * sizeof *low;
    if (bytes != 0) std::memmove(low, ops.is_down[e] != 0 ? low + 1 : low - 1, bytes);
    ids_[ops.slot[e] & 0xffff] = static_cast<std::uint16_t>(ops.id[e]);
    return parent;
  }

 private:
  std::uint16_t* ids_;
  std::size_t slots_;
};

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
#define CDD_LEVELS_VECTOR_STATE 1
// From which slot each takes its id when ids move up (the first row) or down.
struct MoveTables {
  alignas(64) std::uint16_t from[2][64];
};
constexpr MoveTables MakeMoveTables() {
  MoveTables t{};
  for (unsigned j = 0; j < 64; ++j) {
    t.from[0][j] = static_cast<std::uint16_t>((j + 63) % 64);
    t.from[1][j] = static_cast<std::uint16_t>((j + 1) % 64);
  }
  return t;
}
constexpr MoveTables kMoves = MakeMoveTables();

// Up to 64 slots in two registers. Where more than a few events move levels, no processor predicts which do,
// so those in place are moves of no slot.
class VectorState {
  using D = hn::FixedTag<std::uint16_t, 32>;
  using V = hn::Vec<D>;

  // A value that stands in both halves of its word.
  static HWY_INLINE V Twice(std::uint32_t word) {
    return hn::BitCast(D(), hn::Set(hn::FixedTag<std::uint32_t, 16>(), word));
  }
  // The ids of the slots named in v.
  HWY_INLINE V Look(V v) const {
    return hn::TwoTablesLookupLanes(D(), low_, high_, hn::IndicesFromVec(D(), v));
  }

 public:
  static constexpr std::size_t kMaxSlots = 64;

  VectorState(std::uint32_t, bool moves_often, std::uint16_t*)
      : always_moves_(moves_often),
        low_places_(hn::Iota(D(), 0)),
        high_places_(hn::Iota(D(), 32)),
        low_(low_places_),
        high_(high_places_) {}

  HWY_INLINE void Begin(std::uint16_t*) {}
  HWY_INLINE void End(std::uint16_t* row) const {
    hn::StoreU(low_, D(), row);
    hn::StoreU(high_, D(), row + 32);
  }

  HWY_INLINE std::uint32_t Put(const LevelsOps& ops, std::size_t e) {
    const V slot = Twice(ops.slot[e]), id = Twice(ops.id[e]), parent = Look(Twice(ops.parent[e]));
    if (const std::uint32_t length = ops.length[e]; (length | always_moves_) != 0) {
      const std::uint16_t* from = kMoves.from[ops.is_down[e]];
      const V first = Twice(ops.low[e]), lengths = Twice(length);
      const V low = Look(hn::Load(D(), from)), high = Look(hn::Load(D(), from + 32));
      low_ = hn::IfThenElse(hn::Lt(hn::Sub(low_places_, first), lengths), low, low_);
      high_ = hn::IfThenElse(hn::Lt(hn::Sub(high_places_, first), lengths), high, high_);
    }
    low_ = hn::IfThenElse(hn::Eq(low_places_, slot), id, low_);
    high_ = hn::IfThenElse(hn::Eq(high_places_, slot), id, high_);
    return hn::GetLane(parent);
  }

 private:
  const std::uint32_t always_moves_;
  const V low_places_, high_places_;
  V low_, high_;
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_STATE_INL_H_
