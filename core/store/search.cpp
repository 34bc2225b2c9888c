// Looking for values among rows that do not decrease: first items of chunks are bisected, one chunk is
// decoded. Values of one call are looked up in their order, so that neighbours share that chunk.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "core/store/reader.h"
#include "core/threads/for_each.h"

namespace cdd {
namespace {

struct SearchedItems {};

// Values of one call that are worth a task of their own.
constexpr std::size_t kTaskValues = 4096;

// NumPy's order: NaN comes last.
template <class Item>
bool is_less(Item a, Item b) {
  if constexpr (std::is_floating_point_v<Item>) return a < b || (std::isnan(b) && !std::isnan(a));
  return a < b;
}

// Whether an item stands before the place of `value`.
template <class Item>
bool is_before(Item item, Item value, Side side) {
  return side == Side::Left ? is_less(item, value) : !is_less(value, item);
}

// visit(Item{}) for the C++ type of a dtype's items.
template <class Visit>
auto as_item(DType dtype, Visit&& visit) {
  switch (dtype.kind()) {
    case Kind::Bool:
    case Kind::UInt8:
      return visit(std::uint8_t{});
    case Kind::Int8:
      return visit(std::int8_t{});
    case Kind::UInt16:
      return visit(std::uint16_t{});
    case Kind::Int16:
      return visit(std::int16_t{});
    case Kind::UInt32:
      return visit(std::uint32_t{});
    case Kind::Int32:
      return visit(std::int32_t{});
    case Kind::UInt64:
      return visit(std::uint64_t{});
    case Kind::Int64:
    case Kind::Datetime64:
    case Kind::Timedelta64:
      return visit(std::int64_t{});
    case Kind::Float32:
      return visit(float{});
    case Kind::Float64:
      return visit(double{});
    default:
      fail(ErrorCode::InvalidArgument, "items of dtype code %u have no order to search by", dtype.code());
  }
}

}  // namespace

bool is_before(DType dtype, const std::byte* item, const std::byte* value, Side side) {
  return as_item(dtype,
                 [&]<class Item>(Item) { return is_before(load<Item>(item), load<Item>(value), side); });
}

template <class Item>
Item Reader::first_item(std::uint64_t chunk) const {
  std::uint64_t bits = 0;
  Item item{};
  if (!first_items_.find(chunk, &bits)) {
    const OpenChunk open = open_chunk(chunk);
    decode(open, {0, 1}, nullptr, as_bytes(&item));
    std::memcpy(&bits, &item, sizeof item);
    first_items_.remember(chunk, bits);
  }
  std::memcpy(&item, &bits, sizeof item);
  return item;
}

// Times grow nearly evenly, so the chunk that has the place of `value` is guessed from the ends, and looked
// for around that with growing steps: each look reads a chunk. What is left between `low` and `high` is
// bisected.
template <class Item>
void Reader::narrow(Item value, Side side, std::uint64_t* low, std::uint64_t* high) const {
  constexpr std::uint64_t kFewChunks = 32;
  constexpr std::uint64_t kMostStep = 256;
  if (*high - *low < kFewChunks) return;
  const Item first = first_item<Item>(*low), last = first_item<Item>(*high - 1);
  const double part = (static_cast<double>(value) - static_cast<double>(first)) /
                      (static_cast<double>(last) - static_cast<double>(first));
  if (!(part >= 0 && part <= 1)) return;
  const auto guess = *low + static_cast<std::uint64_t>(part * static_cast<double>(*high - 1 - *low));
  std::uint64_t at = std::clamp(guess, *low + 1, *high - 1);
  const bool is_up = is_before(first_item<Item>(at), value, side);
  (is_up ? *low : *high) = at;
  for (std::uint64_t step = 1; step <= kMostStep && *high - *low > step; step *= 4) {
    at = is_up ? *low + step : *high - step;
    const bool is_low = is_before(first_item<Item>(at), value, side);
    (is_low ? *low : *high) = at;
    if (is_low != is_up) return;
  }
}

// The rows before this chunk's could have the place that was looked for, and no slot leads to them.
void Reader::need_chunk_before(const OpenChunk& open) const {
  static_cast<void>(open_chunk(open.number - 1));  // says what is wrong with it
  fail(ErrorCode::Checksum, "the rows before row %llu cannot be found",
       static_cast<unsigned long long>(open.rows.first));
}

// Looks values up in one chunk: among the rows where a value is expected, or, where it is not there or many
// are looked up, among all of them.
template <class Item>
class Reader::SearchedChunk {
 public:
  explicit SearchedChunk(const Reader& reader) : reader_(reader) {}

  const OpenChunk& get() const noexcept { return open_; }
  void open(std::uint64_t chunk) {
    open_ = reader_.open_chunk(chunk);
    part_ = {};
  }

  // The number of rows that stand before the place of `value`.
  std::uint64_t rows_before(Item value, Side side, bool is_alone) {
    if (is_alone && !has_place(value, side)) decode(expected(value));
    if (!has_place(value, side)) decode({0, open_.rows.count});
    std::uint64_t begin = 0, count = part_.count;
    while (count > 0) {
      const std::uint64_t half = count / 2;
      if (is_before(item(begin + half), value, side)) {
        begin += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return part_.first + begin;
  }

 private:
  static constexpr std::uint64_t kNear = 128;  // rows on each side: half a block of NUMERIC

  Item item(std::uint64_t i) const noexcept { return load<Item>(items_.data() + i * sizeof(Item)); }

  // Whether the decoded rows are those around the place, not just all before or behind it.
  bool has_place(Item value, Side side) const noexcept {
    if (part_.count == 0) return false;
    const bool is_first = part_.first == 0, is_last = part_.first + part_.count == open_.rows.count;
    return (is_first || is_before(item(0), value, side)) &&
           (is_last || !is_before(item(part_.count - 1), value, side));
  }

  // The rows around where a value stands if the chunk's grow evenly; all where that is not known.
  RowRange expected(Item value) const {
    const RowRange all{0, open_.rows.count};
    std::uint64_t begins = 0, ends = 0;
    if (open_.rows.count <= 4 * kNear || !reader_.first_items_.find(open_.number, &begins) ||
        !reader_.first_items_.find(open_.number + 1, &ends)) {
      return all;
    }
    const auto first = static_cast<double>(load<Item>(as_bytes(&begins)));
    const auto part =
        (static_cast<double>(value) - first) / (static_cast<double>(load<Item>(as_bytes(&ends))) - first);
    if (!(part >= 0 && part <= 1)) return all;
    const auto row = static_cast<std::uint64_t>(part * static_cast<double>(all.count));
    const std::uint64_t from = row > kNear ? row - kNear : 0;
    return {from, std::min(row + kNear, all.count) - from};
  }

  void decode(RowRange part) {
    const std::size_t bytes = static_cast<std::size_t>(part.count) * sizeof(Item);
    const MutableBytes out = scratch<SearchedItems>().get(bytes);
    part_ = {};
    reader_.decode(open_, part, nullptr, out.data());
    items_ = {out.data(), bytes};
    part_ = part;
  }

  const Reader& reader_;
  OpenChunk open_;
  RowRange part_;  // of the chunk: rows that are decoded
  Bytes items_;    // of them
};

// The chunk that has the place of `value`: the one before the first of [first, end) whose first item is not
// before it.
template <class Item>
std::uint64_t Reader::chunk_for(Item value, Side side, std::uint64_t first, std::uint64_t end) const {
  try {
    narrow(value, side, &first, &end);
  } catch (const Error&) {
    // of a chunk that is damaged: maybe no other look needs it
  }
  while (end - first > 1) {
    const std::uint64_t middle = first + (end - first) / 2;
    (is_before(first_item<Item>(middle), value, side) ? first : end) = middle;
  }
  return first;
}

template <class Item>
void Reader::search_items(Bytes values, Side side, std::span<std::uint64_t> places, RowRange range) const {
  const auto value_of = [&](std::size_t i) { return load<Item>(values.data() + i * sizeof(Item)); };
  const std::uint64_t end = range.first + range.count;
  const std::uint64_t first_chunk = index_.chunk_of_row(range.first);
  const std::uint64_t last_chunk = index_.chunk_of_row(end - 1);
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less = [&](std::size_t a, std::size_t b) { return is_less(value_of(a), value_of(b)); };
  if (!std::is_sorted(order.begin(), order.end(), less)) std::sort(order.begin(), order.end(), less);

  // Whether the first item of the chunk behind `chunk` is before the place of `value`.
  const auto is_behind = [&](std::uint64_t chunk, Item value) {
    return chunk < last_chunk && is_before(first_item<Item>(chunk + 1), value, side);
  };
  const std::size_t tasks = std::min<std::size_t>(places.size() / kTaskValues + 1, threads() * 8u);
  for_each(tasks, [&](std::size_t task) {
    SearchedChunk<Item> chunk(*this);
    std::uint64_t number = first_chunk;
    bool is_alone = true;  // no later value has its place in this chunk
    const std::size_t stop = places.size() * (task + 1) / tasks;
    for (std::size_t at = places.size() * task / tasks; at < stop; ++at) {
      const Item value = value_of(order[at]);
      if (is_alone) {
        number = chunk_for(value, side, number, last_chunk + 1);
        chunk.open(number);
      }
      is_alone = at + 1 == stop || is_behind(number, value_of(order[at + 1]));
      const std::uint64_t before = chunk.rows_before(value, side, is_alone);
      const std::uint64_t first = chunk.get().rows.first;
      if (before == 0 && first > range.first) need_chunk_before(chunk.get());
      places[order[at]] = std::clamp(first + before, range.first, end);
    }
  });
}

void Reader::search(Bytes values, Side side, std::span<std::uint64_t> places, RowRange range) const {
  const RowLayout& layout = this->layout();
  if (!layout.is_set() || layout.row_items() != 1 || layout.dims().size() != 0) {
    fail(ErrorCode::InvalidArgument, "only rows of one item are searched, these are %s",
         to_string(layout).c_str());
  }
  if (values.size() != places.size() * layout.item_bytes()) {
    fail(ErrorCode::InvalidArgument, "%zu values of %zu bytes are not %zu bytes", places.size(),
         layout.item_bytes(), values.size());
  }
  check_range(range, rows());
  if (range.count == 0) return std::fill(places.begin(), places.end(), range.first);
  as_item(layout.dtype(), [&]<class Item>(Item) { search_items<Item>(values, side, places, range); });
}

}  // namespace cdd
