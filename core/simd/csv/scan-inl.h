// Counting and tokenising CSV with Highway. See csv.h; csv.cpp dispatches.
#if defined(CDD_SIMD_CSV_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_CSV_SCAN_INL_H_
#undef CDD_SIMD_CSV_SCAN_INL_H_
#else
#define CDD_SIMD_CSV_SCAN_INL_H_
#endif

#include "core/simd/csv/masks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

HWY_INLINE void CountStep(const CsvMasks& masks, const CsvStep& step, uint64_t ends_of_rows,
                          CsvCounts* counts) {
  counts->delimiters += hwy::PopCount(step.separators & ~step.ends);
  counts->ends += hwy::PopCount(step.ends);
  counts->rows += hwy::PopCount(ends_of_rows);
  counts->quotes += hwy::PopCount(masks.quotes);
  counts->quoted_fields += hwy::PopCount(step.quoted);
}

HWY_INLINE void ScanStep(const CsvMasks& masks, uint64_t valid, size_t at, CsvCarry& carry, CsvScan* scan) {
  const CsvStep step = StepOf(masks, valid, carry);
  const uint64_t ends_of_rows = step.ends & ~(step.ends << 1 | carry.after_end);
  carry.after_end = step.ends >> 63;
  if (HWY_UNLIKELY(step.bad != 0) && scan->first_bad == kCsvNone) scan->first_bad = at + LowestBit(step.bad);
  if (HWY_UNLIKELY(scan->first_end == kCsvNone) && ends_of_rows != 0) {
    const uint64_t upto = LowBits(LowestBit(ends_of_rows) + 1);
    scan->first_end = at + LowestBit(ends_of_rows) + 1;
    scan->at_first_end = scan->total;
    CountStep({0, 0, masks.quotes & upto},
              {step.separators & upto, step.ends & upto, step.quoted & upto, 0, 0, 0}, ends_of_rows & upto,
              &scan->at_first_end);
  }
  CountStep(masks, step, ends_of_rows, &scan->total);
}

void ScanCsv(const CsvDialect& dialect, const std::byte* bytes, size_t n, const CsvState& state,
             CsvScan* scan) {
  const hn::CappedTag<uint8_t, kCsvStep> d;
  const uint8_t* const text = reinterpret_cast<const uint8_t*>(bytes);
  CsvCarry carry = CarryOf(state);
  auto high = hn::Zero(d);
  size_t at = 0;
  for (; at + kCsvStep <= n; at += kCsvStep) {
    ScanStep(MasksOf(d, dialect, text + at, high), ~uint64_t{0}, at, carry, scan);
  }
  bool inside = carry.inside != 0;
  if (at < n) {
    const CsvTail tail(dialect, text + at, n - at);
    ScanStep(MasksOf(d, dialect, tail.bytes, high), LowBits(n - at), at, carry, scan);
    inside = carry.inside != 0;  // filler opens and closes nothing
  }
  scan->ascii = hn::AllFalse(d, hn::Ge(high, hn::Set(d, uint8_t{0x80})));
  scan->after = n == 0 ? state : csv_state_after(dialect, text[n - 1], inside);
}

// Gives cells and rows; `start` is where the field at hand begins.
struct CellSink {
  const CsvDialect& dialect;
  const std::byte* text;
  const CsvCells& out;
  size_t cells = 0;
  size_t rows = 0;
  size_t row_start = 0;
  size_t first_cell = 0;  // of the row
  size_t start = 0;

  HWY_INLINE void Field(size_t end) {
    CsvCell& cell = out.cells[cells++];
    const std::byte* const data = text + start;
    const auto bytes = static_cast<uint32_t>(end - start);
    const bool quoted = dialect.quotes && bytes >= 2 && *data == std::byte{dialect.quote};
    cell = {data + quoted, bytes - 2 * quoted, quoted, 0};
    if (HWY_UNLIKELY(quoted)) cell.doubled = memchr(cell.data, dialect.quote, cell.bytes) != nullptr;
    start = end + 1;
  }
  // A separator at `at`. A line end right where a row begins is a blank line.
  HWY_INLINE void Separator(size_t at, bool is_end) {
    if (HWY_UNLIKELY(is_end && at == row_start)) {
      row_start = start = at + 1;
      return;
    }
    Field(at);
    if (is_end) EndRow();
  }
  HWY_INLINE void EndRow() {
    out.row_ends[rows++] = static_cast<uint32_t>(cells);
    row_start = start;
    first_cell = cells;
  }
  HWY_INLINE bool HasRoom() const {
    return cells + kCsvStep < out.max_cells && rows + kCsvStep < out.max_rows;
  }
};

HWY_INLINE void SinkStep(const CsvStep& step, uint64_t separators, size_t at, CellSink& sink) {
  for (; separators != 0; separators &= separators - 1) {
    const size_t bit = LowestBit(separators);
    sink.Separator(at + bit, (step.ends >> bit & 1) != 0);
  }
}

CsvTokens TokeniseCsv(const CsvDialect& dialect, const std::byte* bytes, size_t n, bool last,
                      const CsvCells& out) {
  const hn::CappedTag<uint8_t, kCsvStep> d;
  const uint8_t* const text = reinterpret_cast<const uint8_t*>(bytes);
  CsvCarry carry = CarryOf({});
  CellSink sink{dialect, bytes, out};
  auto high = hn::Zero(d);
  CsvTokens tokens;
  for (size_t at = 0; at < n; at += kCsvStep) {
    tokens.full = !sink.HasRoom();
    if (HWY_UNLIKELY(tokens.full)) break;
    const size_t left = n - at;
    CsvStep step;
    if (HWY_LIKELY(left >= kCsvStep)) {
      step = StepOf(MasksOf(d, dialect, text + at, high), ~uint64_t{0}, carry);
    } else {
      const CsvTail tail(dialect, text + at, left);
      step = StepOf(MasksOf(d, dialect, tail.bytes, high), LowBits(left), carry);
    }
    if (HWY_UNLIKELY(step.bad != 0)) {
      SinkStep(step, step.separators & LowBits(LowestBit(step.bad)), at, sink);
      tokens.bad = true;
      break;
    }
    SinkStep(step, step.separators, at, sink);
  }
  if (last && !tokens.full && !tokens.bad && sink.row_start < n && carry.inside == 0) {
    sink.Field(n);
    sink.start = n;
    sink.EndRow();
  }
  tokens.rows = sink.rows;
  tokens.consumed = sink.row_start;
  return tokens;
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
