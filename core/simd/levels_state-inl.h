// The state of replaying events: the entry id of each slot, in memory or in registers.
//
// Both put an entry in at a slot and move the ids between by one, as a LevelsOp says.
#if defined(CDD_SIMD_LEVELS_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_STATE_INL_H_
#undef CDD_SIMD_LEVELS_STATE_INL_H_
#else
#define CDD_SIMD_LEVELS_STATE_INL_H_
#endif

#include <cstring>
#include <utility>

#include "core/simd/levels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The entry id of each slot, in memory.
class MemoryState {
 public:
  explicit MemoryState(const LevelsReplay& r) : ids_(r.states[0]), other_(r.states[1]), slots_(r.rows.slots) {
    for (std::size_t j = 0; j < slots_; ++j) ids_[j] = static_cast<std::uint16_t>(j);
  }

  void Expect(std::size_t, std::size_t) {}
  HWY_INLINE const std::uint16_t* Ids() const { return ids_; }
  HWY_INLINE std::uint32_t IdAt(std::uint32_t slot) const { return ids_[slot]; }

  HWY_INLINE void Put(const LevelsOp& op) {
    if (op.length() != 0) Shift(op);
    ids_[op.slot()] = static_cast<std::uint16_t>(op.id());
  }

 private:
  HWY_INLINE void Shift(const LevelsOp& op) {
    const hn::CappedTag<std::uint16_t, 32> d;
    const std::size_t step = hn::Lanes(d);
    const std::uint16_t* moved = ids_ + op.step();
    const auto length = hn::Set(d, static_cast<std::uint16_t>(op.length()));
    const auto steps = hn::Set(d, static_cast<std::uint16_t>(step));
    auto place = hn::Iota(d, static_cast<std::uint16_t>(0 - op.low()));
    for (std::size_t j = 0; j < slots_; j += step) {
      const auto inside = hn::Le(place, length);
      hn::StoreU(hn::IfThenElse(inside, hn::LoadU(d, moved + j), hn::LoadU(d, ids_ + j)), d, other_ + j);
      place = hn::Add(place, steps);
    }
    std::swap(ids_, other_);
  }

  std::uint16_t* ids_;
  std::uint16_t* other_;
  std::size_t slots_;
};

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
#define CDD_LEVELS_VECTOR_STATE 1
// From which of 64 slots each takes its id when ids move up (the first row) or down.
struct MoveTables {
  alignas(64) std::uint16_t from[2][64];
};
constexpr MoveTables MakeMoveTables() {
  MoveTables t{};
  for (unsigned j = 0; j < 64; ++j) {
    t.from[0][j] = static_cast<std::uint16_t>((j + 1) % 64);
    t.from[1][j] = static_cast<std::uint16_t>((j + 63) % 64);
  }
  return t;
}
constexpr MoveTables kMoves = MakeMoveTables();

// The same for up to 64 slots in two registers; in memory only when a row is gathered from it. Where more
// than a few events move levels, no processor predicts which do, so those in place are moves of one slot.
class VectorState {
  using D = hn::FixedTag<std::uint16_t, 32>;
  using V = hn::Vec<D>;

  // The slots whose bits are set, of the lower or upper 32.
  static HWY_INLINE auto MaskOf(std::uint64_t bits, unsigned half) {
    std::uint8_t bytes[8];
    const auto word = static_cast<std::uint32_t>(bits >> (32 * half));
    std::memcpy(bytes, &word, 4);
    return hn::LoadMaskBits(D(), bytes);
  }

 public:
  static constexpr std::size_t kMaxSlots = 64;

  explicit VectorState(const LevelsReplay& r)
      : low_(hn::Iota(D(), 0)), high_(hn::Iota(D(), 32)), ids_(r.states[0]) {}

  void Expect(std::size_t n_moving, std::size_t n_events) { always_moves_ = n_moving * 8 > n_events; }

  HWY_INLINE const std::uint16_t* Ids() const {
    hn::StoreU(low_, D(), ids_);
    hn::StoreU(high_, D(), ids_ + 32);
    return ids_;
  }
  HWY_INLINE std::uint32_t IdAt(std::uint32_t slot) const {
    const auto index = hn::IndicesFromVec(D(), hn::Set(D(), static_cast<std::uint16_t>(slot)));
    return hn::GetLane(hn::TwoTablesLookupLanes(D(), low_, high_, index));
  }

  HWY_INLINE void Put(const LevelsOp& op) {
    const std::uint64_t at = std::uint64_t{1} << op.slot();
    const auto id = hn::Set(D(), static_cast<std::uint16_t>(op.id()));
    if ((op.length() | always_moves_) == 0) {
      low_ = hn::IfThenElse(MaskOf(at, 0), id, low_);
      high_ = hn::IfThenElse(MaskOf(at, 1), id, high_);
      return;
    }
    const std::uint64_t moved = ((std::uint64_t{2} << op.length()) - 1) << op.low();
    const std::uint16_t* from = kMoves.from[op.step() < 0];
    const auto low_from = hn::IndicesFromVec(D(), hn::Load(D(), from));
    const auto high_from = hn::IndicesFromVec(D(), hn::Load(D(), from + 32));
    const auto low = hn::TwoTablesLookupLanes(D(), low_, high_, low_from);
    const auto high = hn::TwoTablesLookupLanes(D(), low_, high_, high_from);
    low_ = hn::IfThenElse(MaskOf(at, 0), id, hn::IfThenElse(MaskOf(moved, 0), low, low_));
    high_ = hn::IfThenElse(MaskOf(at, 1), id, hn::IfThenElse(MaskOf(moved, 1), high, high_));
  }

 private:
  V low_, high_;
  std::uint16_t* ids_;
  std::uint32_t always_moves_ = 0;
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_STATE_INL_H_
