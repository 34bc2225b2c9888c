#include "core/packed/columns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/text.h"
#include "core/packed/column_run.h"
#include "core/packed/convert.h"
#include "core/packed/csv/plan.h"
#include "core/threads/for_each.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

// A run has this much text: what it leaves to be joined is still in a cache then. Fewer and longer ones where
// each has many columns to keep account of.
constexpr std::size_t kRunParts = 4;
constexpr std::size_t kMostRunColumns = 100'000;
constexpr std::size_t kRunsOfThread = 4;  // that are read at a time, before their texts are joined
constexpr std::size_t kSamples = 8;
constexpr std::size_t kSampleBytes = 16 << 10;

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
  bool find_runs(Bytes text, bool last);
  void settle_first_types();
  void look_at(Bytes sample);
  void allocate();
  void read_runs();
  void make_room(std::size_t c, std::size_t read);
  void join_text(std::size_t p, std::size_t c, std::size_t base);
  bool widen();
  void finish_column(std::size_t c);
  std::uint32_t columns() const noexcept {
    return options_.columns.empty() ? state_.progress.columns
                                    : static_cast<std::uint32_t>(options_.columns.size());
  }

  const CsvOptions& options_;
  const std::vector<WantedType>& given_;
  const std::vector<TypeMask>& masks_;
  ColumnsState& state_;
  std::vector<ColumnRun> runs_;
  std::vector<Bytes> samples_;  // begin with a row each
  std::vector<SettledType> settled_;
  Columns result_;
};

// Runs of whole rows, and how many rows each has. False where there are none.
bool Reading::find_runs(Bytes text, bool last) {
  const std::size_t end = last ? text.size() : whole_rows_end(options_, text);
  if (end != simd::kCsvNone && options_.plain()) {
    const Bytes whole = text.first(end);
    const std::optional<CsvPlan> plan = plan_csv(options_, whole);
    const bool fits = plan && (state_.progress.columns == 0 || plan->columns == 0 ||
                               plan->columns == state_.progress.columns);
    if (fits) {
      if (plan->columns != 0) state_.progress.columns = plan->columns;
      const std::size_t parts = plan->cuts.size() - 1;
      const std::size_t most = std::max<std::size_t>(8 * threads(), kMostRunColumns / (plan->columns + 1));
      const std::size_t wanted = std::clamp<std::size_t>(parts / kRunParts, 8 * threads(), most);
      const std::size_t runs = threads() == 1 ? 1 : std::min(parts, wanted);
      for (std::size_t p = 0; p < runs; ++p) {
        const CsvCut& cut = plan->cuts[p * parts / runs];
        const CsvCut& next = plan->cuts[(p + 1) * parts / runs];
        ColumnRun& run = runs_.emplace_back();
        run.text = whole.subspan(cut.at, next.at - cut.at);
        run.readable = text.size() - cut.at;
        run.by_ends = true;
        run.progress.rows = cut.before.rows;
        run.progress.lines = state_.progress.lines + cut.before.rows;
        run.progress.text_offset = state_.progress.text_offset + cut.at;
        run.progress.columns = state_.progress.columns;
      }
      const std::size_t samples = std::min<std::size_t>(parts, kSamples);
      for (std::size_t k = 0; k < samples; ++k)
        samples_.push_back(whole.subspan(plan->cuts[k * parts / samples].at));
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
  ColumnRun& run = runs_.emplace_back();
  run.text = text.first(rows.consumed());
  run.progress = state_.progress;
  run.progress.rows = 0;
  samples_.push_back(run.text);
  result_.rows = counted.rows;
  result_.consumed = rows.consumed();
  state_.progress.columns = counted.columns;
  return result_.rows > 0;
}

// By some rows; what the others are decides.
void Reading::settle_first_types() {
  if (!given_.empty() && given_.size() != columns()) {
    fail(ErrorCode::InvalidArgument, "%zu types are given for %u columns", given_.size(), columns());
  }
  settled_.resize(columns());
  for (std::uint32_t c = 0; c < columns(); ++c) {
    SettledType& settled = settled_[c];
    const WantedType given = given_.empty() ? WantedType{} : given_[c];
    settled.type = given.type;
    settled.exact = given.exact;
    if (settled.type != Type::Auto) continue;
    settled.found = settled.exact = true;
    if (c < masks_.size()) settled.mask = (masks_[c] | mask_of(Type::Text)) & kAllTypes;
  }
  for (const Bytes sample : samples_) look_at(sample);
  for (SettledType& settled : settled_) {
    if (settled.found) settled.type = first_of(settled.mask);
  }
}

void Reading::look_at(Bytes sample) {
  CsvProgress progress = runs_.front().progress;
  const bool last = sample.size() <= kSampleBytes;
  CsvRows rows(options_, last ? sample : sample.first(kSampleBytes), last, progress);
  CsvBlock block;
  if (!rows.next(&block)) return;
  const std::size_t count = std::min<std::size_t>(block.rows, 100);
  for (std::uint32_t c = 0; c < columns(); ++c) {
    if (!settled_[c].found) continue;
    for (std::size_t r = 0; r < count; ++r) {
      const simd::CsvCell& cell = block.cells[r * block.columns + c];
      settled_[c].mask &= accepted_types({cell.data, cell.bytes});
    }
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
    for (ColumnRun& run : runs_) run.columns[c] = {};
  }
}

// Some runs at a time, whose texts then go to their places one behind the other: where that is depends on all
// runs before. The memory that runs have for text is the next ones'.
void Reading::read_runs() {
  const auto is_text = [&](std::size_t c) { return settled_[c].wanted && settled_[c].type == Type::Text; };
  for (std::size_t c = 0; c < columns(); ++c) {
    if (is_text(c)) store<std::int64_t>(result_.columns[c].values.data(), 0);
  }
  const std::size_t step = kRunsOfThread * threads();
  std::vector<std::size_t> texts, bases;
  for (std::size_t c = 0; c < columns(); ++c) {
    if (is_text(c)) texts.push_back(c);
  }
  for (std::size_t first = 0; first < runs_.size(); first += step) {
    const std::size_t n = std::min(step, runs_.size() - first);
    for_each(n, [&](std::size_t k) {
      read_run(options_, settled_, state_.progress.lines, runs_[first + k], &result_);
    });
    bases.clear();
    for (const std::size_t c : texts) {
      for (std::size_t k = 0; k < n; ++k) {
        bases.push_back(static_cast<std::size_t>(result_.columns[c].text_bytes));
        result_.columns[c].text_bytes += runs_[first + k].columns[c].text_bytes;
      }
      if (runs_.size() == 1) {
        result_.columns[c].text = std::move(runs_[0].columns[c].text);
      } else {
        make_room(c, first + n);
      }
    }
    if (runs_.size() == 1) return;
    for_each(n * texts.size(), [&](std::size_t i) { join_text(first + i % n, texts[i / n], bases[i]); });
    for (std::size_t k = 0; k < n && first + n + k < runs_.size(); ++k) {
      for (const std::size_t c : texts)
        runs_[first + n + k].columns[c].text = std::move(runs_[first + k].columns[c].text);
    }
  }
}

// For the text of all runs read so far, and as much as the others are likely to have.
void Reading::make_room(std::size_t c, std::size_t read) {
  Column& column = result_.columns[c];
  const auto bytes = static_cast<std::size_t>(column.text_bytes);
  if (bytes <= column.text.size()) return;
  const double share = static_cast<double>(runs_.size()) / static_cast<double>(read);
  const double guess = read == runs_.size() ? 1.0 : share * 1.1;
  column.text.grow(std::max(bytes, static_cast<std::size_t>(guess * static_cast<double>(bytes))));
}

// What run p has of the text of a column to its place, and the ends of its rows in it.
void Reading::join_text(std::size_t p, std::size_t c, std::size_t base) {
  Column& column = result_.columns[c];
  const RunColumn& from = runs_[p].columns[c];
  if (from.text_bytes != 0) std::memcpy(column.text.data() + base, from.text.data(), from.text_bytes);
  if (base == 0) return;
  std::byte* const ends = column.values.data() + 8;
  const std::uint64_t end = p + 1 < runs_.size() ? runs_[p + 1].progress.rows : result_.rows;
  for (std::uint64_t r = runs_[p].progress.rows; r < end; ++r) {
    store<std::int64_t>(ends + 8 * r, load<std::int64_t>(ends + 8 * r) + static_cast<std::int64_t>(base));
  }
}

// Types of the columns in which some row was not of the type. False where all are settled.
bool Reading::widen() {
  bool again = false;
  for (std::uint32_t c = 0; c < columns(); ++c) {
    SettledType& settled = settled_[c];
    bool failed = false;
    for (const ColumnRun& run : runs_) {
      if (!settled.wanted || !run.columns[c].failed) continue;
      failed = true;
      settled.mask &= run.columns[c].accepted;
    }
    settled.wanted = failed;
    if (!failed) continue;
    settled.mask &= ~mask_of(settled.type);
    settled.type = first_of(settled.mask);
    again = true;
  }
  return again;
}

void Reading::finish_column(std::size_t c) {
  const auto rows = static_cast<std::size_t>(result_.rows);
  Column& column = result_.columns[c];
  for (const ColumnRun& run : runs_) column.nulls += run.columns[c].nulls.size();
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
    for (const ColumnRun& run : runs_) {
      for (const std::uint64_t row : run.columns[c].nulls) column.valid.data()[row] = std::byte{0};
    }
  }
}

Columns Reading::read(Bytes text, bool last) {
  std::size_t begun = 0;
  if (!state_.begun) {
    begun = begin_csv(options_, text, last, state_, &result_.names);
    if (begun == simd::kCsvNone) return std::move(result_);
  }
  if (find_runs(text.subspan(begun), last)) {
    settle_first_types();
  } else {
    settled_.resize(columns());
    for (std::uint32_t c = 0; c < columns(); ++c) {
      const bool given = c < given_.size() && given_[c].type != Type::Auto;
      settled_[c].type = given ? given_[c].type : Type::Text;
    }
  }
  result_.columns.resize(columns());
  for (ColumnRun& run : runs_) run.columns.resize(columns());
  if (result_.rows > 0) {
    do {
      allocate();
      read_runs();
    } while (widen());
    for_each(columns(), [&](std::size_t c) { finish_column(c); });
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
  // In a window that grows: a text has more bytes than its first row.
  std::vector<std::byte> memory;
  MachineRow row;
  Machine read = Machine::Unfinished;
  for (std::size_t window = 4096; read == Machine::Unfinished; window *= 4) {
    const std::size_t bytes = std::min(window, text.size() - begin);
    const bool whole = bytes == text.size() - begin;
    memory.resize(bytes);
    std::byte* arena = memory.data();
    read = read_csv_row(options, text.first(begin + bytes), begin, whole && last, arena, 0,
                        state.progress.text_offset, &row);
    if (read == Machine::End && !whole) read = Machine::Unfinished;
    if (read == Machine::Unfinished) check_row_bytes(options, bytes, 0, state.progress.text_offset + begin);
    if (whole) break;
  }
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
