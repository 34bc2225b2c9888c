#include "core/codec/levels/levels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/codec/cells.h"
#include "core/codec/levels/segment.h"

namespace cdd {
namespace levels {

void take_scales(Cursor& in, const Shape& shape, Scales& scales) {
  const std::byte* bytes = in.take(shape.features);
  scales.lanes = 0;
  for (std::uint32_t f = 0; f < shape.features; ++f) {
    const auto scale = static_cast<std::uint8_t>(bytes[f]);
    if (scale != simd::LevelsColumns::kBits && (scale > kMaxScale || !shape.floats)) {
      fail(ErrorCode::Corrupt, "levels: feature %u has scale %d", f, scale);
    }
    scales.of[f] = scale;
    scales.lanes += shape.lanes_of(scale);
  }
  scales.key_lanes = shape.lanes_of(scales.of[0]);
}

void apply_specials(const Shape& shape, const std::byte* specials, std::size_t n, std::size_t n_entries,
                    std::byte* entries) {
  const std::size_t stride = simd::levels_entry_stride(shape.entry_bytes());
  for (const std::byte* p = specials; n > 0; --n, p += special_bytes(shape)) {
    const std::size_t entry = load<std::uint16_t>(p), feature = load<std::uint8_t>(p + 2);
    if (entry >= n_entries || feature >= shape.features)
      fail(ErrorCode::Corrupt, "levels: no entry %zu", entry);
    std::memcpy(entries + entry * stride + feature * shape.item_bytes, p + 3, shape.item_bytes);
  }
}

void sum_in_rows(const simd::LevelsKernels& kernels, const std::uint32_t* counts, std::size_t n_counts,
                 std::uint32_t* values, std::size_t n, std::uint32_t* sums) {
  // Rows have few values, and no processor predicts how many: so all are summed at once, and again when the
  // first of each row has lost the sum of the row before.
  sums[0] = 0;
  std::copy_n(values, n, sums + 1);
  kernels.prefix_sum(sums + 1, n);
  std::uint32_t before = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < n_counts && at < n; ++i) {
    values[at] -= sums[at] - before;
    before = sums[at];
    at += counts[i];
  }
  kernels.prefix_sum(values, n);
}

void subtract_in_rows(const std::vector<std::uint32_t>& counts, std::vector<std::uint32_t>& values) {
  std::size_t at = 0;
  for (const std::uint32_t count : counts) {
    std::uint32_t before = 0;
    for (const std::size_t end = at + count; at < end; ++at) values[at] -= std::exchange(before, values[at]);
  }
}

void code_streams(SegmentPlan& plan) {
  for (StreamPlan& s : plan.streams) s.coded = std::make_shared<CodedPlan>(plan_coded(s));
}

std::size_t SegmentPlan::bytes(const Shape& shape) const noexcept {
  std::size_t total = 1 + header.size() + specials.size() * special_bytes(shape), bits = 0;
  for (const StreamPlan& s : streams) {
    if (s.coded != nullptr) {
      bits += s.coded->bits;
    } else {
      total += s.bytes();
    }
  }
  return total + (bits == 0 ? 0 : bits / 8 + kLanesBytes);
}

}  // namespace levels

namespace {

using levels::Coding;
using levels::Dictionary;
using levels::Layout;
using levels::SegmentPlan;
using levels::Shape;

// The first byte of a payload: one segment, or several of equally many rows with a table of their ends.
enum class Form : std::uint8_t { One = 1, Many = 2, OneCoded = 3, ManyCoded = 4 };

// A segment is read from its first row on, and begins with a row that is not told by events. What a window
// skips grows with the rows times the events (or entries) a row; where shorter segments save little time they
// would still cost those first rows. Hence the limit on rows * rows * work of a row, found by measurement.
constexpr std::size_t kSegmentRows = 256;
constexpr double kSegmentSpan = 50000;
constexpr std::size_t kProbeRows = 64;
// A segment that was planned is kept where the best length is not so many times longer or shorter.
constexpr double kNearLength = 1.4;

// An exception of a packed stream takes a step of its own to decode; it must save so many bytes.
constexpr std::size_t kExceptionWorth = 2;

// With fewer events than this the full layout is not worth a try.
constexpr std::size_t kManyCellsPerEvent = 4;
// Where a quarter of the levels change, windows of the full layout take a third less time than those of a
// ladder. It may be so much larger.
constexpr double kFullWorth = 1.4;

Shape shape_of(const RowLayout& layout) noexcept {
  const Kind kind = layout.dtype().kind();
  return {layout.dims()[0], layout.dims()[1], static_cast<std::uint32_t>(layout.item_bytes()),
          kind == Kind::Float32 || kind == Kind::Float64};
}

bool accepts(const RowLayout& layout) noexcept {
  if (!layout.is_set() || layout.dims().size() != 2) return false;
  const std::size_t item = layout.item_bytes();
  return (item == 4 || item == 8) && layout.dims()[0] <= levels::kMaxSlots &&
         layout.dims()[1] <= levels::kMaxFeatures;
}

std::size_t bound(const RowLayout& layout, std::uint32_t n_rows) noexcept {
  return std::size_t{layout.row_bytes()} * n_rows + 16;
}

std::byte* write_segment(const SegmentPlan& plan, const Shape& shape, std::byte* out) {
  *out++ = static_cast<std::byte>(plan.layout);
  out = std::copy(plan.header.begin(), plan.header.end(), out);
  std::vector<std::byte> specials(plan.specials.size() * special_bytes(shape));
  std::byte* at = specials.data();
  for (const levels::Special& s : plan.specials) {
    store<std::uint16_t>(at, s.entry);
    store<std::uint8_t>(at + 2, s.feature);
    std::memcpy(at + 3, &s.bits, shape.item_bytes);
    at += special_bytes(shape);
  }
  if (plan.streams.front().coded != nullptr) {
    std::vector<const levels::CodedPlan*> coded;
    for (const levels::StreamPlan& s : plan.streams) coded.push_back(s.coded.get());
    return write_coded(coded, specials, out);
  }
  for (const levels::StreamPlan& s : plan.streams) out = write_stream_head(s, out);
  for (const levels::StreamPlan& s : plan.streams) out = write_stream_body(s, out);
  return std::copy(specials.begin(), specials.end(), out);
}

// A plan without streams is none.
SegmentPlan smaller_of(const Shape& shape, SegmentPlan a, SegmentPlan b) {
  if (a.streams.empty()) return b;
  return !b.streams.empty() && b.bytes(shape) < a.bytes(shape) ? std::move(b) : std::move(a);
}

// Cells of all rows but the first that are not as those above them.
std::size_t count_moved(const Dictionary& d) {
  std::size_t moved = 0;
  const std::size_t words = d.changed_words();
  for (std::size_t i = words; i < d.changed.size(); ++i)
    moved += static_cast<std::size_t>(std::popcount(d.changed[i]));
  return moved;
}

// About the events of a ladder of these rows: one for each level that is not in the row before, and another
// for each price that is not, since one goes for it.
std::size_t guess_events(const Dictionary& d) {
  const std::size_t slots = d.shape.slots;
  std::vector<std::uint32_t> seen(d.n_levels, 0), seen_keys(d.n_keys, 0);  // row behind the last that has it
  std::size_t events = 0;
  for (std::size_t r = 0; r < d.n_rows; ++r) {
    for (std::size_t j = 0; j < slots; ++j) {
      const std::uint32_t level = d.cells[r * slots + j];
      events += std::exchange(seen[level], static_cast<std::uint32_t>(r + 1)) < r;
      events += std::exchange(seen_keys[d.keys[level]], static_cast<std::uint32_t>(r + 1)) < r;
    }
  }
  return events;
}

// About the bytes that a ladder or events of these rows take: what the full layout, too, stores of entries,
// for each event where it is, and for all the rest a third more, as in recorded books.
std::size_t guess_without_ids(const Dictionary& d, const SegmentPlan& full, std::size_t events) {
  std::size_t bytes = events * static_cast<std::size_t>(std::bit_width(d.n_keys)) / 8;
  for (std::size_t l = d.scales.key_lanes; l < d.scales.lanes; ++l) bytes += full.streams[l].body_bytes();
  return bytes + bytes / 3;
}

SegmentPlan plan_segment(const Shape& shape, Bytes rows, std::size_t n_rows, bool smallest, Coding coding) {
  const Dictionary dictionary =
      levels::make_dictionary(shape, rows, n_rows, smallest ? 0 : kExceptionWorth, coding);
  const double full_worth = smallest ? 1 : kFullWorth;
  const auto is_worth = [&](const SegmentPlan& full, std::size_t others) {
    return static_cast<double>(full.bytes(shape)) < full_worth * static_cast<double>(others);
  };
  const std::size_t n_cells = dictionary.cells.size();
  SegmentPlan full;
  if (!smallest && 2 * count_moved(dictionary) * kManyCellsPerEvent > n_cells) {
    const std::size_t events = guess_events(dictionary);
    if (events * kManyCellsPerEvent > n_cells) {
      full = levels::plan_full(dictionary);
      if (is_worth(full, guess_without_ids(dictionary, full, events))) return full;
    }
  }
  bool is_sorted = false;
  SegmentPlan plan = levels::plan_ladder(dictionary, &is_sorted);
  // A ladder is the quicker to read, events may be the smaller. Sorted rows that differ too much for a ladder
  // do so for events.
  if (!is_sorted || (smallest && !plan.streams.empty()))
    plan = smaller_of(shape, std::move(plan), levels::plan_events(dictionary));
  // Where few levels change, ids for all of them cannot be the smaller.
  if (!plan.streams.empty() && plan.work * kManyCellsPerEvent < n_cells) return plan;
  if (full.streams.empty()) full = levels::plan_full(dictionary);
  return plan.streams.empty() || is_worth(full, plan.bytes(shape)) ? std::move(full) : std::move(plan);
}

// Rows of segments as long as they may be, all but the last equal.
std::size_t even_segment_rows(std::size_t n_rows, std::size_t most) {
  const std::size_t n_segments = (n_rows + most - 1) / most;
  return (n_rows + n_segments - 1) / n_segments;
}

// The most rows of a segment when `rows` of them are `work`.
std::size_t longest_segment(const Shape& shape, std::size_t rows, std::size_t work) {
  const auto most = std::clamp<std::size_t>(levels::kMaxCells / shape.slots, 1, kSegmentRows);
  if (work == 0) return most;
  const double rows_per_work = static_cast<double>(rows) / static_cast<double>(work);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::sqrt(kSegmentSpan * rows_per_work)), 1, most);
}

// How many levels of the first n_rows rows are not those of the row before: about the work of these rows, or
// more, where levels move.
std::size_t count_moved(const Shape& shape, Bytes rows, std::size_t n_rows) {
  std::size_t moved = 0;
  with_known_bytes(shape.entry_bytes(), [&](auto known) {
    const std::size_t bytes = known == 0 ? shape.entry_bytes() : known;
    const std::byte* const end = rows.data() + n_rows * shape.row_bytes();
    for (const std::byte* p = rows.data() + shape.row_bytes(); p < end; p += bytes)
      moved += std::memcmp(p, p - shape.row_bytes(), bytes) != 0;
  });
  return moved;
}

// Rows to plan first: those of a segment if that is known without, else so many as tell.
std::size_t first_rows(const Shape& shape, Bytes rows, std::size_t n_rows) {
  const std::size_t most = even_segment_rows(n_rows, longest_segment(shape, 0, 0));
  if (most <= kProbeRows) return most;
  const std::size_t work = count_moved(shape, rows, kProbeRows);
  return most <= longest_segment(shape, kProbeRows, work) ? most : kProbeRows;
}

// Rows of each segment, `planned` of which turned out to be `work`.
std::size_t choose_segment_rows(const Shape& shape, std::size_t n_rows, std::size_t planned,
                                std::size_t work) {
  const std::size_t longest = longest_segment(shape, planned, work);
  const auto best = static_cast<double>(std::min(longest, n_rows)), have = static_cast<double>(planned);
  if (have < best * kNearLength && best < have * kNearLength) return planned;
  return even_segment_rows(n_rows, longest);
}

std::size_t encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext& context,
                   MutableBytes out) {
  const Shape shape = shape_of(layout);
  const Coding coding = context.coded ? Coding::Coded : Coding::Packed;
  const auto plan_rows = [&](std::size_t first, std::size_t count) {
    const Bytes some = rows.subspan(first * shape.row_bytes(), count * shape.row_bytes());
    SegmentPlan plan = plan_segment(shape, some, count, context.smallest, coding);
    if (coding == Coding::Coded) code_streams(plan);
    return plan;
  };
  const std::size_t longest = std::max<std::size_t>(levels::kMaxCells / shape.slots, 1);
  // The first rows tell how much work a row is; often they are all there are.
  const std::size_t probe_rows =
      context.smallest ? even_segment_rows(n_rows, longest) : first_rows(shape, rows, n_rows);
  SegmentPlan plan = plan_rows(0, probe_rows);
  const std::size_t segment_rows =
      context.smallest ? probe_rows : choose_segment_rows(shape, n_rows, probe_rows, plan.work);
  if (segment_rows != probe_rows) plan = plan_rows(0, segment_rows);
  const std::size_t n_segments = (n_rows + segment_rows - 1) / segment_rows;

  std::byte* p = out.data();
  const Form one = context.coded ? Form::OneCoded : Form::One;
  const Form many = context.coded ? Form::ManyCoded : Form::Many;
  *p++ = static_cast<std::byte>(n_segments == 1 ? one : many);
  std::byte* ends = p + 4;
  if (n_segments > 1) {
    if (rows.size() < 5 + 4 * n_segments) return 0;
    store<std::uint32_t>(p, static_cast<std::uint32_t>(segment_rows));
    p = ends + 4 * n_segments;
  }
  const std::byte* segments = p;
  for (std::size_t row = 0; row < n_rows; row += segment_rows) {
    if (row != 0) plan = plan_rows(row, std::min(segment_rows, n_rows - row));
    // Not worth it: no smaller than the rows themselves.
    if (static_cast<std::size_t>(p - out.data()) + plan.bytes(shape) > rows.size()) return 0;
    p = write_segment(plan, shape, p);
    if (n_segments == 1) break;
    store<std::uint32_t>(ends, static_cast<std::uint32_t>(p - segments));
    ends += 4;
  }
  return static_cast<std::size_t>(p - out.data());
}

void decode_segment(const Shape& shape, std::size_t n_rows, levels::Cursor segment, Coding coding,
                    RowRange range, const Cells* cells, std::byte* out) {
  if (n_rows * shape.slots > levels::kMaxCells)
    fail(ErrorCode::Corrupt, "levels: a segment of %zu rows", n_rows);
  switch (const auto layout = segment.take<std::uint8_t>(); static_cast<Layout>(layout)) {
    case Layout::Events:
      return decode_events(shape, n_rows, segment, coding, range, cells, out);
    case Layout::Full:
      return decode_full(shape, n_rows, segment, coding, range, cells, out);
    case Layout::Ladder:
      return decode_ladder(shape, n_rows, segment, coding, range, cells, out);
    default:
      fail(ErrorCode::Unsupported, "levels: layout %d", layout);
  }
}

void decode(const RowLayout& layout, std::uint32_t n_rows, Bytes payload, RowRange range, const Cells* cells,
            std::byte* out) {
  if (range.count == 0) return;
  const Shape shape = shape_of(layout);
  levels::Cursor in{payload.data(), payload.data() + payload.size()};
  const auto form_byte = in.take<std::uint8_t>();
  const auto form = static_cast<Form>(form_byte);
  const Coding coding = form == Form::OneCoded || form == Form::ManyCoded ? Coding::Coded : Coding::Packed;
  if (form == Form::One || form == Form::OneCoded)
    return decode_segment(shape, n_rows, in, coding, range, cells, out);
  if (form != Form::Many && form != Form::ManyCoded)
    fail(ErrorCode::Unsupported, "levels: form %d", form_byte);
  const auto segment_rows = in.take<std::uint32_t>();
  if (segment_rows == 0) fail(ErrorCode::Corrupt, "levels: segments of no rows");
  const std::byte* ends = in.take(4 * ((std::size_t{n_rows} + segment_rows - 1) / segment_rows));
  const std::uint64_t end = range.first + range.count;
  const std::size_t made_bytes = cells_bytes(layout, cells);
  for (std::uint64_t s = range.first / segment_rows; s * segment_rows < end; ++s) {
    const std::size_t begin_byte = s == 0 ? 0 : load<std::uint32_t>(ends + 4 * (s - 1));
    const std::size_t end_byte = load<std::uint32_t>(ends + 4 * s);
    if (begin_byte > end_byte || end_byte > static_cast<std::size_t>(in.end - in.next)) {
      fail(ErrorCode::Corrupt, "levels: a segment's end");
    }
    const std::uint64_t row = s * segment_rows;
    const std::uint64_t first = std::max(range.first, row) - row;
    const std::uint64_t last = std::min<std::uint64_t>(end - row, segment_rows);
    const auto rows = static_cast<std::size_t>(std::min<std::uint64_t>(segment_rows, n_rows - row));
    const levels::Cursor segment{in.next + begin_byte, in.next + end_byte};
    decode_segment(shape, rows, segment, coding, {first, last - first}, cells, out);
    out += (last - first) * made_bytes;
  }
}

void decode_rows_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                      RowRange range, std::byte* out) {
  decode(layout, n_rows, payload, range, nullptr, out);
}

void decode_cells_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                       RowRange range, const Cells& cells, std::byte* out) {
  decode(layout, n_rows, payload, range, &cells, out);
}

}  // namespace

constexpr StepCost kCost{0.035, 0.23};
constexpr NamedScheme kLevelsSchemes[] = {{"levels", Compressor::None, kCost},
                                          {"levels+zstd", Compressor::Zstd, kCost}};

constinit const Codec kLevelsCodec{
    .id = CodecId::Levels,
    .name = "levels",
    .schemes = kLevelsSchemes,
    .takes = "(levels, features) with items of 4 or 8 bytes, at most (4096, 64)",
    .in_auto = true,
    .is_checked = true,
    .accepts = accepts,
    .bound = bound,
    .encode = encode,
    .decode_rows_into = decode_rows_into,
    .decode_cells_into = decode_cells_into};

}  // namespace cdd
