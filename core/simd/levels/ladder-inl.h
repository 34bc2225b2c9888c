// Highway code of the ladder layout: which entry stands at each place, and from that the ids of each row.
//
// Places are in the order of the rows, so a row is what stands, squeezed together. Events become lists of
// places and ids, many at once, which are then stored one over the other. What stands is kept twice, for even
// and for odd rows, and each is changed a row ahead: vectors loaded from where single ids were just stored
// would wait for the stores.
#if defined(CDD_SIMD_LEVELS_LADDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_LADDER_INL_H_
#undef CDD_SIMD_LEVELS_LADDER_INL_H_
#else
#define CDD_SIMD_LEVELS_LADDER_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <utility>

#include "core/simd/levels/levels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As many lanes as are squeezed together in one step: what has no instruction for it is quick where a table
// of few lanes serves.
constexpr std::size_t kSqueezed16 = HWY_TARGET == HWY_AVX2 ? 8 : HWY_TARGET == HWY_AVX3 ? 16 : kLadderGrain;
using D16 = hn::CappedTag<std::uint16_t, kSqueezed16>;

// What stands in the first row of a side: ids (twice) in order at the places whose bits are set. Returns how
// many. Writes whole vectors of what stands.
inline std::size_t StandFirst(const std::byte* bits, std::size_t n_places, std::uint32_t first_id,
                              std::uint32_t first_place, std::uint16_t* standing,
                              std::uint16_t* places_of_entries) {
  std::size_t n = 0;
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  const D16 d;
  for (std::size_t p = 0; p < n_places; p += hn::Lanes(d)) {
    const auto mask = hn::And(hn::LoadMaskBits(d, reinterpret_cast<const std::uint8_t*>(bits) + p / 8),
                              hn::FirstN(d, n_places - p));
    const auto ids =
        hn::Expand(hn::ShiftLeft<1>(hn::Iota(d, static_cast<std::uint16_t>(first_id + n))), mask);
    hn::StoreU(hn::IfThenElse(mask, ids, hn::Set(d, kLadderNothing)), d, standing + p);
    const auto places = hn::Iota(d, static_cast<std::uint16_t>(first_place + p));
    hn::StoreU(hn::Compress(places, mask), d, places_of_entries + n);
    n += hn::CountTrue(d, mask);
    if (n > n_places) return n;
  }
#else
  for (std::size_t p = 0; p < ladder_pitch(n_places); ++p) {
    const bool stands = p < n_places && (static_cast<unsigned>(bits[p / 8]) >> p % 8 & 1) != 0;
    standing[p] = stands ? static_cast<std::uint16_t>(2 * (first_id + n)) : kLadderNothing;
    places_of_entries[n] = static_cast<std::uint16_t>(first_place + p);  // overwritten unless it stands
    n += stands;
  }
#endif
  return n;
}

// Codes -> where each event puts which id (twice), and the places of new entries. False when a value is not
// possible.
template <bool kHasKnown>
HWY_NOINLINE bool DecodeCodesWith(const LevelsLadder& r, std::size_t* n_new) {
  const S32 d;
  const hn::Rebind<std::uint16_t, S32> d16;
  const auto first = hn::Set(d, r.places[0]), all = hn::Set(d, r.places[0] + r.places[1]);
  const auto gap = hn::Set(d, static_cast<std::uint32_t>(r.gap()));
  const auto kind_mask = hn::Set(d, (1u << r.kind_bits) - 1);
  const auto new_kind = hn::Set(d, static_cast<std::uint32_t>(LadderKind::New));
  const auto gone_kind = hn::Set(d, static_cast<std::uint32_t>(LadderKind::Gone));
  const auto known_kind = hn::Set(d, static_cast<std::uint32_t>(LadderKind::Known));
  auto worst_place = hn::Zero(d), worst_kind = hn::Zero(d);
  auto good = hn::FirstN(d, kSqueezeLanes);
  std::size_t news = 0, known = 0;
  for (std::size_t i = 0; i < r.n_events; i += kSqueezeLanes) {
    const auto used = hn::FirstN(d, r.n_events - i);
    const auto code = hn::IfThenElseZero(used, hn::LoadU(d, r.codes + i));
    const auto kind = hn::And(code, kind_mask);
    const auto place = hn::ShiftRightSame(code, static_cast<int>(r.kind_bits));
    worst_place = hn::Max(worst_place, place);
    const auto is_new = hn::And(used, hn::Eq(kind, new_kind));
    const auto made = static_cast<std::uint32_t>(r.slots + news);
    auto id = hn::Expand(hn::Iota(d, made), is_new);
    if constexpr (kHasKnown) {
      worst_kind = hn::Max(worst_kind, kind);
      const auto is_known = hn::Eq(kind, known_kind);
      const auto known_id = hn::Expand(hn::LoadU(d, r.known + known), is_known);
      // It is one of those that were made before: so many more than at first as lanes before this are new.
      const auto others = hn::Expand(hn::Iota(d, 0), hn::Not(is_new));
      const auto made_before = hn::Add(hn::Set(d, made), hn::Sub(hn::Iota(d, 0), others));
      good = hn::And(good, Either(hn::Lt(known_id, made_before), is_new));
      id = hn::Or(id, known_id);
      known += hn::CountTrue(d, is_known);
    }
    hn::StoreU(hn::TruncateTo(d16, hn::Compress(place, is_new)), d16, r.places_of_entries + made);
    news += hn::CountTrue(d, is_new);
    if (news > r.n_new || known > r.n_known) return false;
    const auto put =
        hn::IfThenElse(hn::Eq(kind, gone_kind), hn::Set(d, std::uint32_t{kLadderNothing}), hn::Add(id, id));
    const auto at = hn::Add(place, hn::IfThenElseZero(hn::Ge(place, first), gap));
    hn::StoreU(hn::TruncateTo(d16, at), d16, r.at + i);
    hn::StoreU(hn::TruncateTo(d16, put), d16, r.id + i);
  }
  *n_new = news;
  return hn::AllTrue(d, good) && hn::AllTrue(d, hn::Lt(worst_place, all)) &&
         hn::AllTrue(d, hn::Le(worst_kind, known_kind));
}

inline bool DecodeCodes(const LevelsLadder& r, std::size_t* n_new) {
  return r.kind_bits == 2 ? DecodeCodesWith<true>(r, n_new) : DecodeCodesWith<false>(r, n_new);
}

// Makes rows of ids, one behind the other as far as what no row shows allows. A row is all that stands, of
// the first side only its last or its first slots.
class LadderRows {
 public:
  explicit LadderRows(const LevelsLadder& r)
      : r_(r),
        pitch_(r.standing_pitch()),
        side_(r.places[0] + r.gap()),
        hides_(r.keeps_last ? ~std::size_t{0} : 0) {}

  // The row in which this stands; returns where its ids begin.
  HWY_INLINE std::uint32_t Add(const std::uint16_t* standing) {
    const D16 d;
    std::uint16_t* out = next();
    std::size_t n = 0, v = 0;
    const auto squeeze = [&](std::size_t at) HWY_ATTR {
      const auto ids = hn::Load(d, standing + at);
      const auto stands = hn::Lt(ids, hn::Set(d, kLadderNothing));
      hn::StoreU(hn::Compress(ids, stands), d, out + n);
      n += hn::CountTrue(d, stands);
      return stands;
    };
    for (; v + hn::Lanes(d) <= side_; v += hn::Lanes(d)) squeeze(v);
    std::size_t first = n;
    if (v < side_) {
      first += hn::CountTrue(d, hn::And(squeeze(v), hn::FirstN(d, side_ - v)));
      v += hn::Lanes(d);
    }
    if (!r_.keeps_last) n = r_.split;
    for (; v < pitch_; v += hn::Lanes(d)) squeeze(v);
    return End(first, n);
  }

  // The row of which `first` ids were written for the first side, and up to `end` for both.
  HWY_INLINE std::uint32_t End(std::size_t first, std::size_t end) {
    const std::size_t hidden = (first - r_.split) & hides_;
    is_good_ = is_good_ && first >= r_.split && hidden <= r_.most_hidden && end >= hidden + r_.slots;
    const std::size_t start = next_ + (is_good_ ? hidden : 0);
    next_ = start + r_.slots;
    return static_cast<std::uint32_t>(start);
  }
  std::uint16_t* next() const { return r_.ids + next_; }
  bool is_good() const { return is_good_; }

 private:
  const LevelsLadder r_;
  const std::size_t pitch_, side_, hides_;
  std::size_t next_ = 0;
  bool is_good_ = true;
};

// Carries out n events, in fours, of which those too many are put at the place `none`.
HWY_INLINE void Put(const std::uint16_t* at, const std::uint16_t* id, std::size_t n, std::size_t none,
                    std::uint16_t* standing) {
  for (std::size_t i = 0; i < n; i += 4) {
    for (std::size_t k = i; k < i + 4; ++k) standing[k < n ? at[k] : none] = id[k];
  }
}

// Rows of a block by the states of what stands: the number of each row's state, and how many events lead to
// each state from the one before.
struct LadderStates {
  std::uint32_t counts[kLadderBlockRows];
  std::size_t n;

  LadderStates(LevelsLadder& r, std::size_t row, std::size_t n_rows) : n(0) {
    // Row 0 of the segment has no count, nor has the first row wanted: its events are carried out already.
    counts[0] = row == r.first_row ? 0 : r.counts[row - 1];
    r.states[0] = 0;
    for (std::size_t i = 1; i < n_rows; ++i) {
      const std::uint32_t count = r.counts[row + i - 1];
      n += count != 0;
      counts[n] = count != 0 ? count : counts[n];
      r.states[i] = static_cast<std::uint32_t>(n);
    }
    ++n;
  }
};

// What stands is kept twice, for even and odd states, and changed a state ahead.
inline bool MakeRows(LevelsLadder& r, const LadderStates& states) {
  const std::size_t pitch = r.standing_pitch();
  std::uint16_t* now = r.standing;
  std::uint16_t* next = r.standing_next;
  std::copy_n(now, pitch, next);
  LadderRows rows(r);
  std::size_t done = 0;  // events that have been carried out on both
  const auto put = [&](std::size_t n, std::uint16_t* standing) {
    Put(r.at + r.next_event + done, r.id + r.next_event + done, n, pitch, standing);
  };
  put(states.counts[0], now);
  for (std::size_t s = 0; s + 1 < states.n; ++s) {
    put(states.counts[s] + states.counts[s + 1], next);
    r.starts[s] = rows.Add(now);
    std::swap(now, next);
    done += states.counts[s];
  }
  r.starts[states.n - 1] = rows.Add(now);
  r.next_event += done + states.counts[states.n - 1];
  r.standing = now;
  r.standing_next = next;
  return rows.is_good();
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
// The same with all that stands in registers.
template <std::size_t kVectors>
HWY_NOINLINE bool MakeRowsInRegisters(LevelsLadder& ladder, const LadderStates& states) {
  const LevelsLadder r = ladder;  // a copy: no store can change it
  const D16 d;
  using V = hn::Vec<D16>;
  const auto nothing = hn::Set(d, kLadderNothing);
  V stands[kVectors], places[kVectors];
  std::uint32_t firsts[kVectors];  // bits of the places of the first side
  const std::size_t side = r.places[0] + r.gap();
  for (std::size_t k = 0; k < kVectors; ++k) {
    stands[k] = hn::Load(d, r.standing + k * kLadderGrain);
    places[k] = hn::Iota(d, static_cast<std::uint16_t>(k * kLadderGrain));
    firsts[k] = hn::FirstN(d, side - HWY_MIN(side, k * kLadderGrain)).raw;
  }
  LadderRows rows(r);
  std::size_t event = r.next_event;
  for (std::size_t s = 0; s < states.n; ++s) {
    for (const std::size_t end = event + states.counts[s]; event < end; ++event) {
      const auto at = hn::Set(d, r.at[event]), id = hn::Set(d, r.id[event]);
      for (std::size_t k = 0; k < kVectors; ++k) {
        stands[k] = hn::IfThenElse(hn::Eq(places[k], at), id, stands[k]);
      }
    }
    std::size_t n = 0, first = 0;
    std::uint16_t* out = rows.next();
    for (std::size_t k = 0; k < kVectors; ++k) {
      const auto is_there = hn::Lt(stands[k], nothing);
      const std::uint32_t bits = is_there.raw;
      if (!r.keeps_last && k * kLadderGrain == side) n = r.split;
      hn::StoreU(hn::Compress(stands[k], is_there), d, out + n);
      n += static_cast<std::size_t>(std::popcount(bits));
      first += static_cast<std::size_t>(std::popcount(bits & firsts[k]));
    }
    ladder.starts[s] = rows.End(first, n);
  }
  for (std::size_t k = 0; k < kVectors; ++k) hn::Store(stands[k], d, r.standing + k * kLadderGrain);
  ladder.next_event = event;
  return rows.is_good();
}
#endif

// Rows [row, row + n_rows) of the segment, the next ones: which ids they have.
inline bool LadderBlock(LevelsLadder& r, std::size_t row, std::size_t n_rows) {
  const LadderStates states(r, row, n_rows);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  switch (r.standing_pitch() / kLadderGrain) {
    case 1:
      return MakeRowsInRegisters<1>(r, states);
    case 2:
      return MakeRowsInRegisters<2>(r, states);
    case 3:
      return MakeRowsInRegisters<3>(r, states);
    case 4:
      return MakeRowsInRegisters<4>(r, states);
  }
#endif
  return MakeRows(r, states);
}

// All events as far as they are wanted, and those before the first row carried out.
inline bool StartLadder(LevelsLadder& r, std::size_t* n_new) {
  const std::size_t n = StandFirst(r.first_bits[0], r.places[0], 0, 0, r.standing, r.places_of_entries);
  if (n != r.split) return false;
  const std::size_t side = r.places[0] + r.gap();
  std::fill(r.standing + r.places[0], r.standing + side, kLadderNothing);
  const std::size_t other = StandFirst(r.first_bits[1], r.places[1], r.split, r.places[0], r.standing + side,
                                       r.places_of_entries + n);
  if (n + other != r.slots || !DecodeCodes(r, n_new)) return false;
  std::fill(r.standing + side + r.places[1], r.standing + r.standing_pitch(), kLadderNothing);
  r.next_event = 0;
  for (std::size_t i = 0; i < r.first_row; ++i) r.next_event += r.counts[i];
  for (std::size_t e = 0; e < r.next_event; ++e) r.standing[r.at[e]] = r.id[e];
  return true;
}

// out[i] = table[index[i]]. AVX2's gather instruction takes longer than the loads that it stands for.
inline void TakeEach(const std::uint32_t* table, const std::uint16_t* index, std::size_t n,
                     std::uint32_t* out) {
#if HWY_TARGET == HWY_AVX2
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const FourIds at = LoadFour(index + i);
    for (std::size_t k = 0; k < 4; ++k) out[i + k] = table[at[k]];
  }
  for (; i < n; ++i) out[i] = table[index[i]];
#else
  const D32 d;
  const hn::Rebind<std::uint16_t, D32> d16;
  const hn::RebindToSigned<D32> di;
  for (std::size_t i = 0; i < n; i += kLanes) {
    const auto any = hn::PromoteTo(d, hn::LoadU(d16, index + i));
    const auto at = hn::BitCast(di, hn::IfThenElseZero(hn::FirstN(d, n - i), any));
    hn::StoreU(hn::GatherIndex(d, table, at), d, out + i);
  }
#endif
}

// The row at `from` once more behind it, in whole vectors: the last one overlaps that before it.
constexpr std::size_t kRepeatStep = HWY_MIN(HWY_MAX_BYTES, 32);
HWY_INLINE void RepeatRow(const std::byte* from, std::size_t bytes, std::byte* to) {
  std::size_t i = 0;
  for (; i + kRepeatStep <= bytes; i += kRepeatStep) std::memcpy(to + i, from + i, kRepeatStep);
  std::memcpy(to + bytes - kRepeatStep, from + bytes - kRepeatStep, kRepeatStep);
}

inline void GatherRows(const LevelsRows& r, const std::uint16_t* ids, const std::uint32_t* starts,
                       const std::uint32_t* states) {
  const std::size_t row_bytes = r.slots * r.entry_bytes;
  WithEntryBytes(r.entry_bytes, [&](auto bytes) HWY_ATTR {
    std::byte* out = r.out;
    for (std::size_t i = 0; i < r.rows; ++i, out += row_bytes) {
      if (i != 0 && states[i] == states[i - 1] && row_bytes >= kRepeatStep) {
        RepeatRow(out - row_bytes, row_bytes, out);
      } else {
        GatherEntries<decltype(bytes)::value>(r, DoubledIds{ids + starts[states[i]]}, r.slots, out);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_LADDER_INL_H_
