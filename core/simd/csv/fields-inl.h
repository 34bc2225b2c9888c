// Ends of fields as numbers, and the text of one column, with Highway. See csv.h; csv.cpp dispatches.
#if defined(CDD_SIMD_CSV_FIELDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_CSV_FIELDS_INL_H_
#undef CDD_SIMD_CSV_FIELDS_INL_H_
#else
#define CDD_SIMD_CSV_FIELDS_INL_H_
#endif

#include <bit>

#include "core/simd/csv/masks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

HWY_INLINE bool IsLineEnd(std::byte byte) { return byte == std::byte{'\n'} || byte == std::byte{'\r'}; }

// The numbers of the bits, `at` added. Writes eight at a time: what is too much is written over next time.
HWY_INLINE uint32_t* PutBits(uint64_t bits, uint32_t at, uint32_t* out) {
  uint32_t* const end = out + hwy::PopCount(bits);
  for (; out < end; out += 8) {
    for (int k = 0; k < 8; ++k, bits &= bits - 1) out[k] = at + static_cast<uint32_t>(std::countr_zero(bits));
  }
  return end;
}

// Whether each `columns`th of the fields ends a row.
HWY_INLINE bool EndsRows(const std::byte* text, size_t n, const uint32_t* ends, size_t rows, size_t columns) {
  bool all = true;
  for (size_t r = 0; r < rows; ++r) {
    const uint32_t end = ends[(r + 1) * columns - 1];
    all = all && (end == n || IsLineEnd(text[end]));
  }
  return all;
}

CsvFields FindCsvFields(const CsvDialect& dialect, const std::byte* bytes, size_t n, bool last,
                        uint32_t columns, uint32_t* ends) {
  const hn::CappedTag<uint8_t, kCsvStep> d;
  const uint8_t* const text = reinterpret_cast<const uint8_t*>(bytes);
  CsvCarry carry = CarryOf({});
  auto high = hn::Zero(d);
  uint64_t quotes = 0;
  uint64_t bad = 0;
  size_t ended = 0;  // rows
  uint32_t* out = ends;
  ends[-1] = ~uint32_t{0};
  for (size_t at = 0; at < n; at += kCsvStep) {
    const size_t left = n - at;
    CsvMasks masks;
    if (HWY_LIKELY(left >= kCsvStep)) {
      masks = MasksOf(d, dialect, text + at, high);
    } else {
      const CsvTail tail(dialect, text + at, left);
      masks = MasksOf(d, dialect, tail.bytes, high);
    }
    const CsvStep step = StepOf(masks, LowBits(left), carry);
    const uint64_t blank = step.ends & (step.ends << 1 | carry.after_end);
    carry.after_end = step.ends >> 63;
    ended += hwy::PopCount(step.ends & ~blank);
    quotes |= masks.quotes;
    bad |= step.bad;
    out = PutBits(step.separators & ~blank, static_cast<uint32_t>(at), out);
  }
  CsvFields found;
  const bool open = n > 0 && (carry.inside != 0 || !IsLineEnd(bytes[n - 1]));
  if (last && open) {
    if (carry.inside != 0) return found;
    *out++ = static_cast<uint32_t>(n);
    ++ended;
  }
  const auto fields = static_cast<size_t>(out - ends);
  const size_t rows = fields / columns;
  if (bad != 0 || rows != ended || !EndsRows(bytes, n, ends, rows, columns)) return found;
  found.rows = rows;
  found.regular = true;
  found.quotes = quotes != 0;
  if (rows > 0) found.consumed = HWY_MIN(n, size_t{ends[rows * columns - 1]} + 1);
  return found;
}

struct ColumnSink {
  const CsvDialect& dialect;
  const CsvColumn& column;
  std::byte* out;

  HWY_INLINE std::byte* Plain(size_t begin, size_t end, std::byte* to) const {
    const hn::CappedTag<uint8_t, 16> d;
    const auto* const text = reinterpret_cast<const uint8_t*>(column.text);
    const size_t bytes = end - begin;
    if (HWY_LIKELY(end + 16 <= column.readable)) {
      size_t i = 0;
      do {
        for (size_t k = 0; k < 16; k += hn::Lanes(d)) {
          hn::StoreU(hn::LoadU(d, text + begin + i + k), d, reinterpret_cast<uint8_t*>(to) + i + k);
        }
        i += 16;
      } while (HWY_UNLIKELY(i < bytes));
    } else {
      memcpy(to, column.text + begin, bytes);
    }
    return to + bytes;
  }
  HWY_INLINE std::byte* Quoted(size_t begin, size_t end, std::byte* to) const {
    return reinterpret_cast<std::byte*>(
        CopyQuoted(dialect, reinterpret_cast<const uint8_t*>(column.text) + begin + 1, end - begin - 2,
                   column.readable - begin - 1, reinterpret_cast<uint8_t*>(to)));
  }
};

template <bool kFirst, bool kQuotes>
HWY_INLINE size_t GatherRows(const CsvDialect& dialect, const CsvColumn& column, std::byte* out, int64_t base,
                             std::byte* offsets) {
  const ColumnSink sink{dialect, column, out};
  const uint32_t* ends = column.ends;
  std::byte* to = out;
  for (size_t r = 0; r < column.rows; ++r, ends += column.stride) {
    uint32_t begin = ends[-1] + 1;
    const uint32_t end = ends[0];
    if (kFirst) {
      while (HWY_UNLIKELY(begin < end && IsLineEnd(column.text[begin]))) ++begin;
    }
    if (kQuotes && end - begin >= 2 && column.text[begin] == std::byte{dialect.quote}) {
      to = sink.Quoted(begin, end, to);
    } else {
      to = sink.Plain(begin, end, to);
    }
    const int64_t at = base + (to - out);
    memcpy(offsets + 8 * r, &at, sizeof at);
  }
  return static_cast<size_t>(to - out);
}

size_t GatherCsvColumn(const CsvDialect& dialect, const CsvColumn& column, std::byte* out, int64_t base,
                       std::byte* offsets) {
  const bool quotes = column.quotes && dialect.quotes;
  if (column.first) {
    return quotes ? GatherRows<true, true>(dialect, column, out, base, offsets)
                  : GatherRows<true, false>(dialect, column, out, base, offsets);
  }
  return quotes ? GatherRows<false, true>(dialect, column, out, base, offsets)
                : GatherRows<false, false>(dialect, column, out, base, offsets);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
