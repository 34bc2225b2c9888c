#include "core/format/packed/rows.h"

#include "core/base/text.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

[[noreturn]] void fail_row(const RowsView& view, std::uint32_t row) {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  view.bounds(row, &begin, &end);
  fail_at({Place::Kind::Row, view.first_row + row, Place::kNone, begin}, ErrorCode::Corrupt,
          "row %llu: it is said to lie at 0x%llx to 0x%llx, there are %zu bytes",
          static_cast<ull>(view.first_row + row), static_cast<ull>(begin), static_cast<ull>(end),
          view.bytes.size());
}

[[noreturn]] void fail_field(const RowsView& view, std::uint32_t row, std::uint32_t field,
                             const RowCursor& cursor, std::uint64_t end) {
  const auto at = static_cast<std::uint64_t>(cursor.at() - view.bytes.data());
  const Place place{Place::Kind::Row, view.first_row + row, field, at};
  if (end - at < view.width) {
    fail_at(place, ErrorCode::Corrupt, "row %llu, field %u at 0x%llx: its length does not fit before 0x%llx",
            static_cast<ull>(view.first_row + row), field, static_cast<ull>(at), static_cast<ull>(end));
  }
  const std::uint64_t bytes = load_length(cursor.at(), view.width);
  fail_at(place, ErrorCode::Corrupt, "row %llu, field %u at 0x%llx: length %llu ends %llu bytes after the %s",
          static_cast<ull>(view.first_row + row), field, static_cast<ull>(at), static_cast<ull>(bytes),
          static_cast<ull>(at + view.width + bytes - end), view.by_ends ? "row" : "buffer");
}

struct Row {
  RowCursor cursor;
  std::uint64_t end;
};

Row begin_row(const RowsView& view, std::uint32_t row) {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (!view.bounds(row, &begin, &end)) fail_row(view, row);
  return {view.cursor(begin, end), end};
}

Bytes next_field(const RowsView& view, std::uint32_t row, std::uint32_t field, Row& at) {
  Bytes bytes;
  const RowCursor before = at.cursor;
  if (!at.cursor.next(&bytes)) fail_field(view, row, field, before, at.end);
  return bytes;
}

}  // namespace

Header parse_header(Bytes bytes) {
  if (bytes.size() < kHeaderBytes) {
    fail(ErrorCode::Truncated, "packed rows begin with %zu bytes of header, there are %zu", kHeaderBytes,
         bytes.size());
  }
  const auto magic = load<std::uint32_t>(bytes.data());
  if (magic == kMagicSwapped) {
    fail(ErrorCode::Corrupt,
         "these begin with \"OCSV\": the magic number 0x%08x is stored little-endian, as \"VSCO\"", kMagic);
  }
  if (magic != kMagic) {
    fail(ErrorCode::Corrupt, "no packed rows: the magic number is 0x%08x, not 0x%08x", magic, kMagic);
  }
  Header header;
  header.version = load<std::uint32_t>(bytes.data() + 4);
  header.rows = load<std::uint32_t>(bytes.data() + 8);
  header.columns = load<std::uint32_t>(bytes.data() + 12);
  header.total_bytes = load<std::uint64_t>(bytes.data() + 16);
  if (header.version == 0) fail(ErrorCode::Corrupt, "packed rows of version 0: the first is 1");
  if (header.version > 2) {
    fail(ErrorCode::Unsupported, "packed rows of version %u: this version of cdd reads 1 and 2",
         header.version);
  }
  return header;
}

void put_header(const Header& header, std::byte* out) noexcept {
  store<std::uint32_t>(out, kMagic);
  store<std::uint32_t>(out + 4, header.version);
  store<std::uint32_t>(out + 8, header.rows);
  store<std::uint32_t>(out + 12, header.columns);
  store<std::uint64_t>(out + 16, header.total_bytes);
}

RowsView open_version1(Bytes bytes) {
  const Header header = parse_header(bytes);
  if (header.version != 1)
    fail(ErrorCode::Unsupported, "these packed rows are of version %u, not 1", header.version);
  if (header.total_bytes > bytes.size()) {
    fail(ErrorCode::Truncated, "packed rows have %llu bytes by their header, there are %zu",
         static_cast<ull>(header.total_bytes), bytes.size());
  }
  if (header.total_bytes < bytes.size()) {
    fail(ErrorCode::Corrupt, "packed rows have %llu bytes by their header, there are %zu",
         static_cast<ull>(header.total_bytes), bytes.size());
  }
  const std::uint64_t offsets = 4 * std::uint64_t{header.rows};
  if (offsets > bytes.size() - kHeaderBytes) {
    fail(ErrorCode::Corrupt, "the offsets of %u rows do not fit in %zu bytes", header.rows, bytes.size());
  }
  // Fields cost two bytes each, so a count that does not fit after the offsets fits no row.
  if (header.rows > 0 && 2 * std::uint64_t{header.columns} > bytes.size() - kHeaderBytes - offsets) {
    fail(ErrorCode::Corrupt, "a row of %u fields does not fit in %zu bytes", header.columns, bytes.size());
  }
  RowsView view;
  view.bytes = bytes;
  view.offsets = bytes.data() + kHeaderBytes;
  view.rows = header.rows;
  view.columns = header.columns;
  return view;
}

void read_row(const RowsView& view, std::uint32_t i, std::span<Bytes> fields) {
  Row row = begin_row(view, i);
  for (std::uint32_t j = 0; j < fields.size(); ++j) fields[j] = next_field(view, i, j, row);
}

Bytes read_field(const RowsView& view, std::uint32_t i, std::uint32_t j) {
  Row row = begin_row(view, i);
  Bytes field;
  for (std::uint32_t k = 0; k <= j; ++k) {
    if (view.ragged && row.cursor.at_end()) {
      fail(ErrorCode::OutOfRange, "row %llu has %u fields, field %u is asked for",
           static_cast<ull>(view.first_row + i), k, j);
    }
    field = next_field(view, i, k, row);
  }
  return field;
}

std::uint32_t count_fields(const RowsView& view, std::uint32_t i) {
  if (!view.ragged) return view.columns;
  Row row = begin_row(view, i);
  std::uint32_t fields = 0;
  for (; !row.cursor.at_end(); ++fields) next_field(view, i, fields, row);
  return fields;
}

void check_rows(const RowsView& view, Check check) {
  if (check == Check::Header) return;
  // In version 2 rows follow each other by construction, and where one ends is told.
  std::uint64_t expected = view.by_ends ? 0 : kHeaderBytes + 4 * std::uint64_t{view.rows};
  for (std::uint32_t i = 0; i < view.rows; ++i) {
    Row row = begin_row(view, i);
    const auto begin = static_cast<std::uint64_t>(row.cursor.at() - view.bytes.data());
    if (check != Check::Bounds && begin != expected) {
      fail_at({Place::Kind::Row, view.first_row + i, Place::kNone, begin}, ErrorCode::Corrupt,
              "row %llu begins at 0x%llx, the one before ends at 0x%llx",
              static_cast<ull>(view.first_row + i), static_cast<ull>(begin), static_cast<ull>(expected));
    }
    std::uint32_t fields = 0;
    for (; view.ragged ? !row.cursor.at_end() : fields < view.columns; ++fields) {
      const auto at = static_cast<std::uint64_t>(row.cursor.at() - view.bytes.data());
      const Bytes field = next_field(view, i, fields, row);
      if (check == Check::Utf8 && utf8_error(field) != field.size()) {
        fail_at({Place::Kind::Row, view.first_row + i, fields, at}, ErrorCode::Corrupt,
                "row %llu, field %u at 0x%llx: byte %zu is no UTF-8", static_cast<ull>(view.first_row + i),
                fields, static_cast<ull>(at), utf8_error(field));
      }
    }
    if (fields > view.columns) {
      fail_at({Place::Kind::Row, view.first_row + i, Place::kNone, begin}, ErrorCode::Corrupt,
              "row %llu has %u fields, the block's longest %u", static_cast<ull>(view.first_row + i), fields,
              view.columns);
    }
    expected = static_cast<std::uint64_t>(row.cursor.at() - view.bytes.data());
    if (view.by_ends && !row.cursor.at_end()) {
      fail_at({Place::Kind::Row, view.first_row + i, Place::kNone, begin}, ErrorCode::Corrupt,
              "row %llu: its %u fields end at 0x%llx, the row at 0x%llx",
              static_cast<ull>(view.first_row + i), fields, static_cast<ull>(expected),
              static_cast<ull>(row.end));
    }
  }
  if (check != Check::Bounds && expected != view.bytes.size()) {
    fail(ErrorCode::Corrupt, "the last row ends at 0x%llx, the rows at 0x%zx", static_cast<ull>(expected),
         view.bytes.size());
  }
}

}  // namespace cdd::packed
