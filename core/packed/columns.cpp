#include "core/packed/columns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/text.h"
#include "core/packed/convert.h"
#include "core/packed/csv_plan.h"
#include "core/threads/for_each.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

// What one part of the text gives of one column beside its items.
struct PartColumn {
  std::vector<std::byte> text;
  std::vector<std::uint64_t> nulls;
  TypeMask accepted = kAllTypes;  // by the rows that were not of the column's type
  bool failed = false;
};

struct Part {
  Bytes text;
  CsvProgress progress;  // rows: of this text before the part
  std::vector<PartColumn> columns;
};

struct Settled {
  Type type = Type::Text;
  bool found = false;  // not given
  bool exact = false;
  TypeMask mask = kAllTypes;
  bool wanted = true;  // to be read in this turn
};

Type first_of(TypeMask mask) noexcept { return static_cast<Type>(std::countr_zero(mask)); }

// The end of the last whole row, by the state that the text ends in; kCsvNone where the kernels cannot say.
std::size_t whole_rows_end(const CsvOptions& options, Bytes text) {
  if (!options.plain()) return simd::kCsvNone;
  const simd::CsvScan scan = simd::scan_csv(options.dialect, text.data(), text.size(), {});
  if (scan.first_bad != simd::kCsvNone) return simd::kCsvNone;
  bool inside = scan.after.inside;
  for (std::size_t at = text.size(); at > 0; --at) {
    const auto byte = static_cast<std::uint8_t>(text[at - 1]);
    if (!inside && (byte == '\n' || byte == '\r')) return at;
    inside = inside != (options.dialect.quotes && byte == options.dialect.quote);
  }
  return 0;
}

class Reading {
 public:
  Reading(const CsvOptions& options, const std::vector<WantedType>& types, const std::vector<TypeMask>& masks,
          ColumnsState& state)
      : options_(options), given_(types), masks_(masks), state_(state) {}

  Columns read(Bytes text, bool last);

 private:
  bool find_parts(Bytes text, bool last);
  void settle_first_types();
  void allocate();
  void read_part(Part& part);
  void read_block(Part& part, const CsvBlock& block, std::uint64_t row);
  void add_text(Column& column, PartColumn& to, const CellRun& run, std::uint64_t row);
  [[noreturn]] void refuse(const Part& part, const CsvBlock& block, std::size_t row,
                           std::uint32_t column) const;
  bool widen();
  void finish();
  std::uint32_t columns() const noexcept {
    return options_.columns.empty() ? state_.progress.columns
                                    : static_cast<std::uint32_t>(options_.columns.size());
  }

  const CsvOptions& options_;
  const std::vector<WantedType>& given_;
  const std::vector<TypeMask>& masks_;
  ColumnsState& state_;
  std::vector<Part> parts_;
  std::vector<Settled> settled_;
  Columns result_;
};

// Parts of whole rows, and how many rows each has. False where there are none.
bool Reading::find_parts(Bytes text, bool last) {
  const std::size_t end = last ? text.size() : whole_rows_end(options_, text);
  if (end != simd::kCsvNone && options_.plain()) {
    const Bytes whole = text.first(end);
    const std::optional<CsvPlan> plan = plan_csv(options_, whole);
    const bool fits = plan && (state_.progress.columns == 0 || plan->columns == 0 ||
                               plan->columns == state_.progress.columns);
    if (fits) {
      if (plan->columns != 0) state_.progress.columns = plan->columns;
      for (std::size_t p = 0; p + 1 < plan->cuts.size(); ++p) {
        const CsvCut& cut = plan->cuts[p];
        Part& part = parts_.emplace_back();
        part.text = whole.subspan(cut.at, plan->cuts[p + 1].at - cut.at);
        part.progress.rows = cut.before.rows;
        part.progress.lines = state_.progress.lines + cut.before.rows;
        part.progress.text_offset = state_.progress.text_offset + cut.at;
        part.progress.columns = state_.progress.columns;
      }
      result_.rows = plan->cuts.back().before.rows;
      result_.consumed = end;
      return result_.rows > 0;
    }
  }
  // One row after another, once to count them; errors of the rows show here.
  CsvProgress counted = state_.progress;
  counted.rows = 0;
  CsvRows rows(options_, text, last, counted);
  for (CsvBlock block; rows.next(&block);) {
  }
  Part& part = parts_.emplace_back();
  part.text = text.first(rows.consumed());
  part.progress = state_.progress;
  part.progress.rows = 0;
  result_.rows = counted.rows;
  result_.consumed = rows.consumed();
  state_.progress.columns = counted.columns;
  return result_.rows > 0;
}

// By the first rows; what the others are decides.
void Reading::settle_first_types() {
  if (!given_.empty() && given_.size() != columns()) {
    fail(ErrorCode::InvalidArgument, "%zu types are given for %u columns", given_.size(), columns());
  }
  settled_.resize(columns());
  CsvProgress progress = parts_.front().progress;
  const Bytes text = parts_.front().text;
  CsvRows rows(options_, text.first(std::min<std::size_t>(text.size(), 64 << 10)), text.size() <= 64 << 10,
               progress);
  CsvBlock block;
  const bool has_rows = rows.next(&block);
  for (std::uint32_t c = 0; c < columns(); ++c) {
    Settled& settled = settled_[c];
    const WantedType given = given_.empty() ? WantedType{} : given_[c];
    settled.type = given.type;
    settled.exact = given.exact;
    if (settled.type != Type::Auto) continue;
    settled.found = settled.exact = true;
    if (c < masks_.size()) settled.mask = (masks_[c] | mask_of(Type::Text)) & kAllTypes;
    const std::size_t sample = has_rows ? std::min<std::size_t>(block.rows, 100) : 0;
    for (std::size_t r = 0; r < sample; ++r) {
      const simd::CsvCell& cell = block.cells[r * block.columns + c];
      settled.mask &= accepted_types({cell.data, cell.bytes});
    }
    settled.type = first_of(settled.mask);
  }
}

void Reading::allocate() {
  if (result_.rows > (std::size_t(-1) >> 4))
    fail(ErrorCode::Limit, "%llu rows are more than memory", static_cast<ull>(result_.rows));
  const auto rows = static_cast<std::size_t>(result_.rows);
  for (std::uint32_t c = 0; c < columns(); ++c) {
    if (!settled_[c].wanted) continue;
    Column& column = result_.columns[c];
    column = {};
    column.type = settled_[c].type;
    const bool is_text = column.type == Type::Text;
    column.values = Pages(is_text ? (rows + 1) * 8 : rows * item_bytes(column.type));
    for (Part& part : parts_) part.columns[c] = {};
  }
}

void Reading::add_text(Column& column, PartColumn& to, const CellRun& run, std::uint64_t row) {
  std::byte* offsets = column.values.data() + 8 * (row + 1);
  const simd::CsvCell* cell = run.cells;
  std::size_t bytes = 0;
  for (std::size_t r = 0; r < run.rows; ++r, cell += run.stride) bytes += cell->bytes;
  std::size_t at = to.text.size();
  to.text.resize(at + bytes);
  cell = run.cells;
  for (std::size_t r = 0; r < run.rows; ++r, cell += run.stride) {
    if (cell->bytes != 0) std::memcpy(to.text.data() + at, cell->data, cell->bytes);
    at += cell->bytes;
    store<std::int64_t>(offsets + 8 * r, static_cast<std::int64_t>(at));
  }
}

void Reading::refuse(const Part& part, const CsvBlock& block, std::size_t row, std::uint32_t column) const {
  const simd::CsvCell& cell = block.cells[row * block.columns + column];
  const std::uint64_t number = state_.progress.lines + block.first_row + row;
  const std::uint32_t field = options_.columns.empty() ? column : options_.columns[column];
  std::uint64_t offset = part.progress.text_offset + block.begin;
  if (cell.data >= part.text.data() && cell.data < part.text.data() + part.text.size()) {
    offset = part.progress.text_offset + static_cast<std::uint64_t>(cell.data - part.text.data());
  }
  const int shown = static_cast<int>(std::min<std::uint32_t>(cell.bytes, 40));
  fail_at({Place::Kind::Row, number, field, offset}, ErrorCode::Corrupt,
          "row %llu, field %u at 0x%llx: \"%.*s\"%s is no %s", static_cast<ull>(number), field,
          static_cast<ull>(offset), shown, reinterpret_cast<const char*>(cell.data),
          cell.bytes > 40 ? "..." : "", type_name(settled_[column].type));
}

void Reading::read_block(Part& part, const CsvBlock& block, std::uint64_t row) {
  for (std::uint32_t c = 0; c < block.columns; ++c) {
    const Settled& settled = settled_[c];
    PartColumn& to = part.columns[c];
    if (!settled.wanted || to.failed) continue;
    Column& column = result_.columns[c];
    const CellRun run{block.cells + c, block.rows, block.columns};
    if (settled.type == Type::Text) {
      add_text(column, to, run, row);
      continue;
    }
    std::byte* const items = column.values.data() + row * item_bytes(settled.type);
    const std::size_t done = convert(settled.type, settled.exact, run, items, row, to.nulls);
    if (done == block.rows) continue;
    if (!settled.found) refuse(part, block, done, c);
    const simd::CsvCell& cell = block.cells[done * block.columns + c];
    to.failed = true;
    to.accepted = accepted_types({cell.data, cell.bytes});
  }
}

void Reading::read_part(Part& part) {
  CsvProgress progress = part.progress;
  CsvRows rows(options_, part.text, true, progress);
  for (CsvBlock block; rows.next(&block);) {
    if (block.first_row + block.rows > result_.rows || block.columns != columns()) {
      fail(ErrorCode::Corrupt, "the text changed while it was read");
    }
    read_block(part, block, block.first_row);
  }
}

// Types of the columns in which some row was not of the type. False where all are settled.
bool Reading::widen() {
  bool again = false;
  for (std::uint32_t c = 0; c < columns(); ++c) {
    Settled& settled = settled_[c];
    bool failed = false;
    for (const Part& part : parts_) {
      if (!settled.wanted || !part.columns[c].failed) continue;
      failed = true;
      settled.mask &= part.columns[c].accepted;
    }
    settled.wanted = failed;
    if (!failed) continue;
    settled.mask &= ~mask_of(settled.type);
    settled.type = first_of(settled.mask);
    again = true;
  }
  return again;
}

// Parts' texts one after the other, and nulls as a byte a row.
void Reading::finish() {
  const auto rows = static_cast<std::size_t>(result_.rows);
  for_each(columns(), [&](std::size_t c) {
    Column& column = result_.columns[c];
    for (const Part& part : parts_) column.nulls += part.columns[c].nulls.size();
    column.mask = settled_[c].mask;
    if (column.nulls == rows && settled_[c].found && column.type != Type::Text) {  // nothing says what it is
      column = {};
      column.mask = settled_[c].mask;
      column.values = Pages((rows + 1) * 8);
      std::memset(column.values.data(), 0, (rows + 1) * 8);
      return;
    }
    if (column.nulls > 0) {
      column.valid = Pages(rows);
      std::memset(column.valid.data(), 1, rows);
      for (const Part& part : parts_) {
        for (const std::uint64_t row : part.columns[c].nulls) column.valid.data()[row] = std::byte{0};
      }
    }
    if (column.type != Type::Text) return;
    for (const Part& part : parts_) column.text_bytes += part.columns[c].text.size();
    column.text = Pages(static_cast<std::size_t>(column.text_bytes));
    std::byte* const offsets = column.values.data();
    store<std::int64_t>(offsets, 0);
    std::int64_t base = 0;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const std::vector<std::byte>& text = parts_[p].columns[c].text;
      if (!text.empty()) std::memcpy(column.text.data() + base, text.data(), text.size());
      const std::uint64_t end = p + 1 < parts_.size() ? parts_[p + 1].progress.rows : result_.rows;
      for (std::uint64_t r = parts_[p].progress.rows; base != 0 && r < end; ++r) {
        store<std::int64_t>(offsets + 8 * (r + 1), load<std::int64_t>(offsets + 8 * (r + 1)) + base);
      }
      base += static_cast<std::int64_t>(text.size());
    }
  });
}

Columns Reading::read(Bytes text, bool last) {
  std::size_t begun = 0;
  if (!state_.begun) {
    begun = begin_csv(options_, text, last, state_, &result_.names);
    if (begun == simd::kCsvNone) return std::move(result_);
  }
  if (find_parts(text.subspan(begun), last)) {
    settle_first_types();
  } else {
    settled_.resize(columns());
    for (std::uint32_t c = 0; c < columns(); ++c) {
      const bool given = c < given_.size() && given_[c].type != Type::Auto;
      settled_[c].type = given ? given_[c].type : Type::Text;
    }
  }
  result_.columns.resize(columns());
  for (Part& part : parts_) part.columns.resize(columns());
  if (result_.rows > 0) {
    do {
      allocate();
      for_each(parts_.size(), [&](std::size_t p) { read_part(parts_[p]); });
    } while (widen());
    finish();
  } else {
    allocate();
    for (std::uint32_t c = 0; c < columns(); ++c) {
      if (settled_[c].type == Type::Text) store<std::int64_t>(result_.columns[c].values.data(), 0);
    }
  }
  result_.consumed += begun;
  state_.progress.text_offset += result_.consumed - begun;
  state_.progress.lines += result_.rows;
  state_.progress.rows += result_.rows;
  return std::move(result_);
}

}  // namespace

std::size_t begin_csv(const CsvOptions& options, Bytes text, bool last, ColumnsState& state,
                      std::vector<std::string>* names) {
  const std::size_t begin = csv_begin(options, text, last);
  if (begin == simd::kCsvNone) return begin;
  const auto begun = [&](std::size_t at) {
    state.begun = true;
    state.progress.text_offset += at;
    return at;
  };
  if (!state.header) return begun(begin);
  std::vector<std::byte> memory(text.size() - begin);
  std::byte* arena = memory.data();
  MachineRow row;
  const Machine read = read_csv_row(options, text, begin, last, arena, 0, state.progress.text_offset, &row);
  if (read == Machine::Unfinished) return simd::kCsvNone;
  if (read == Machine::End) return last ? begun(text.size()) : simd::kCsvNone;
  if (row.cells.size() > options.max_columns) {
    fail(ErrorCode::Limit, "a row of %zu columns, max_columns allows %u", row.cells.size(),
         options.max_columns);
  }
  state.progress.columns = static_cast<std::uint32_t>(row.cells.size());
  state.progress.lines = 1;
  const auto add = [&](std::size_t column) {
    if (column >= row.cells.size()) {
      fail(ErrorCode::OutOfRange, "column %zu is asked for, rows have %zu", column, row.cells.size());
    }
    const Bytes name(row.cells[column].data, row.cells[column].bytes);
    if (options.utf8 && utf8_error(name) != name.size()) {
      fail_at({Place::Kind::Row, 0, column, Place::kNone}, ErrorCode::Corrupt, "row 0, field %zu is no UTF-8",
              column);
    }
    names->emplace_back(as_text(name));
  };
  if (options.columns.empty()) {
    for (std::size_t c = 0; c < row.cells.size(); ++c) add(c);
  } else {
    for (const std::uint32_t c : options.columns) add(c);
  }
  return begun(row.end);
}

Columns read_columns(const CsvOptions& options, const std::vector<WantedType>& types,
                     const std::vector<TypeMask>& masks, Bytes text, bool last, ColumnsState& state) {
  check_options(options);
  return Reading(options, types, masks, state).read(text, last);
}

}  // namespace cdd::packed
