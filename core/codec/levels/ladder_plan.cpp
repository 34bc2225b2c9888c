// The encoder of the ladder layout: the order of places, what happens at them, and what streams that becomes.

#include <algorithm>
#include <bit>

#include "core/codec/levels/segment.h"

namespace cdd::levels {
namespace {

using simd::LadderKind;

constexpr std::uint32_t kNone = 0xffffffff;
// With more events than this the full layout is smaller.
constexpr std::size_t kFewestCellsPerEvent = 2;
constexpr std::size_t kBurstRows = 8;  // that may all change at first

// A number that is in the order of feature 0, for items that are numbers.
std::int64_t rank_of(const Dictionary& d, std::size_t level) noexcept {
  const std::uint32_t low = d.lane(0)[level];
  if (d.scales.of[0] != simd::LevelsColumns::kBits) return static_cast<std::int32_t>(low);
  std::uint64_t bits = std::uint64_t{low} << 32;
  if (d.shape.item_bytes == 8) bits = low | std::uint64_t{d.lane(1)[level]} << 32;
  const auto rank = static_cast<std::int64_t>(bits);
  // Floats have a sign of their own.
  return d.shape.floats && rank < 0 ? static_cast<std::int64_t>(~bits ^ std::uint64_t{1} << 63) : rank;
}

// One side of the rows: slots [begin, end), in the order of places.
struct Side {
  std::size_t begin, end;
  std::vector<std::uint32_t> place_of_level;  // of those that stand here
  std::vector<std::uint32_t> level_of_place;  // some level that has the key
  bool is_rising = true;

  std::size_t slots() const noexcept { return end - begin; }
  std::size_t places() const noexcept { return level_of_place.size(); }
};

// False when not every row is in one order.
bool order_places(const Dictionary& d, Side& side) {
  side.place_of_level.assign(d.n_levels, kNone);
  side.level_of_place.clear();
  if (side.slots() == 0) return true;
  const std::size_t slots = d.shape.slots;
  const std::uint32_t* first = d.cells.data() + side.begin;
  side.is_rising = side.slots() == 1 || rank_of(d, first[0]) < rank_of(d, first[1]);
  for (std::size_t r = 0; r < d.n_rows; ++r) {
    const std::uint32_t* row = d.cells.data() + r * slots;
    d.for_changed(r, side.begin, side.end, [&](std::size_t j) { side.place_of_level[row[j]] = 0; });
  }
  std::vector<std::uint32_t> place_of_key(d.n_keys, kNone);
  std::vector<std::pair<std::int64_t, std::uint32_t>> ranks;
  for (std::uint32_t level = 0; level < d.n_levels; ++level) {
    if (side.place_of_level[level] == kNone || place_of_key[d.keys[level]] != kNone) continue;
    place_of_key[d.keys[level]] = 0;
    const std::int64_t rank = rank_of(d, level);
    ranks.emplace_back(side.is_rising ? rank : ~rank, level);
  }
  std::sort(ranks.begin(), ranks.end());
  side.level_of_place.reserve(ranks.size());
  for (std::uint32_t p = 0; p < ranks.size(); ++p) {
    place_of_key[d.keys[ranks[p].second]] = p;
    side.level_of_place.push_back(ranks[p].second);
  }
  for (std::size_t level = 0; level < d.n_levels; ++level) {
    if (side.place_of_level[level] != kNone) side.place_of_level[level] = place_of_key[d.keys[level]];
  }
  bool is_sorted = true;
  for (std::size_t r = 0; r < d.n_rows && is_sorted; ++r) {
    const std::uint32_t* row = d.cells.data() + r * slots;
    d.for_changed(r, side.begin, side.end, [&](std::size_t j) {
      const std::uint32_t place = side.place_of_level[row[j]];
      is_sorted &= j == side.begin || side.place_of_level[row[j - 1]] < place;
      is_sorted &= j + 1 == side.end || place < side.place_of_level[row[j + 1]];
    });
  }
  return is_sorted;
}

// Whether the first of the side's slots has other keys from row to row more often than its last: levels then
// come and go there, and what does may stay where it is though no row shows it.
bool first_slot_moves_more(const Dictionary& d, const Side& side) {
  std::size_t firsts = 0, lasts = 0;
  for (std::size_t r = 1; r < d.n_rows; ++r) {
    const std::uint32_t* row = d.cells.data() + r * d.shape.slots;
    const std::uint32_t* before = row - d.shape.slots;
    firsts += d.keys[row[side.begin]] != d.keys[before[side.begin]];
    lasts += d.keys[row[side.end - 1]] != d.keys[before[side.end - 1]];
  }
  return firsts > lasts;
}

class Ladder {
 public:
  explicit Ladder(const Dictionary& d) : d_(d), entry_of_(d.n_levels, kNone) {}

  // Two sides of half the slots, or one where levels wander from one half to the other. False when rows are
  // not sorted.
  bool find_sides() {
    if (!d_.is_special.empty()) {
      for (std::size_t i = 0; i < d_.n_levels; ++i) {
        if (d_.is_special[i * d_.shape.features]) return false;
      }
    }
    const std::size_t slots = d_.shape.slots, middle = d_.shape.middle();
    sides[0].begin = 0;
    sides[0].end = sides[1].begin = middle;
    sides[1].end = slots;
    if (!order_places(d_, sides[0]) || !order_places(d_, sides[1])) return false;
    const std::size_t shared = sides[0].places() + sides[1].places() - d_.n_keys;
    if (shared * 4 > d_.n_keys && sides[0].is_rising == sides[1].is_rising) {
      sides[0].end = sides[1].begin = slots;
      if (!order_places(d_, sides[0]) || !order_places(d_, sides[1])) return false;
    }
    if (sides[0].slots() != 0) keeps_last = first_slot_moves_more(d_, sides[0]);
    return true;
  }

  // False when the rows differ too much.
  bool make() {
    if (sides[0].places() + sides[1].places() > kMaxLadderPlaces) return false;
    std::uint32_t first = 0;
    for (std::size_t s = 0; s < 2; ++s) {
      states_[s].first = first;
      states_[s].level.assign(sides[s].places(), kNone);
      states_[s].stands.assign(sides[s].places() / 64 + 1, 0);
      first += static_cast<std::uint32_t>(sides[s].places());
    }
    for (const Side& side : sides) begin(side, states_[&side - sides]);
    counts.reserve(d_.n_rows);
    for (std::size_t r = 1; r < d_.n_rows; ++r) {
      const std::size_t before = places.size();
      for (const Side& side : sides) change_to(side, states_[&side - sides], r);
      counts.push_back(static_cast<std::uint32_t>(places.size() - before));
      if (places.size() * kFewestCellsPerEvent > (r + kBurstRows) * d_.shape.slots ||
          entry_levels.size() > kMaxLadderEntries) {
        return false;
      }
    }
    return true;
  }

  Side sides[2];
  bool keeps_last = false;
  std::vector<std::uint32_t> counts, places, known, entry_levels;
  std::vector<LadderKind> kinds;
  std::size_t kind_counts[3] = {};

 private:
  struct State {
    std::uint32_t first;                // the number of the side's first place
    std::vector<std::uint32_t> level;   // that stands at each place, or kNone
    std::vector<std::uint64_t> stands;  // a bit for each place
    std::size_t standing = 0;
  };

  void begin(const Side& side, State& state) {
    for (std::size_t j = side.begin; j < side.end; ++j) {
      const std::uint32_t level = d_.cells[j];
      if (entry_of_[level] == kNone) entry_of_[level] = static_cast<std::uint32_t>(entry_levels.size());
      entry_levels.push_back(level);
      stand(state, side.place_of_level[level], level);
    }
  }

  static void stand(State& state, std::size_t place, std::uint32_t level) {
    state.level[place] = level;
    std::uint64_t& word = state.stands[place / 64];
    state.standing += (word >> place % 64 & 1) == 0;
    word |= std::uint64_t{1} << place % 64;
  }

  void add(const State& state, std::size_t place, LadderKind kind) {
    places.push_back(state.first + static_cast<std::uint32_t>(place));
    kinds.push_back(kind);
    ++kind_counts[static_cast<std::size_t>(kind)];
  }

  void take_away(State& state, std::size_t place) {
    add(state, place, LadderKind::Gone);
    state.level[place] = kNone;
    state.stands[place / 64] &= ~(std::uint64_t{1} << place % 64);
    --state.standing;
  }

  void change_to(const Side& side, State& state, std::size_t r) {
    const std::uint32_t* row = d_.cells.data() + r * d_.shape.slots;
    changed_.clear();
    d_.for_changed(r, side.begin, side.end, [&](std::size_t j) { changed_.push_back(j); });
    if (changed_.empty()) return;
    // What stands beside the slots [from, to), which are all that differ, stays.
    const std::size_t from = changed_.front(), to = changed_.back() + 1;
    const auto place_of = [&](std::size_t j) { return side.place_of_level[row[j]]; };
    const bool keeps = &side == sides && keeps_last;
    // What stands between the places of the row, and is not in it, goes.
    const std::size_t low = from > side.begin ? place_of(from - 1) + 1u : keeps ? place_of(from) : 0u;
    const std::size_t high = to < side.end ? place_of(to) : keeps ? side.places() : place_of(to - 1) + 1u;
    std::size_t j = from, place = place_of(j);
    for (std::size_t w = low / 64; w * 64 < high; ++w) {
      std::uint64_t gone = state.stands[w];
      while (place / 64 == w) {
        gone &= ~(std::uint64_t{1} << place % 64);
        place = ++j < to ? place_of(j) : kNone;
      }
      if (low > w * 64) gone &= ~std::uint64_t{0} << low % 64;
      if (high < w * 64 + 64) gone &= ~(~std::uint64_t{0} << high % 64);
      for (; gone != 0; gone &= gone - 1)
        take_away(state, w * 64 + static_cast<std::size_t>(std::countr_zero(gone)));
    }
    for (const std::size_t slot : changed_) {
      if (state.level[place_of(slot)] != row[slot]) change(state, place_of(slot), row[slot]);
    }
    // What no row shows must not become too much.
    const std::size_t shown = place_of(side.begin);
    for (std::size_t p = 0; keeps && state.standing > side.slots() + most_hidden(d_.shape) && p < shown;
         ++p) {
      if (state.level[p] != kNone) take_away(state, p);
    }
  }

  void change(State& state, std::size_t place, std::uint32_t level) {
    if (entry_of_[level] != kNone) {
      add(state, place, LadderKind::Known);
      known.push_back(entry_of_[level]);
    } else {
      add(state, place, LadderKind::New);
      entry_of_[level] = static_cast<std::uint32_t>(entry_levels.size());
      entry_levels.push_back(level);
    }
    stand(state, place, level);
  }

  const Dictionary& d_;
  std::vector<std::uint32_t> entry_of_;  // of each level, or kNone
  std::vector<std::size_t> changed_;     // slots of a row
  State states_[2];
};

void append_header(const Dictionary& d, const Ladder& ladder, unsigned kind_bits, SegmentPlan& plan) {
  append_scales(d, plan.header);
  append(plan.header, static_cast<std::uint8_t>(kind_bits | (ladder.keeps_last ? kKeepsLast : 0)));
  append_number(d, ladder.sides[0].slots(), plan.header);
  for (const Side& side : ladder.sides) append_number(d, side.places(), plan.header);
  append_number(d, ladder.entry_levels.size() - d.shape.slots, plan.header);
  for (const LadderKind kind : {LadderKind::Gone, LadderKind::Known}) {
    append_number(d, ladder.kind_counts[static_cast<std::size_t>(kind)], plan.header);
  }
  append_number(d, plan.specials.size(), plan.header);
  const Side& first = ladder.sides[ladder.sides[0].slots() == 0 ? 1 : 0];
  append(plan.header, d.lane(0)[first.level_of_place[0]]);
  for (const Side& side : ladder.sides) {
    std::vector<std::byte> bits((side.places() + 7) / 8);
    for (std::size_t j = side.begin; j < side.end; ++j) {
      const std::uint32_t place = side.place_of_level[d.cells[j]];
      bits[place / 8] |= std::byte{1} << place % 8;
    }
    plan.header.insert(plan.header.end(), bits.begin(), bits.end());
  }
}

// What happens where: places and kinds in one, or where streams are coded kinds, then places as gaps between
// those of a row, which are put in order for it. Nothing else depends on their order: what is new or known
// comes in order already.
void append_codes(const Dictionary& d, Ladder& ladder, unsigned kind_bits, SegmentPlan& plan) {
  std::vector<std::uint32_t>& places = ladder.places;
  std::vector<std::uint32_t> kinds;
  if (d.coding == Coding::Packed) {
    for (std::size_t e = 0; e < places.size(); ++e)
      places[e] = places[e] << kind_bits | static_cast<std::uint32_t>(ladder.kinds[e]);
  } else {
    std::vector<std::pair<std::uint32_t, LadderKind>> row;
    std::size_t at = 0;
    for (const std::uint32_t count : ladder.counts) {
      row.clear();
      for (std::size_t e = at; e < at + count; ++e) row.emplace_back(places[e], ladder.kinds[e]);
      std::ranges::stable_sort(row, {}, [](const auto& event) { return event.first; });
      for (const auto& [place, kind] : row) {
        places[at++] = place;
        if (kind_bits != 0) kinds.push_back(static_cast<std::uint32_t>(kind));
      }
    }
    subtract_in_rows(ladder.counts, places);
  }
  plan.values.push_back(std::move(ladder.counts));
  if (d.coding == Coding::Coded) plan.values.push_back(std::move(kinds));
  plan.values.push_back(std::move(places));
}

}  // namespace

SegmentPlan plan_ladder(const Dictionary& d, bool* is_sorted) {
  Ladder ladder(d);
  *is_sorted = ladder.find_sides();
  if (!*is_sorted || !ladder.make()) return {};
  const auto count = [&](LadderKind kind) { return ladder.kind_counts[static_cast<std::size_t>(kind)]; };
  const unsigned kind_bits = count(LadderKind::Known) != 0 ? 2 : count(LadderKind::Gone) != 0 ? 1 : 0;
  SegmentPlan plan;
  plan.layout = Layout::Ladder;
  plan.work = ladder.places.size();
  plan.specials = find_specials(d, ladder.entry_levels);
  if (plan.specials.size() > kMaxSpecials) return {};
  append_header(d, ladder, kind_bits, plan);
  append_codes(d, ladder, kind_bits, plan);
  plan.values.push_back(std::move(ladder.known));
  const std::size_t first_lane = plan.values.size();
  for (std::size_t l = 0; l < d.scales.lanes; ++l) {
    auto& lane = plan.values.emplace_back();
    if (l >= d.scales.key_lanes) {
      for (const std::uint32_t level : ladder.entry_levels) lane.push_back(d.lane(l)[level]);
      continue;
    }
    for (const Side& side : ladder.sides) {
      for (const std::uint32_t level : side.level_of_place) lane.push_back(d.lane(l)[level]);
    }
    if (l != 0) continue;
    for (std::size_t p = lane.size(); p-- > 1;) lane[p] -= lane[p - 1];
    lane.erase(lane.begin());
  }
  for (std::size_t i = 0; i < plan.values.size(); ++i)
    plan.streams.push_back(plan_stream(plan.values[i], i >= first_lane, d.exception_worth));
  return plan;
}

}  // namespace cdd::levels
