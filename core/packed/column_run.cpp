#include "core/packed/column_run.h"

#include <algorithm>
#include <cstring>

#include "core/base/text.h"
#include "core/packed/convert.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

constexpr std::size_t kPieceBytes = 64 << 10;  // text and ends stay in a core's cache

class RunReading {
 public:
  RunReading(const CsvOptions& options, const std::vector<SettledType>& settled, std::uint64_t lines,
             ColumnRun& run, Columns& result)
      : options_(options), settled_(settled), lines_(lines), run_(run), result_(result) {}

  void read() {
    CsvProgress progress = run_.progress;
    const std::size_t begin = run_.by_ends ? read_by_ends(progress) : 0;
    if (begin < run_.text.size()) read_by_cells(begin, progress);
  }

 private:
  std::size_t read_by_ends(CsvProgress& progress);
  void read_by_cells(std::size_t begin, CsvProgress& progress);
  void read_fields(Bytes piece, const simd::CsvFields& fields, const std::uint32_t* ends, std::uint64_t row);
  void add_text(Column& column, RunColumn& to, const CellRun& run, std::uint64_t row);
  void make_room(RunColumn& to, std::size_t bytes, std::size_t done);
  template <class Offset>
  void not_of_type(std::uint32_t column, Bytes field, std::uint64_t row, const Offset& offset_of);
  std::uint32_t columns() const noexcept { return static_cast<std::uint32_t>(settled_.size()); }
  void check_rows(std::uint64_t first, std::size_t rows, std::uint32_t columns) const {
    if (first + rows > result_.rows || columns != this->columns()) {
      fail(ErrorCode::Corrupt, "the text changed while it was read");
    }
  }

  const CsvOptions& options_;
  const std::vector<SettledType>& settled_;
  const std::uint64_t lines_;
  ColumnRun& run_;
  Columns& result_;
  std::vector<std::uint32_t> left_;  // rows that kernels leave
};

// One piece after another: where its fields end, then column by column. Returns where it found a row that is
// not like the others, or the end.
std::size_t RunReading::read_by_ends(CsvProgress& progress) {
  std::vector<std::uint32_t> memory;
  std::size_t at = 0;
  std::size_t piece_bytes = kPieceBytes;
  while (at < run_.text.size()) {
    const Bytes piece = run_.text.subspan(at, std::min(piece_bytes, run_.text.size() - at));
    const bool last = piece.size() == run_.text.size() - at;
    if (memory.size() < piece.size() + 80) memory.resize(piece.size() + 80);
    std::uint32_t* const ends = memory.data() + 1;
    const simd::CsvFields fields =
        simd::find_csv_fields(options_.dialect, piece.data(), piece.size(), last, columns(), ends);
    if (!fields.regular) return at;
    if (fields.rows == 0 && !last) {
      piece_bytes *= 2;  // a row of more bytes than that
      continue;
    }
    check_rows(progress.rows, fields.rows, columns());
    read_fields(run_.text.subspan(at), fields, ends, progress.rows);
    progress.rows += fields.rows;
    progress.lines += fields.rows;
    at = last ? run_.text.size() : at + fields.consumed;
  }
  return at;
}

void RunReading::read_fields(Bytes piece, const simd::CsvFields& fields, const std::uint32_t* ends,
                             std::uint64_t row) {
  const auto at = static_cast<std::size_t>(piece.data() - run_.text.data());
  // Numbers are read from 16 bytes before their end: not where there are none before the first row.
  if (left_.size() < fields.rows) left_.resize(fields.rows);
  std::size_t careful = 0;
  while (at == 0 && careful < fields.rows && ends[careful * columns()] < 16) ++careful;
  for (std::uint32_t c = 0; c < columns(); ++c) {
    const SettledType& settled = settled_[c];
    RunColumn& to = run_.columns[c];
    if (!settled.wanted || to.failed) continue;
    Column& column = result_.columns[c];
    simd::CsvColumn from{piece.data(), run_.readable - at, ends + c, fields.rows, columns(),
                         c == 0,       fields.quotes};
    if (settled.type == Type::Text) {
      make_room(to, fields.consumed, at);
      to.text_bytes += simd::gather_csv_column(options_.dialect, from, to.text.data() + to.text_bytes,
                                               static_cast<std::int64_t>(to.text_bytes),
                                               column.values.data() + 8 * (row + 1));
      continue;
    }
    std::size_t done = 0;
    for (const std::size_t upto : {careful, fields.rows}) {
      from.rows = upto - done;
      from.ends = ends + c + done * columns();
      const FieldRun run{from, done >= careful, options_.dialect.quote, left_.data()};
      std::byte* const items = column.values.data() + (row + done) * item_bytes(settled.type);
      const std::size_t read = convert(settled.type, settled.exact, run, items, row + done, to.nulls);
      done += read;
      if (read < from.rows) break;
    }
    if (done == fields.rows) continue;
    from.ends = ends + c + done * columns();
    const std::string_view field = FieldRun{from, false, options_.dialect.quote, nullptr}.field(0);
    const std::byte* const begin = as_bytes(static_cast<const void*>(field.data()));
    not_of_type(c, {begin, field.size()}, lines_ + row + done, [&] {
      return run_.progress.text_offset + static_cast<std::uint64_t>(begin - run_.text.data());
    });
  }
}

// Text for `bytes` more; of the run `done` bytes were read, so that one can say how much will be needed.
void RunReading::make_room(RunColumn& to, std::size_t bytes, std::size_t done) {
  const std::size_t needed = to.text_bytes + bytes + simd::kCsvSlack;
  if (needed <= to.text.size()) return;
  const double share = done == 0 ? 1.0 : static_cast<double>(to.text_bytes) / static_cast<double>(done);
  const double guess = share * 1.1 * static_cast<double>(run_.text.size());
  const std::size_t wanted =
      std::min(static_cast<std::size_t>(guess), run_.text.size()) + bytes + simd::kCsvSlack;
  to.text.grow(done == 0 ? needed : std::max({needed, to.text.size() * 2, wanted}));
}

void RunReading::add_text(Column& column, RunColumn& to, const CellRun& run, std::uint64_t row) {
  std::byte* offsets = column.values.data() + 8 * (row + 1);
  const simd::CsvCell* cell = run.cells;
  std::size_t bytes = 0;
  for (std::size_t r = 0; r < run.rows; ++r, cell += run.stride) bytes += cell->bytes;
  if (to.text_bytes + bytes > to.text.size())
    to.text.grow(std::max(to.text_bytes + bytes, to.text.size() * 2));
  cell = run.cells;
  for (std::size_t r = 0; r < run.rows; ++r, cell += run.stride) {
    if (cell->bytes != 0) std::memcpy(to.text.data() + to.text_bytes, cell->data, cell->bytes);
    to.text_bytes += cell->bytes;
    store<std::int64_t>(offsets + 8 * r, static_cast<std::int64_t>(to.text_bytes));
  }
}

// A field that is not of its column's type. Throws where the type was given.
template <class Offset>
void RunReading::not_of_type(std::uint32_t column, Bytes field, std::uint64_t row, const Offset& offset_of) {
  if (settled_[column].found) {
    run_.columns[column].failed = true;
    run_.columns[column].accepted = accepted_types(field);
    return;
  }
  const std::uint32_t number = options_.columns.empty() ? column : options_.columns[column];
  const std::uint64_t offset = offset_of();
  fail_at({Place::Kind::Row, row, number, offset}, ErrorCode::Corrupt,
          "row %llu, field %u at 0x%llx: \"%.*s\"%s is no %s", static_cast<ull>(row), number,
          static_cast<ull>(offset), static_cast<int>(std::min<std::size_t>(field.size(), 40)),
          reinterpret_cast<const char*>(field.data()), field.size() > 40 ? "..." : "",
          type_name(settled_[column].type));
}

void RunReading::read_by_cells(std::size_t begin, CsvProgress& progress) {
  progress.text_offset += begin;
  CsvRows rows(options_, run_.text.subspan(begin), true, progress);
  for (CsvBlock block; rows.next(&block);) {
    check_rows(block.first_row, block.rows, block.columns);
    for (std::uint32_t c = 0; c < block.columns; ++c) {
      const SettledType& settled = settled_[c];
      RunColumn& to = run_.columns[c];
      if (!settled.wanted || to.failed) continue;
      Column& column = result_.columns[c];
      const CellRun cells{block.cells + c, block.rows, block.columns};
      if (settled.type == Type::Text) {
        add_text(column, to, cells, block.first_row);
        continue;
      }
      std::byte* const items = column.values.data() + block.first_row * item_bytes(settled.type);
      const std::size_t done = convert(settled.type, settled.exact, cells, items, block.first_row, to.nulls);
      if (done == block.rows) continue;
      const simd::CsvCell& cell = block.cells[done * block.columns + c];
      const Bytes text = run_.text.subspan(begin + block.begin, block.end - block.begin);
      const std::uint32_t field = options_.columns.empty() ? c : options_.columns[c];
      not_of_type(c, {cell.data, cell.bytes}, lines_ + block.first_row + done, [&] {
        return progress.text_offset + block.begin + find_field(options_, text, done, progress.columns, field);
      });
    }
  }
}

}  // namespace

void read_run(const CsvOptions& options, const std::vector<SettledType>& settled, std::uint64_t lines,
              ColumnRun& run, Columns* result) {
  RunReading(options, settled, lines, run, *result).read();
}

}  // namespace cdd::packed
