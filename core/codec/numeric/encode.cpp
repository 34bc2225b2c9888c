#include "core/codec/numeric/encode.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/codec/numeric/choose.h"
#include "core/codec/numeric/format.h"
#include "core/codec/numeric/pack.h"
#include "core/codec/numeric/plan.h"
#include "core/codec/numeric/represent.h"
#include "core/codec/numeric/writer.h"
#include "core/codec/work.h"

namespace cdd::numeric {
namespace {

constexpr double kStreamHeaderBits = 8 * 24;

// An order in which each stream comes after the one it refers to, else that of the items.
std::vector<std::uint32_t> order_of(const std::vector<Choice>& choices) {
  const auto n = static_cast<std::uint32_t>(choices.size());
  std::vector<std::uint32_t> order;
  std::vector<bool> placed(n);
  while (order.size() < n) {
    for (std::uint32_t s = 0; s < n; ++s) {
      const bool free = !choices[s].refers() || placed[choices[s].reference];
      if (placed[s] || !free) continue;
      placed[s] = true;
      order.push_back(s);
    }
  }
  return order;
}

// What the predictor needs of the values before each segment; the values before the first are made up such
// that its first residuals are 0.
template <class T>
void put_starts(const Columns<T>& columns, std::uint32_t s, const Choice& c, Writer& out) {
  const Shape& shape = columns.shape;
  const T* const v = columns.stream(s);
  const T* const before = c.predictor == Predictor::StreamPrevious ? columns.stream(c.reference) : v;
  std::vector<std::uint64_t> starts;
  std::vector<std::uint64_t> differences;
  const auto push = [](std::vector<std::uint64_t>* to, T value) {
    to->push_back(static_cast<std::uint64_t>(widened<std::int64_t>(value)));
  };
  for (std::size_t segment = 0; segment < shape.segments; ++segment) {
    const std::size_t first = shape.first_value(segment);
    if (c.predictor == Predictor::Row) {
      for (std::size_t i = 0; i < shape.width; ++i)
        push(&starts, segment == 0 ? v[i] : v[first - shape.width + i]);
    } else if (c.predictor == Predictor::Second) {
      const T ahead = shape.values() > 1 ? static_cast<T>(v[1] - v[0]) : T{0};
      const T difference = first < 2 ? ahead : static_cast<T>(v[first - 1] - v[first - 2]);
      push(&differences, difference);
      push(&starts, first == 0 ? static_cast<T>(v[0] - ahead) : v[first - 1]);
    } else {
      push(&starts, first == 0 ? v[0] : before[first - 1]);
    }
  }
  out.packed(starts);
  out.packed(differences);
}

template <class T>
void fill_residuals(const Columns<T>& columns, std::uint32_t s, const Choice& c, T* residuals) {
  const std::size_t n = columns.shape.values();
  std::size_t first = 0;
  if (c.predictor == Predictor::Row) first = columns.shape.width;
  if (c.predictor == Predictor::Second) first = 2;
  if (c.predictor == Predictor::Previous || c.predictor == Predictor::StreamPrevious) first = 1;
  std::fill(residuals, residuals + std::min(first, n), T{0});
  if (first < n) columns.residuals(s, c, first, n, residuals + first);
}

void put_representation(const Represented& r, Writer& out) {
  if (r.representation == Representation::Quotient || r.representation == Representation::Product) {
    out.byte(r.exponent);
  }
  if (r.step != 1) {
    out.varint(r.step);
    out.signed_varint(r.offset);
  }
  if (!r.table.empty()) {
    std::vector<std::uint64_t> gaps;
    for (std::size_t i = 1; i < r.table.size(); ++i) gaps.push_back(r.table[i] - r.table[i - 1]);
    out.varint(r.table.size());
    out.signed_varint(r.table.front());
    out.packed(gaps);
  }
}

template <class T>
void put_stream(const Columns<T>& columns, std::uint32_t s, const Choice& c, std::uint32_t reference,
                T* residuals, Writer& out) {
  const Represented& r = columns.represented[s];
  fill_residuals(columns, s, c, residuals);
  const PackedStream<T> packed(columns.shape, residuals);
  unsigned first = static_cast<unsigned>(r.representation);
  if (r.step != 1) first |= kHasStep;
  if (!r.patch_bits.empty()) first |= kHasPatches;
  if (!r.table.empty()) first |= kHasTable;
  out.byte(first);
  out.byte(static_cast<unsigned>(c.predictor) | packed.flags());
  put_representation(r, out);
  if (c.refers()) out.byte(reference);
  if (c.predictor != Predictor::None && c.predictor != Predictor::Stream) put_starts(columns, s, c, out);
  packed.put_header(out);
  if (!r.patch_bits.empty()) {
    out.varint(r.patch_bits.size());
    out.packed(r.patch_positions);
    out.packed(r.patch_bits);
  }
  packed.put_data(out);
}

unsigned segment_log2_of(const Items& items, std::uint32_t streams) noexcept {
  const std::uint32_t width = items.per_row / streams;
  if (width == 1) return bit_width(kBlockValues - 1);
  // Segments of rows that were predicted from the row before start with a whole row, so they are long, but
  // what a segment decodes to should stay in the cache.
  constexpr std::size_t kMostBytes = std::size_t{1} << 18;
  unsigned log2 = 6;
  while ((std::size_t{width} << log2) < kBlockValues) ++log2;
  while (log2 > 0 && ((std::size_t{items.per_row} * items.bytes) << log2) > kMostBytes) --log2;
  return log2;
}

template <class T>
std::size_t put_chunk(const Columns<T>& columns, const std::vector<Choice>& choices, unsigned segment_log2,
                      MutableBytes out) {
  const std::uint32_t n_streams = columns.shape.streams;
  const std::vector<std::uint32_t> order = order_of(choices);
  const bool natural = std::is_sorted(order.begin(), order.end());
  std::vector<std::uint32_t> place(n_streams);
  for (std::uint32_t i = 0; i < n_streams; ++i) place[order[i]] = i;

  Writer writer(out);
  writer.byte(kVersion);
  writer.byte(segment_log2 | (natural ? 0 : kHasOrder));
  writer.varint(n_streams);
  for (std::uint32_t i = 0; !natural && i < n_streams; ++i) writer.byte(order[i]);
  T* const residuals = columns.values + columns.shape.values() * n_streams;
  for (const std::uint32_t s : order) {
    put_stream(columns, s, choices[s], place[choices[s].reference], residuals, writer);
  }
  return writer.fitted() ? writer.size() : 0;
}

// Scratch for the integers of n_rows and one stream more.
template <class T>
T* integers(const Items& items, std::uint32_t n_rows) {
  return reinterpret_cast<T*>(
      scratch<CodecWork2>().get(2 * std::size_t{n_rows} * items.per_row * sizeof(T)).data());
}

// Copies the rows that stand for a chunk.
Runs sample_rows(const Items& items, Bytes rows, std::uint32_t n_rows, std::vector<std::byte>* sample) {
  constexpr std::uint32_t kItems = 6000;  // about
  const std::uint32_t run_rows = items.per_row <= 32 ? 18 : 6;
  Runs runs{std::clamp(kItems / (run_rows * items.per_row), 2u, 8u), run_rows};
  if (n_rows <= std::max(runs.rows(), kItems / items.per_row)) runs = {1, n_rows};
  const std::size_t run_bytes = std::size_t{runs.run_rows} * items.per_row * items.bytes;
  sample->resize(runs.runs * run_bytes);
  for (std::uint32_t r = 0; r < runs.runs; ++r) {
    const std::uint64_t first = std::uint64_t{n_rows - runs.run_rows} * r / std::max(1u, runs.runs - 1);
    std::memcpy(sample->data() + r * run_bytes, rows.data() + first * items.per_row * items.bytes, run_bytes);
  }
  return runs;
}

// How many streams, and how each is predicted.
struct Plan {
  std::uint32_t streams = 1;
  bool whole = false;  // seen all rows
  std::vector<Choice> choices;
};

// The best of several splits by a sample.
template <class T>
Plan plan_split(const Items& items, Bytes rows, std::uint32_t n_rows, std::span<const std::uint32_t> splits) {
  std::vector<std::byte> sample;
  const Runs runs = sample_rows(items, rows, n_rows, &sample);
  Plan best;
  double best_bits = 0;
  for (const std::uint32_t split : splits) {
    const Shape shape(items, runs.rows(), split, kMaxSegmentLog2);
    const auto columns = load_columns(items, Bytes(sample), shape, integers<T>(items, runs.rows()));
    std::vector<Choice> choices = choose(columns, runs);
    double bits = split * kStreamHeaderBits;
    for (const Choice& c : choices) bits += c.bits * n_rows * shape.width;
    constexpr double kMustGain = 0.9;  // more than an estimate errs
    if (best.choices.empty() || bits < best_bits * kMustGain) {
      best = {split, runs.runs == 1, std::move(choices)};
      best_bits = bits;
    }
  }
  return best;
}

// The numbers of streams worth trying, the most likely one first: one for each feature (index of the last
// dimension), one for each item of a row. Where both are possible, a few features of many levels suit short
// chunks; only long ones are worth the sampling that tells.
std::vector<std::uint32_t> splits_of(const RowLayout& layout, const Items& items, std::uint32_t n_rows) {
  constexpr std::uint32_t kLongRows = 1000;
  constexpr std::uint32_t kShortRows = 12;
  constexpr std::uint32_t kFewItems = 16;
  const std::uint32_t item_parts = items.per_row / layout.row_items();  // 2 for complex numbers
  const std::uint32_t features = layout.dims().empty() ? item_parts : layout.dims().back() * item_parts;
  if (features > kMaxStreams) return {1};
  if (features == items.per_row || items.per_row <= kFewItems) {
    return {n_rows < kShortRows ? 1 : items.per_row};  // a few rows do not pay for a header each
  }
  if (items.per_row > kMaxStreams || n_rows < kLongRows) return {features};
  return {features, items.per_row};
}

template <class T>
std::size_t encode_items(const RowLayout& layout, const Items& items, Bytes rows, std::uint32_t n_rows,
                         MutableBytes out) {
  const std::vector<std::uint32_t> splits = splits_of(layout, items, n_rows);
  Plan plan{splits.front(), false, {}};
  if (splits.size() > 1) plan = plan_split<T>(items, rows, n_rows, splits);

  const unsigned segment_log2 = segment_log2_of(items, plan.streams);
  const Shape shape(items, n_rows, plan.streams, segment_log2);
  const auto columns = load_columns(items, rows, shape, integers<T>(items, n_rows));
  // The whole chunk may have other exponents and steps than its sample: choose again.
  if (!plan.whole) plan.choices = choose(columns, {1, n_rows});
  return put_chunk(columns, plan.choices, segment_log2, out);
}

}  // namespace

std::size_t bound(const RowLayout& layout, std::uint32_t n_rows) noexcept {
  const std::size_t raw = std::size_t{layout.row_bytes()} * n_rows;
  return raw + raw / 8 + kMaxStreams * 64 + 1024;
}

std::size_t encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, MutableBytes out) {
  const Items items = items_of(layout);
  const MutableBytes room = out.first(bound(layout, n_rows));
  return items.bytes == 8 ? encode_items<std::uint64_t>(layout, items, rows, n_rows, room)
                          : encode_items<std::uint32_t>(layout, items, rows, n_rows, room);
}

}  // namespace cdd::numeric
