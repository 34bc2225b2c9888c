#include "core/simd/csv/csv.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/csv/csv.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "core/simd/csv/fields-inl.h"
#include "core/simd/csv/pack-inl.h"
#include "core/simd/csv/scan-inl.h"

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(ScanCsv);
HWY_EXPORT(TokeniseCsv);
HWY_EXPORT(PackCsv);
HWY_EXPORT(FindCsvFields);
HWY_EXPORT(GatherCsvColumn);

CsvState csv_state_after(const CsvDialect& dialect, std::uint8_t before, bool inside) noexcept {
  if (inside) return {true, false, false, false};
  const bool end = before == '\n' || before == '\r';
  return {false, end || before == dialect.delimiter, end, dialect.quotes && before == dialect.quote};
}

CsvScan scan_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, CsvState state) noexcept {
  CsvScan scan;
  HWY_DYNAMIC_DISPATCH(ScanCsv)(dialect, text, n, state, &scan);
  return scan;
}

CsvTokens tokenise_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                       const CsvCells& out) noexcept {
  return HWY_DYNAMIC_DISPATCH(TokeniseCsv)(dialect, text, n, last, out);
}

CsvPackedRows pack_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, std::size_t readable,
                       const CsvPackTarget& target) noexcept {
  CsvPackedRows packed;
  HWY_DYNAMIC_DISPATCH(PackCsv)(dialect, text, n, readable, target, &packed);
  return packed;
}

CsvFields find_csv_fields(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                          std::uint32_t columns, std::uint32_t* ends) noexcept {
  return HWY_DYNAMIC_DISPATCH(FindCsvFields)(dialect, text, n, last, columns, ends);
}

std::size_t gather_csv_column(const CsvDialect& dialect, const CsvColumn& column, std::byte* out,
                              std::int64_t base, std::byte* offsets) noexcept {
  return HWY_DYNAMIC_DISPATCH(GatherCsvColumn)(dialect, column, out, base, offsets);
}

namespace reference {
namespace {

// One byte after another, with the same state. Returns what the byte is.
struct Byte {
  bool delimiter, end, quote, quoted, bad;
};

Byte look(const CsvDialect& dialect, std::uint8_t byte, CsvState& state) noexcept {
  Byte is{};
  is.quote = dialect.quotes && byte == dialect.quote;
  const bool opening = is.quote && !state.inside;
  const bool closing = is.quote && state.inside;
  is.delimiter = !state.inside && byte == dialect.delimiter;
  is.end = !state.inside && (byte == '\n' || byte == '\r');
  is.quoted = opening && state.after_separator;
  is.bad = (opening && !state.after_separator && !state.after_closing) ||
           (state.after_closing && !is.delimiter && !is.end && !is.quote);
  state = {state.inside != is.quote, is.delimiter || is.end, is.end, closing};
  return is;
}

}  // namespace

CsvScan scan_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, CsvState state) noexcept {
  CsvScan scan;
  for (std::size_t i = 0; i < n; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const bool blank = state.after_end;
    const Byte is = look(dialect, byte, state);
    scan.ascii = scan.ascii && byte < 0x80;
    scan.total.delimiters += is.delimiter;
    scan.total.ends += is.end;
    scan.total.rows += is.end && !blank;
    scan.total.quotes += is.quote;
    scan.total.quoted_fields += is.quoted;
    if (is.bad && scan.first_bad == kCsvNone) scan.first_bad = i;
    if (is.end && !blank && scan.first_end == kCsvNone) {
      scan.first_end = i + 1;
      scan.at_first_end = scan.total;
    }
  }
  scan.after = state;
  return scan;
}

CsvTokens tokenise_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                       const CsvCells& out) noexcept {
  CsvTokens tokens;
  CsvState state;
  std::size_t start = 0;
  std::size_t cells = 0;
  const auto end_field = [&](std::size_t end) {
    const bool quoted = dialect.quotes && end - start >= 2 && text[start] == std::byte{dialect.quote};
    CsvCell& cell = out.cells[cells++];
    cell = {text + start + quoted, static_cast<std::uint32_t>(end - start - 2 * quoted), quoted, 0};
    for (std::size_t i = 0; quoted && i < cell.bytes; ++i) {
      if (cell.data[i] == std::byte{dialect.quote}) cell.doubled = 1;
    }
    start = end + 1;
  };
  const auto end_row = [&](std::size_t next) {
    out.row_ends[tokens.rows++] = static_cast<std::uint32_t>(cells);
    start = tokens.consumed = next;
  };
  for (std::size_t i = 0; i < n; ++i) {
    tokens.full = i % 64 == 0 && (cells + 64 >= out.max_cells || tokens.rows + 64 >= out.max_rows);
    if (tokens.full) return tokens;
    const Byte is = look(dialect, static_cast<std::uint8_t>(text[i]), state);
    if (is.bad) {
      tokens.bad = true;
      return tokens;
    }
    if (is.end && i == tokens.consumed) {
      start = tokens.consumed = i + 1;
    } else if (is.delimiter || is.end) {
      end_field(i);
      if (is.end) end_row(i + 1);
    }
  }
  if (last && tokens.consumed < n && !state.inside) {
    end_field(n);
    end_row(n);
  }
  return tokens;
}

CsvPackedRows pack_csv(const CsvDialect& dialect, const std::byte* text, std::size_t n, std::size_t,
                       const CsvPackTarget& target) noexcept {
  CsvPackedRows packed;
  CsvState state;
  std::byte* out = target.fields;
  std::byte* row_begin = out;
  std::size_t start = 0;
  std::size_t row_start = 0;
  std::uint32_t fields = 0;
  const auto end_field = [&](std::size_t end) {
    const auto room = static_cast<std::size_t>(target.fields_end - out);
    const bool quoted = dialect.quotes && end - start >= 2 && text[start] == std::byte{dialect.quote};
    std::size_t bytes = 0;
    for (std::size_t i = start + quoted; i < end - quoted; ++i) {
      if (2 + bytes >= room) return false;
      out[2 + bytes++] = text[i];
      if (quoted && text[i] == std::byte{dialect.quote}) ++i;
    }
    if (room < 2 || bytes > 0xffff) return false;
    const auto length = static_cast<std::uint16_t>(bytes);
    std::memcpy(out, &length, sizeof length);
    out += 2 + bytes;
    start = end + 1;
    ++fields;
    return true;
  };
  const auto end_row = [&] {
    if (fields != target.columns || packed.rows == target.max_rows) return false;
    const std::uint64_t begin = target.first_offset + static_cast<std::uint64_t>(row_begin - target.fields);
    const auto offset = static_cast<std::uint32_t>(begin);
    if (offset != begin) return false;
    std::memcpy(target.offsets + 4 * packed.rows++, &offset, sizeof offset);
    row_begin = out;
    row_start = start;
    fields = 0;
    return true;
  };
  bool good = true;
  for (std::size_t i = 0; good && i < n; ++i) {
    const Byte is = look(dialect, static_cast<std::uint8_t>(text[i]), state);
    if (is.end && i == row_start) {
      row_start = start = i + 1;
    } else if (is.delimiter || is.end) {
      good = end_field(i) && (!is.end || end_row());
    }
    good = good && !is.bad;
  }
  if (good && row_start < n) good = !state.inside && end_field(n) && end_row();
  packed.whole = good;
  packed.bytes = static_cast<std::size_t>(out - target.fields);
  return packed;
}

CsvFields find_csv_fields(const CsvDialect& dialect, const std::byte* text, std::size_t n, bool last,
                          std::uint32_t columns, std::uint32_t* ends) noexcept {
  CsvFields found;
  CsvState state;
  std::size_t count = 0;
  std::size_t in_row = 0;
  bool open = false;  // a row has begun
  ends[-1] = ~std::uint32_t{0};
  const auto end_field = [&](std::size_t at, bool is_end) {
    ends[count++] = static_cast<std::uint32_t>(at);
    ++in_row;
    if (!is_end) return in_row < columns;
    if (in_row != columns) return false;
    in_row = 0;
    ++found.rows;
    found.consumed = at + (at < n);
    return true;
  };
  for (std::size_t i = 0; i < n; ++i) {
    const Byte is = look(dialect, static_cast<std::uint8_t>(text[i]), state);
    found.quotes = found.quotes || is.quote;
    if (is.bad) return {};
    const bool blank = is.end && !open;
    if ((is.delimiter || is.end) && !blank && !end_field(i, is.end)) return {};
    open = !is.end;
  }
  if (last && open && (state.inside || !end_field(n, true))) return {};
  found.regular = true;
  return found;
}

std::size_t gather_csv_column(const CsvDialect& dialect, const CsvColumn& column, std::byte* out,
                              std::int64_t base, std::byte* offsets) noexcept {
  std::size_t bytes = 0;
  for (std::size_t r = 0; r < column.rows; ++r) {
    std::uint32_t begin = column.ends[r * column.stride - 1] + 1;
    std::uint32_t end = column.ends[r * column.stride];
    const auto is_end = [&] {
      return column.text[begin] == std::byte{'\n'} || column.text[begin] == std::byte{'\r'};
    };
    while (column.first && begin < end && is_end()) ++begin;
    const std::byte quote{dialect.quote};
    const bool quoted = dialect.quotes && end - begin >= 2 && column.text[begin] == quote;
    begin += quoted;
    end -= quoted;
    for (std::uint32_t i = begin; i < end; ++i) {
      out[bytes++] = column.text[i];
      if (quoted && column.text[i] == quote) ++i;
    }
    const std::int64_t at = base + static_cast<std::int64_t>(bytes);
    std::memcpy(offsets + 8 * r, &at, sizeof at);
  }
  return bytes;
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
