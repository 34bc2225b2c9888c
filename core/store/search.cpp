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

template <class Item>
void Reader::search_items(Bytes values, Side side, std::span<std::uint64_t> places, RowRange range) const {
  const auto value_of = [&](std::size_t i) {
    Item value;
    std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
    return value;
  };
  const std::uint64_t end = range.first + range.count;
  const std::uint64_t first_chunk = index_.chunk_of_row(range.first);
  const std::uint64_t last_chunk = index_.chunk_of_row(end - 1);
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less = [&](std::size_t a, std::size_t b) { return is_less(value_of(a), value_of(b)); };
  if (!std::is_sorted(order.begin(), order.end(), less)) std::sort(order.begin(), order.end(), less);

  const std::size_t tasks = std::min<std::size_t>(places.size() / kTaskValues + 1, threads() * 8u);
  for_each(tasks, [&](std::size_t task) {
    OpenChunk open;
    Bytes items;  // of `open`, decoded
    bool is_open = false;
    const std::size_t stop = places.size() * (task + 1) / tasks;
    for (std::size_t at = places.size() * task / tasks; at < stop; ++at) {
      const Item value = value_of(order[at]);
      std::uint64_t low = first_chunk, high = last_chunk + 1;  // the chunk before `high` has the place
      if (is_open && is_before(first_item<Item>(open.number), value, side)) low = open.number;
      if (low == open.number && is_open && low < last_chunk &&
          !is_before(first_item<Item>(low + 1), value, side)) {
        high = low + 1;
      }
      try {
        narrow(value, side, &low, &high);
      } catch (const Error&) {
        // of a chunk that is damaged: maybe no other look needs it
      }
      while (high - low > 1) {
        const std::uint64_t middle = low + (high - low) / 2;
        (is_before(first_item<Item>(middle), value, side) ? low : high) = middle;
      }
      if (!is_open || open.number != low) {
        open = open_chunk(low);
        const std::size_t bytes = static_cast<std::size_t>(open.rows.count) * sizeof(Item);
        const MutableBytes out = scratch<SearchedItems>().get(bytes);
        decode(open, {0, open.rows.count}, nullptr, out.data());
        items = {out.data(), bytes};
        is_open = true;
      }
      std::uint64_t begin = 0, count = open.rows.count;
      while (count > 0) {
        const std::uint64_t half = count / 2;
        if (is_before(load<Item>(items.data() + (begin + half) * sizeof(Item)), value, side)) {
          begin += half + 1;
          count -= half + 1;
        } else {
          count = half;
        }
      }
      if (begin == 0 && open.rows.first > range.first) need_chunk_before(open);
      places[order[at]] = std::clamp(open.rows.first + begin, range.first, end);
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
