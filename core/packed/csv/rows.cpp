#include "core/packed/csv/rows.h"

#include <algorithm>
#include <cstring>

#include "core/base/text.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;
using simd::CsvCell;

constexpr std::size_t kPieceBytes = 128 << 10;  // text and cells of a piece stay in a core's cache
constexpr std::size_t kKernelRoom = 128;        // cells and rows that are left to a kernel
constexpr CsvCell kEmpty{nullptr, 0, 0, 0};

}  // namespace

CsvRows::CsvRows(const CsvOptions& options, Bytes text, bool last, CsvProgress& progress)
    : options_(options),
      text_(text),
      last_(last),
      progress_(progress),
      window_(kPieceBytes),
      machine_only_(options.has_comment || options.blank != Blank::Skip) {
  const std::size_t piece = std::min(kPieceBytes, text.size());
  cells_.resize(piece / 8 + 192);
  ends_.resize(piece / 16 + 192);
}

bool CsvRows::next(CsvBlock* block) {
  while (at_ < text_.size()) {
    const std::size_t before = at_;
    if (next_piece(block)) return true;
    if (at_ == before) return false;  // an unfinished row, or nothing but blank lines is left
  }
  return false;
}

// Rows of one window of the text, which grows until it holds a row. False where it gave none.
bool CsvRows::next_piece(CsvBlock* block) {
  for (;;) {
    const std::size_t bytes = std::min(window_, text_.size() - at_);
    const bool to_the_end = bytes == text_.size() - at_;
    const bool piece_is_last = to_the_end && last_;
    const Bytes piece = text_.subspan(at_, bytes);
    if (arena_bytes_ < bytes) {
      arena_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      arena_bytes_ = bytes;
    }
    arena_at_ = arena_.get();
    n_cells_ = n_rows_ = piece_used_ = 0;
    read_rows(piece, piece_is_last);
    if (n_rows_ > 0 || piece_used_ == bytes || (to_the_end && !last_)) break;
    if (to_the_end) return false;
    window_ = std::max(window_ * 2, bytes * 2);
    check_row_bytes(options_, bytes, progress_.lines, progress_.text_offset + at_);
  }
  if (n_rows_ == 0) {
    at_ += piece_used_;
    return false;
  }
  unescape();
  if (options_.utf8) check_utf8(text_.subspan(at_, piece_used_));
  const std::uint64_t read = n_rows_;
  block->begin = at_;
  fit_columns(ends_[0]);
  progress_.lines += read;
  at_ += piece_used_;
  block->cells = fitted_.empty() ? cells_.data() : fitted_.data();
  block->ends = ends_.data();
  block->rows = n_rows_;
  block->columns =
      options_.columns.empty() ? progress_.columns : static_cast<std::uint32_t>(options_.columns.size());
  block->first_row = progress_.rows;
  block->end = at_;
  progress_.rows += n_rows_;
  return n_rows_ > 0;
}

void CsvRows::fail_columns(std::size_t columns) const {
  fail_at({Place::Kind::Row, progress_.lines, Place::kNone, progress_.text_offset + at_}, ErrorCode::Limit,
          "row %llu at 0x%llx has %zu columns or more, max_columns allows %u",
          static_cast<ull>(progress_.lines), static_cast<ull>(progress_.text_offset + at_), columns,
          options_.max_columns);
}

// Text that is no UTF-8 is wrong in one of the cells, or in what is no row.
void CsvRows::check_utf8(Bytes used) const {
  const std::size_t at = utf8_error(used);
  if (at == used.size()) return;
  for (std::size_t r = 0, i = 0; r < n_rows_; ++r) {
    for (std::size_t begin = i; i < ends_[r]; ++i) {
      const Bytes bytes(cells_[i].data, cells_[i].bytes);
      const std::size_t error = bytes.empty() ? 0 : utf8_error(bytes);
      if (error == bytes.size()) continue;
      const std::uint64_t row = progress_.lines + r;
      fail_at({Place::Kind::Row, row, i - begin, progress_.text_offset + at_ + at}, ErrorCode::Corrupt,
              "row %llu, field %zu at 0x%llx: byte %zu of the field, 0x%02x, is no UTF-8 (encoding=\"bytes\" "
              "takes it)",
              static_cast<ull>(row), i - begin, static_cast<ull>(progress_.text_offset + at_ + at), error,
              static_cast<unsigned>(bytes[error]));
    }
  }
}

// Rows of the piece until no whole one is left, or there is no room.
void CsvRows::read_rows(Bytes piece, bool piece_is_last) {
  while (piece_used_ < piece.size()) {
    const Next next = machine_only_ ? Next::Machine : read_by_kernel(piece, piece_is_last);
    if (next == Next::Stop) return;
    if (next == Next::Machine && !read_by_machine(piece, piece_is_last)) return;
  }
}

CsvRows::Next CsvRows::read_by_kernel(Bytes piece, bool piece_is_last) {
  const simd::CsvCells room{cells_.data() + n_cells_, cells_.size() - n_cells_, ends_.data() + n_rows_,
                            ends_.size() - n_rows_};
  const Bytes rest = piece.subspan(piece_used_);
  const simd::CsvTokens tokens =
      simd::tokenise_csv(options_.dialect, rest.data(), rest.size(), piece_is_last, room);
  if (tokens.rows > 0) {
    const auto base = static_cast<std::uint32_t>(n_cells_);
    n_cells_ += ends_[n_rows_ + tokens.rows - 1];
    if (base > 0) {
      for (std::size_t r = 0; r < tokens.rows; ++r) ends_[n_rows_ + r] += base;
    }
    n_rows_ += tokens.rows;
  }
  piece_used_ += tokens.consumed;
  if (tokens.bad || (piece_is_last && tokens.rows == 0 && !tokens.full && piece_used_ < piece.size())) {
    return Next::Machine;  // a quote out of place or one that is never closed
  }
  if (tokens.full && n_rows_ == 0) {
    if (cells_.size() > options_.max_columns + 128) fail_columns(cells_.size() - 64);
    cells_.resize(cells_.size() * 2);  // a row of more cells than the largest so far
    return Next::Kernel;
  }
  // Without a row more text is needed; without room these go first.
  const bool has_room = cells_.size() - n_cells_ > 64 && ends_.size() - n_rows_ > 64;
  return tokens.rows > 0 && has_room ? Next::Kernel : Next::Stop;
}

// One row. False where more text is needed, or none is left.
bool CsvRows::read_by_machine(Bytes piece, bool piece_is_last) {
  std::byte* const arena = arena_at_;
  const Machine read = read_csv_row(options_, piece, piece_used_, piece_is_last, arena_at_,
                                    progress_.lines + n_rows_, progress_.text_offset + at_, &row_);
  if (read == Machine::Unfinished) {
    arena_at_ = arena;
    return false;
  }
  piece_used_ = row_.end;
  if (read == Machine::End) return false;
  const std::size_t cells = n_cells_ + row_.cells.size();
  if (cells_.size() < cells + kKernelRoom) cells_.resize(cells + kKernelRoom);
  if (ends_.size() < n_rows_ + 1 + kKernelRoom) ends_.resize(n_rows_ + 1 + kKernelRoom);
  std::copy(row_.cells.begin(), row_.cells.end(), cells_.begin() + static_cast<std::ptrdiff_t>(n_cells_));
  n_cells_ = cells;
  ends_[n_rows_++] = static_cast<std::uint32_t>(n_cells_);
  return true;
}

// Inner quotes lose their doubles. What a piece's cells need of the arena is less than the piece.
void CsvRows::unescape() {
  const std::byte quote{options_.dialect.quote};
  for (std::size_t i = 0; i < n_cells_; ++i) {
    CsvCell& cell = cells_[i];
    if (!cell.doubled) continue;
    std::byte* const begin = arena_at_;
    for (std::size_t k = 0; k < cell.bytes; ++k) {
      *arena_at_++ = cell.data[k];
      k += cell.data[k] == quote;
    }
    cell = {begin, static_cast<std::uint32_t>(arena_at_ - begin), 1, 0};
  }
}

// Every row as wide as the first, by what the options say of those that are not; then the columns wanted.
void CsvRows::fit_columns(std::size_t first_row_cells) {
  if (progress_.columns == 0) {
    if (first_row_cells > options_.max_columns) fail_columns(first_row_cells);
    progress_.columns = static_cast<std::uint32_t>(first_row_cells);
    for (const std::uint32_t column : options_.columns) {
      if (column >= progress_.columns) {
        fail(ErrorCode::OutOfRange, "column %u is asked for, rows have %u", column, progress_.columns);
      }
    }
  }
  const std::uint32_t columns = progress_.columns;
  bool even = n_cells_ == n_rows_ * columns;
  for (std::size_t r = 0; even && r < n_rows_; ++r) even = ends_[r] == (r + 1) * columns;
  fitted_.clear();
  if (even && options_.columns.empty()) return;
  std::size_t kept = 0;
  for (std::size_t r = 0, begin = 0; r < n_rows_; ++r) {
    const std::size_t end = ends_[r];
    const std::size_t fields = end - begin;
    const CsvCell* const row = cells_.data() + begin;
    begin = end;
    if (fields != columns && options_.ragged == Ragged::Skip) {
      ++progress_.skipped;
      continue;
    }
    if (fields > columns || (fields < columns && options_.ragged == Ragged::Error)) {
      const std::uint64_t number = progress_.lines + r;
      CsvOptions every_line = options_;
      every_line.ragged = Ragged::Pad;
      const std::uint64_t offset = progress_.text_offset + at_ +
                                   find_field(every_line, text_.subspan(at_, piece_used_), r, columns, 0);
      fail_at({Place::Kind::Row, number, std::min<std::uint64_t>(fields, columns), offset},
              ErrorCode::Corrupt, "row %llu at 0x%llx has %zu fields, the first row %u",
              static_cast<ull>(number), static_cast<ull>(offset), fields, columns);
    }
    if (options_.columns.empty()) {
      fitted_.insert(fitted_.end(), row, row + fields);
      fitted_.insert(fitted_.end(), columns - fields, kEmpty);
    } else {
      for (const std::uint32_t c : options_.columns) fitted_.push_back(c < fields ? row[c] : kEmpty);
    }
    ends_[kept++] = static_cast<std::uint32_t>(fitted_.size());
  }
  n_rows_ = kept;
}

}  // namespace cdd::packed
