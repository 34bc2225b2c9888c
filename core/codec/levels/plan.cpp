// The encoders of the events and full layouts: what makes each row, and what streams that becomes.

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/codec/levels/segment.h"

namespace cdd::levels {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
// With more events than this the full layout is smaller.
constexpr std::size_t kFewestCellsPerEvent = 2;
// With fewer patches back to known levels than this it hardly matters how they are coded.
constexpr std::size_t kFewestEventsPerRepeat = 16;

struct ScriptEvent {
  std::uint32_t level;
  std::uint16_t slot, from;
  bool same_key;  // in place, and feature 0 stays
};

// The shortest changes from row to row: rows are aligned by feature 0, in order.
class Script {
 public:
  explicit Script(const Dictionary& d)
      : d_(d), slots_(d.shape.slots), place_(d.n_keys, 0), matched_(slots_), gone_(slots_), row_(slots_) {
    std::copy_n(d.cells.begin(), slots_, row_.begin());
    counts.reserve(d.n_rows);
    const std::size_t most = d.cells.size() / kFewestCellsPerEvent + slots_;
    for (std::size_t r = 1; r < d.n_rows && events.size() <= most; ++r) {
      const std::size_t before = events.size();
      change_to(d.cells.data() + r * slots_);
      counts.push_back(static_cast<std::uint32_t>(events.size() - before));
    }
  }

  // Whether the script covers all rows rather than having been given up.
  bool is_complete() const noexcept { return counts.size() + 1 == d_.n_rows; }

  std::vector<ScriptEvent> events;
  std::vector<std::uint32_t> counts;

 private:
  void change_to(const std::uint32_t* next) {
    std::size_t low = 0, high = slots_;
    while (low < slots_ && row_[low] == next[low]) ++low;
    if (low == slots_) return;
    while (row_[high - 1] == next[high - 1]) --high;
    align(next, low, high);
    for (std::size_t p = low; p < high;) {
      if (!matched_[p]) {
        if (gone_[p]) {
          put(next[p], p, p, false);
          gone_[p] = false;
        } else {
          std::size_t from = p + 1;
          while (!gone_[from]) ++from;
          move(next[p], p, from);
        }
        ++p;
      } else if (gone_[p]) {
        // What is put in next goes where the levels before it end once this slot is taken out.
        std::size_t i = p, j = p;
        for (; matched_[j]; ++j, ++i) {
          while (gone_[i]) ++i;
        }
        move(next[j], i - 1, p);
        matched_[j] = true;
      } else {
        if (row_[p] != next[p]) put(next[p], p, p, true);
        ++p;
      }
    }
  }

  // Which slots of `next` continue a slot of row_ (matched_), and which slots of row_ end (gone_).
  void align(const std::uint32_t* next, std::size_t low, std::size_t high) {
    for (std::size_t i = high; i-- > low;) place_[d_.keys[row_[i]]] = static_cast<std::uint32_t>(i + 1);
    std::fill(gone_.begin() + low, gone_.begin() + high, true);
    std::size_t after = low;  // the first slot of row_ behind the last match
    for (std::size_t j = low; j < high; ++j) {
      const std::uint32_t key = d_.keys[next[j]];
      std::size_t i = place_[key];
      if (after < high && d_.keys[row_[after]] == key) i = after + 1;
      matched_[j] = i > after;
      if (!matched_[j]) continue;
      gone_[i - 1] = false;
      after = i;
    }
    for (std::size_t i = low; i < high; ++i) place_[d_.keys[row_[i]]] = 0;
  }

  void put(std::uint32_t level, std::size_t slot, std::size_t from, bool same_key) {
    row_[slot] = level;
    events.push_back({level, static_cast<std::uint16_t>(slot), static_cast<std::uint16_t>(from), same_key});
  }

  void move(std::uint32_t level, std::size_t slot, std::size_t from) {
    if (slot < from) {
      std::copy_backward(row_.begin() + slot, row_.begin() + from, row_.begin() + from + 1);
      std::copy_backward(gone_.begin() + slot, gone_.begin() + from, gone_.begin() + from + 1);
    } else {
      std::copy(row_.begin() + from + 1, row_.begin() + slot + 1, row_.begin() + from);
      std::copy(gone_.begin() + from + 1, gone_.begin() + slot + 1, gone_.begin() + from);
    }
    gone_[slot] = false;
    put(level, slot, from, false);
  }

  const Dictionary& d_;
  std::size_t slots_;
  std::vector<std::uint32_t> place_;  // per key: its first slot in row_ plus 1, 0 for none
  std::vector<std::uint8_t> matched_, gone_;
  std::vector<std::uint32_t> row_;
};

// For each half of the row the edge slot that most moves of that half end at.
std::array<std::uint32_t, 2> choose_edges(const Shape& shape, const std::vector<ScriptEvent>& events) {
  const std::uint32_t middle = shape.middle(), last = shape.slots - 1;
  const std::uint32_t candidates[4] = {0, middle == 0 ? 0 : middle - 1, middle, last};
  std::size_t votes[2][4]{};
  for (const ScriptEvent& e : events) {
    if (e.slot == e.from) continue;
    for (std::size_t c = 0; c < 4; ++c) {
      if (e.from == candidates[c]) ++votes[e.slot >= middle][c];
      if (e.slot == candidates[c]) ++votes[e.from >= middle][c];
    }
  }
  std::array<std::uint32_t, 2> edges{};
  for (std::size_t half = 0; half < 2; ++half) {
    edges[half] = candidates[std::max_element(votes[half], votes[half] + 4) - votes[half]];
  }
  return edges;
}

// The values of all streams of an events segment.
class Emission {
 public:
  Emission(const Dictionary& d, const Script& script, std::array<std::uint32_t, 2> edges,
           bool patches_may_repeat)
      : d_(d),
        edges_(edges),
        patches_may_repeat_(patches_may_repeat),
        entry_of_(d.n_levels, kNone),
        inserts(d.scales.lanes),
        patches(d.scales.lanes),
        deltas(d.scales.lanes) {
    const std::uint32_t slots = d.shape.slots;
    row_.assign(d.cells.begin(), d.cells.begin() + slots);
    for (std::uint32_t j = 0; j < slots; ++j) {
      const std::uint32_t step = j == 0 ? 0 : d.lane(0)[row_[j]] - d.lane(0)[row_[j - 1]];
      entry_of_[row_[j]] = j;
      add_insert(row_[j], step, j == 0);
    }
    for (const ScriptEvent& e : script.events) add(e);
    // Patches are numbered behind all inserts.
    const auto first_patch = static_cast<std::uint32_t>(insert_levels.size());
    for (std::uint32_t& id : known) {
      if ((id & kPatchBit) != 0) id = first_patch + (id & ~kPatchBit);
    }
  }

 private:
  static constexpr std::uint32_t kPatchBit = 0x80000000;

  void add(const ScriptEvent& e) {
    const std::uint32_t old = row_[e.slot];
    if (e.slot < e.from) {
      std::copy_backward(row_.begin() + e.slot, row_.begin() + e.from, row_.begin() + e.from + 1);
    } else if (e.slot > e.from) {
      std::copy(row_.begin() + e.from + 1, row_.begin() + e.slot + 1, row_.begin() + e.from);
    }
    row_[e.slot] = e.level;
    const bool is_known = entry_of_[e.level] != kNone && (!e.same_key || patches_may_repeat_);
    add_kind(e, is_known);
    if (is_known) {
      known.push_back(entry_of_[e.level]);
      n_repeats += e.same_key;
    } else if (e.same_key) {
      entry_of_[e.level] = kPatchBit | static_cast<std::uint32_t>(patch_levels.size());
      patch_levels.push_back(e.level);
      for (std::size_t l = d_.scales.key_lanes; l < d_.scales.lanes; ++l) {
        patches[l].push_back(d_.lane(l)[e.level]);
        deltas[l].push_back(d_.lane(l)[e.level] - d_.lane(l)[old]);
      }
    } else {
      entry_of_[e.level] = static_cast<std::uint32_t>(insert_levels.size());
      add_insert(e.level, step_of(e, old), false);
    }
  }

  std::uint32_t step_of(const ScriptEvent& e, std::uint32_t old) const {
    const std::uint32_t* key = d_.lane(0);
    if (e.slot == e.from) return key[e.level] - key[old];
    return e.slot != 0 ? key[e.level] - key[row_[e.slot - 1u]] : key[row_[1]] - key[e.level];
  }

  void add_kind(const ScriptEvent& e, bool is_known) {
    const std::uint32_t middle = d_.shape.middle();
    Event kind;
    std::uint32_t slot = e.slot;
    if (e.slot == e.from) {
      kind = is_known ? Event::Set : e.same_key ? Event::Patch : Event::Replace;
    } else if (e.from == edges_[e.slot >= middle]) {
      kind = is_known ? Event::InKnown : Event::InNew;
    } else if (e.slot == edges_[e.from >= middle]) {
      kind = is_known ? Event::OutKnown : Event::OutNew;
      slot = e.from;
    } else {
      kind = is_known ? Event::MoveKnown : Event::MoveNew;
      moves.push_back(e.from);
    }
    kinds.push_back(static_cast<std::uint32_t>(kind));
    slots.push_back(slot);
  }

  void add_insert(std::uint32_t level, std::uint32_t step, bool is_first) {
    insert_levels.push_back(level);
    if (!is_first) inserts[0].push_back(step);
    for (std::size_t l = 1; l < d_.scales.lanes; ++l) inserts[l].push_back(d_.lane(l)[level]);
  }

  const Dictionary& d_;
  std::array<std::uint32_t, 2> edges_;
  bool patches_may_repeat_;
  std::vector<std::uint32_t> entry_of_;  // of each level, or kNone
  std::vector<std::uint32_t> row_;

 public:
  std::vector<std::uint32_t> kinds, slots, moves, known;
  std::vector<std::vector<std::uint32_t>> inserts, patches, deltas;  // per lane
  std::vector<std::uint32_t> insert_levels, patch_levels;
  std::size_t n_repeats = 0;  // patches that put in a known entry
};

// The patches of a lane as they are or against what they replace, whichever is smaller.
StreamPlan plan_patches(const std::vector<std::uint32_t>& values, const std::vector<std::uint32_t>& deltas,
                        std::size_t exception_worth) {
  StreamPlan absolute = plan_stream(values, false, exception_worth);
  StreamPlan relative = plan_stream(deltas, true, exception_worth);
  relative.head.delta = true;
  absolute.may_be_delta = relative.may_be_delta = true;
  return relative.bytes() < absolute.bytes() ? relative : absolute;
}

SegmentPlan plan_emission(const Dictionary& d, const Script& script, std::array<std::uint32_t, 2> edges,
                          Emission&& e) {
  SegmentPlan plan;
  plan.layout = Layout::Events;
  plan.work = e.kinds.size();
  plan.specials = find_specials(d, e.insert_levels);
  // Later entries first appear behind the inserts.
  for (Special s : find_specials(d, e.patch_levels)) {
    s.entry = static_cast<std::uint16_t>(s.entry + e.insert_levels.size());
    plan.specials.push_back(s);
  }
  if (plan.specials.size() > kMaxSpecials) return {};
  append_scales(d, plan.header);
  append_number(d, edges[0], plan.header);
  append_number(d, edges[1], plan.header);
  append_number(d, e.insert_levels.size() - d.shape.slots, plan.header);
  append_number(d, e.patch_levels.size(), plan.header);
  append_number(d, e.known.size(), plan.header);
  append_number(d, e.moves.size(), plan.header);
  append_number(d, plan.specials.size(), plan.header);
  append(plan.header, d.lane(0)[d.cells[0]]);
  const auto add = [&](const std::vector<std::uint32_t>& values, bool allow_zigzag) {
    plan.streams.push_back(plan_stream(values, allow_zigzag, d.exception_worth));
  };
  if (d.coding == Coding::Coded) subtract_in_rows(script.counts, e.slots);
  add(script.counts, false);
  for (const auto* v : {&e.kinds, &e.slots, &e.moves, &e.known}) add(*v, false);
  for (const auto& v : e.inserts) add(v, true);
  for (std::size_t l = d.scales.key_lanes; l < d.scales.lanes; ++l) {
    plan.streams.push_back(plan_patches(e.patches[l], e.deltas[l], d.exception_worth));
  }
  // Moving a vector keeps its elements where the streams point.
  for (auto* v : {&e.kinds, &e.slots, &e.moves, &e.known}) plan.values.push_back(std::move(*v));
  for (auto* lanes : {&e.inserts, &e.patches, &e.deltas}) {
    for (auto& v : *lanes) plan.values.push_back(std::move(v));
  }
  return plan;
}

// Levels by feature 0 in signed order, those that share it by first appearance.
std::vector<std::uint32_t> order_of_levels(const Dictionary& d) {
  std::vector<std::uint64_t> ranks;  // of keys: signed order, then number
  std::vector<std::uint32_t> begin(d.n_keys + 1, 0);
  ranks.reserve(d.n_keys);
  for (std::size_t i = 0; i < d.n_levels; ++i) {
    const std::uint32_t key = d.keys[i];
    if (key == ranks.size()) ranks.push_back(std::uint64_t{d.lane(0)[i] ^ 0x80000000u} << 32 | key);
    ++begin[key];
  }
  std::sort(ranks.begin(), ranks.end());
  std::uint32_t sum = 0;
  for (const std::uint64_t rank : ranks) {
    std::uint32_t& at = begin[static_cast<std::uint32_t>(rank)];
    sum += std::exchange(at, sum);
  }
  std::vector<std::uint32_t> order(d.n_levels);
  for (std::size_t i = 0; i < d.n_levels; ++i) order[begin[d.keys[i]]++] = static_cast<std::uint32_t>(i);
  return order;
}

}  // namespace

SegmentPlan plan_events(const Dictionary& d) {
  Script script(d);
  if (!script.is_complete()) return {};
  const auto edges = choose_edges(d.shape, script.events);
  Emission emission(d, script, edges, true);
  const bool repeats = emission.n_repeats * kFewestEventsPerRepeat > script.events.size();
  SegmentPlan best = plan_emission(d, script, edges, std::move(emission));
  if (repeats) {
    // A patch back to a known level may be cheaper as a patch than as the level's id.
    SegmentPlan plain = plan_emission(d, script, edges, Emission(d, script, edges, false));
    if (best.streams.empty() || (!plain.streams.empty() && plain.bytes(d.shape) <= best.bytes(d.shape)))
      best = std::move(plain);
  }
  best.values.push_back(std::move(script.counts));
  return best;
}

SegmentPlan plan_full(const Dictionary& d) {
  const std::size_t n = d.n_levels, slots = d.shape.slots, steps = slots - 1;
  const std::uint32_t* key = d.lane(0);
  const std::vector<std::uint32_t> level_of = order_of_levels(d);
  std::vector<std::uint32_t> entry_of(n);
  for (std::size_t e = 0; e < n; ++e) entry_of[level_of[e]] = static_cast<std::uint32_t>(e);
  SegmentPlan plan;
  plan.layout = Layout::Full;
  plan.work = n;
  plan.specials = find_specials(d, level_of);
  plan.values.resize(d.scales.lanes + 2);
  for (std::size_t l = 0; l < d.scales.lanes; ++l) {
    auto& lane = plan.values[l];
    for (std::size_t e = l == 0 ? 1 : 0; e < n; ++e) {
      lane.push_back(d.lane(l)[level_of[e]] - (l == 0 ? key[level_of[e - 1]] : 0));
    }
  }
  auto& starts = plan.values[d.scales.lanes];
  auto& deltas = plan.values[d.scales.lanes + 1];
  deltas.resize(d.n_rows * steps);
  std::uint32_t* delta = deltas.data();
  for (std::size_t block = 0; block < d.n_rows; block += simd::kIdBlockRows) {
    const std::size_t end = std::min(d.n_rows, block + simd::kIdBlockRows);
    for (std::size_t r = block; r < end; ++r) starts.push_back(entry_of[d.cells[r * slots]]);
    for (std::size_t j = 1; j < slots; ++j) {
      for (std::size_t r = block; r < end; ++r) {
        const std::uint32_t* cell = d.cells.data() + r * slots + j;
        *delta++ = entry_of[cell[0]] - entry_of[cell[-1]];
      }
    }
  }
  append_scales(d, plan.header);
  append_number(d, n - 1, plan.header);
  append_number(d, plan.specials.size(), plan.header);
  append(plan.header, key[level_of[0]]);
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    plan.streams.push_back(plan_stream(plan.values[i], i > d.scales.lanes, d.exception_worth));
  }
  return plan;
}

}  // namespace cdd::levels
