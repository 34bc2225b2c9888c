#include "core/dataset/column.h"

#include <cerrno>
#include <cstring>
#include <numeric>

#include "core/codec/cells.h"
#include "core/simd/fetch.h"
#include "core/threads/for_each.h"

namespace cdd {
namespace {

using ull = unsigned long long;  // for printf

// A read of at least as many bytes is worth waking other threads for.
constexpr std::uint64_t kParallelBytes = std::uint64_t{2} << 20;
// Windows that are cut, or files that are let go of, while the processor fetches what the next one needs.
constexpr std::size_t kAhead = 4;

}  // namespace

Column::Column(std::string name, RowLayout layout, std::shared_ptr<const Extents> extents, std::uint64_t rows,
               std::shared_ptr<Superchunks> superchunks)
    : name_(std::move(name)),
      layout_(std::move(layout)),
      extents_(std::move(extents)),
      rows_(rows),
      superchunks_(std::move(superchunks)) {
  const std::size_t count = extents_->count();
  if (rows_ > (count == 0 ? 0 : extents_->end(count - 1))) {
    fail(ErrorCode::Corrupt, "column %s has %zu extents of %llu rows, not %llu", name_.c_str(), count,
         count == 0 ? 0 : ull{extents_->end(count - 1)}, ull{rows_});
  }
}

inline Superchunks::Use Column::use(std::size_t extent) const {
  Superchunks::Use use = superchunks_->use(extents_->file(extent, *superchunks_));
  if (!extents_->has_seen(extent, use)) check_layout(extent, use);
  return use;
}

void Column::check_layout(std::size_t extent, const Superchunks::Use& use) const {
  const RowLayout& own = use.reader().layout();
  if (!own.is_set()) return;
  if (own != layout_) {
    fail(ErrorCode::Corrupt, "%s has rows of %s, not of %s", use.file()->path.c_str(), to_string(own).c_str(),
         to_string(layout_).c_str());
  }
  extents_->see(extent, use);
}

// Rows before `needed` are there; the file may have grown since it was opened.
inline void Column::need_rows(const Superchunks::Use& use, std::uint64_t needed) {
  if (use.reader().rows() < needed) look_for_rows(use, needed);
}

void Column::look_for_rows(const Superchunks::Use& use, std::uint64_t needed) {
  use.reader().refresh();
  if (use.reader().rows() >= needed) return;
  fail(ErrorCode::Truncated, "%s has %llu rows, the dataset needs %llu", use.file()->path.c_str(),
       ull{use.reader().rows()}, ull{needed});
}

void Column::blame(std::size_t extent, const Error& error) const {
  switch (error.code()) {
    case ErrorCode::Corrupt:
    case ErrorCode::Truncated:
    case ErrorCode::Checksum:
    case ErrorCode::Unsupported:
    case ErrorCode::Limit:
      break;
    case ErrorCode::Io:
      if (error.os_errno() == ENOENT) break;
      throw;  // maybe what Python raised
    default:
      throw;  // the one that is handled, of whatever class
  }
  const bool is_missing = error.code() == ErrorCode::Io;
  const std::string path = extents_->path(extent);
  const std::string what =
      is_missing ? "it is missing; prune() deletes what only expired versions have" : error.what();
  std::string text = "column " + name_ + ", superchunk " + std::to_string((*extents_)[extent].number) + ": ";
  if (what.find(path) == std::string::npos) text += path + ": ";
  text += what;
  if (is_missing) superchunks_->tell_missing(text);
  throw Error(is_missing ? ErrorCode::Corrupt : error.code(), text, error.place());
}

void Column::fill(const Extent& extent, MutableBytes out) const {
  const std::size_t item_bytes = layout_.item_bytes();
  for (std::size_t at = 0; at < out.size(); at += item_bytes) {
    std::memcpy(out.data() + at, extent.salt.data(), item_bytes);
  }
}

// Rows of the column that are within one extent.
inline void Column::read_part(std::size_t extent, RowRange range, MutableBytes out,
                              const Cells* cells) const {
  const RowRange part = extents_->within(extent, range);
  try {
    const Superchunks::Use file = use(extent);
    need_rows(file, part.first + part.count);
    file.reader().read_into(part, out, cells);
  } catch (const Error& error) {
    blame(extent, error);
  }
}

void Column::read_into(RowRange range, MutableBytes out, const Cells* cells) const {
  check_range(range, rows_);
  if (range.count > 0) {
    const std::size_t extent = extents_->with_row(range.first);
    const bool is_within = range.first + range.count <= extents_->end(extent);
    // Then the file's reader looks at the rest of what was given.
    if (is_within && extents_->number(extent) != 0) return read_part(extent, range, out, cells);
  }
  read_parts(range, out, cells);
}

void Column::read_parts(RowRange range, MutableBytes out, const Cells* cells) const {
  cells = checked_cells(layout_, cells);
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  check_windows(1, range.count, row_bytes, out.size());
  if (range.count == 0) return;
  const bool is_large = range.count >= kParallelBytes / layout_.row_bytes() && threads() > 1;
  if (is_large || extents_->is_far()) return read_windows({&range.first, 1}, range.count, out, cells);
  const std::uint64_t end = range.first + range.count;
  std::size_t extent = extents_->with_row(range.first);
  for (std::uint64_t row = range.first; row < end; ++extent) {
    const std::uint64_t count = std::min(end, extents_->end(extent)) - row;
    const auto bytes = static_cast<std::size_t>(count) * row_bytes;
    if (extents_->number(extent) == 0) {
      fill((*extents_)[extent], out.first(bytes));
    } else {
      read_part(extent, {row, count}, out.first(bytes), cells);
    }
    out = out.subspan(bytes);
    row += count;
  }
}

void Column::ask_for_files(RowRange range) const {
  if (!extents_->is_far()) return;
  check_range(range, rows_);
  const std::uint64_t end = range.first + range.count;
  std::size_t extent = range.count > 0 ? extents_->with_row(range.first) : 0;
  for (std::uint64_t row = range.first; row < end; row = extents_->end(extent++)) {
    if (extents_->number(extent) == 0) continue;
    const Superchunks::File& file = extents_->file(extent, *superchunks_);
    if (file.memory && file.reader.load(std::memory_order_relaxed) == nullptr) file.memory->ask({});
  }
}

void Column::cut_into_pieces(RowRange range, const Cells* cells, std::byte* out, std::vector<Piece>& pieces,
                             std::vector<PieceUse>& uses) const {
  check_range(range, rows_);
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  const std::uint64_t end = range.first + range.count;
  std::size_t extent = range.count > 0 ? extents_->with_row(range.first) : 0;
  for (std::uint64_t row = range.first; row < end; ++extent) {
    const std::uint64_t part_end = std::min(end, extents_->end(extent));
    const auto bytes = static_cast<std::size_t>(part_end - row) * row_bytes;
    if (extents_->number(extent) == 0) {
      fill((*extents_)[extent], {out, bytes});
    } else {
      try {
        if (uses.empty() || uses.back().column != this || uses.back().extent != extent) {
          uses.push_back({use(extent), this, extent, pieces.size()});
        }
        const RowRange part = extents_->within(extent, {row, part_end - row});
        need_rows(uses.back().file, part.first + part.count);
        uses.back().file.reader().cut_into_pieces(part, cells, out, pieces);
      } catch (const Error& error) {
        blame(extent, error);
      }
    }
    out += bytes;
    row = part_end;
  }
}

void Column::fetch_ahead(std::uint64_t row) const noexcept {
  if (row < rows_) extents_->fetch_ahead(row);
}

void Column::read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                          const Cells* cells) const {
  const ColumnWindows windows{this, cells, starts, rows, out};
  read_columns({&windows, 1});
}

namespace {

// Numbers of windows by where they start: a file that several want is looked up once, and their pieces are
// all but sorted.
std::vector<std::size_t> in_order(std::span<const std::uint64_t> starts) {
  std::vector<std::size_t> order(starts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!std::is_sorted(starts.begin(), starts.end())) {
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return starts[a] < starts[b]; });
  }
  return order;
}

// Sorts the pieces of a column, the first of which has number `first`. Where each file was come to once, they
// are sorted file by file.
void sort_by_file(std::span<Piece> pieces, std::size_t first, std::span<const Column::PieceUse> uses) {
  for (std::size_t i = 1; i < uses.size(); ++i) {
    if (uses[i].extent <= uses[i - 1].extent) return sort_pieces(pieces);
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const std::size_t begin = uses[i].first_piece - first;
    const std::size_t end = i + 1 < uses.size() ? uses[i + 1].first_piece - first : pieces.size();
    sort_pieces(pieces.subspan(begin, end - begin));
  }
}

}  // namespace

void read_columns(std::span<const ColumnWindows> columns) {
  std::vector<Column::PieceUse> uses;
  std::vector<Piece> pieces;
  std::span<const std::uint64_t> ordered;  // starts that `order` is of
  std::vector<std::size_t> order;
  std::vector<Cells> parts(columns.size());  // stay where they are while pieces point to them
  std::uint64_t raw_bytes = 0;
  for (const ColumnWindows& windows : columns) {
    for (const std::uint64_t start : windows.starts) windows.column->ask_for_files({start, windows.rows});
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnWindows& windows = columns[i];
    const RowLayout& layout = windows.column->layout();
    const Cells* cells = checked_cells(layout, windows.cells);
    if (cells != nullptr) cells = &(parts[i] = *cells);
    const std::size_t row_bytes = cells_bytes(layout, cells);
    raw_bytes += check_windows(windows.starts.size(), windows.rows, row_bytes, windows.out.size()) *
                 layout.row_bytes();
    if (windows.rows == 0) continue;
    const std::size_t first = pieces.size(), first_use = uses.size();
    pieces.reserve(first + 2 * windows.starts.size());
    if (windows.starts.data() != ordered.data() || windows.starts.size() != ordered.size()) {
      ordered = windows.starts;
      order = in_order(ordered);
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      const std::size_t w = order[at];
      if (at + kAhead < order.size()) windows.column->fetch_ahead(windows.starts[order[at + kAhead]]);
      std::byte* const out = windows.out.data() + w * windows.rows * row_bytes;
      windows.column->cut_into_pieces({windows.starts[w], windows.rows}, cells, out, pieces, uses);
    }
    sort_by_file(std::span(pieces).subspan(first), first, std::span(uses).subspan(first_use));
  }
  if (pieces.empty()) return;
  read_sorted_pieces(pieces, raw_bytes, [&](const Piece& piece, const Error& error) {
    for (const Column::PieceUse& use : uses) {
      if (&use.file.reader() == piece.reader) use.column->blame(use.extent, error);
    }
  });
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (i + kAhead < uses.size()) cdd::fetch_ahead(uses[i + kAhead].file.file(), 1);
    uses[i].file.end();
  }
}

std::uint64_t Column::rows_there() const {
  const std::size_t count = extents_->count();
  if (count == 0 || (*extents_)[count - 1].rows != Extent::kOpen) return rows_;
  std::uint64_t in_file = 0;
  try {
    const Superchunks::Use file = use(count - 1);
    file.reader().refresh();
    in_file = file.reader().rows();
  } catch (const Error& error) {
    blame(count - 1, error);
  }
  const std::uint64_t first = (*extents_)[count - 1].first;
  return extents_->begin(count - 1) + (in_file > first ? in_file - first : 0);
}

// The last extent whose first item stands before the place of `value`, else the first one.
std::size_t Column::extent_for(const std::byte* value, Side side) const {
  std::size_t low = 0, high = extents_->count();
  while (high > 0 && extents_->begin(high - 1) >= rows_) --high;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    std::uint64_t item = (*extents_)[middle].first_item;
    if ((*extents_)[middle].has_items == 0) {
      read_into({extents_->begin(middle), 1}, {as_bytes(&item), layout_.item_bytes()});
    }
    (is_before(layout_.dtype(), as_bytes(&item), value, side) ? low : high) = middle;
  }
  return low;
}

// Places within one extent.
void Column::search_extent(std::size_t extent, Bytes values, Side side,
                           std::span<std::uint64_t> places) const {
  const Extent& own = (*extents_)[extent];
  if (own.number == 0) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::byte* const value = values.data() + i * layout_.item_bytes();
      places[i] = is_before(layout_.dtype(), own.salt.data(), value, side) ? own.rows : 0;
    }
    return;
  }
  const RowRange part{own.first, end(extent) - extents_->begin(extent)};
  try {
    const Superchunks::Use file = use(extent);
    need_rows(file, part.first + part.count);
    file.reader().search(values, side, places, part);
  } catch (const Error& error) {
    blame(extent, error);
  }
  for (std::uint64_t& place : places) place -= own.first;
}

void Column::search(Bytes values, Side side, std::span<std::uint64_t> places) const {
  const std::size_t item_bytes = layout_.item_bytes();
  if (layout_.dims().size() != 0 || values.size() != places.size() * item_bytes) {
    fail(ErrorCode::InvalidArgument, "column %s has rows of %s: %zu values of them are not %zu bytes",
         name_.c_str(), to_string(layout_).c_str(), places.size(), values.size());
  }
  if (rows_ == 0) return std::fill(places.begin(), places.end(), std::uint64_t{0});
  std::vector<std::size_t> extents(places.size()), order(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    extents[i] = extent_for(values.data() + i * item_bytes, side);
  }
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less = [&](std::size_t a, std::size_t b) { return extents[a] < extents[b]; };
  if (!std::is_sorted(order.begin(), order.end(), less)) std::stable_sort(order.begin(), order.end(), less);
  std::vector<std::byte> wanted;
  std::vector<std::uint64_t> found;
  for (std::size_t at = 0, next = 0; at < order.size(); at = next) {
    const std::size_t extent = extents[order[at]];
    const std::uint64_t begin = extents_->begin(extent);
    wanted.clear();
    for (next = at; next < order.size() && extents[order[next]] == extent; ++next) {
      const std::byte* const value = values.data() + order[next] * item_bytes;
      wanted.insert(wanted.end(), value, value + item_bytes);
    }
    found.assign(next - at, 0);
    search_extent(extent, wanted, side, found);
    for (std::size_t i = at; i < next; ++i) places[order[i]] = begin + found[i - at];
  }
}

}  // namespace cdd
