// Packed rows and CSV for C: views without a handle, text packed into the caller's memory.
#include "core/packed/pack.h"

#include "capi/border.h"
#include "core/packed/packed_file.h"

using namespace cdd;
using namespace cdd::capi;

namespace {

// The view as the core knows it. The struct is the caller's: its size is looked at, its numbers are what
// cdd_packed_open gave.
packed::RowsView view_of(const cdd_packed* given) {
  need(given, "packed");
  if (given->struct_size < sizeof(cdd_packed) || given->version != 1 || given->bytes == nullptr) {
    fail(ErrorCode::InvalidArgument, "packed is no view that cdd_packed_open made");
  }
  packed::RowsView view;
  view.bytes = {as_bytes(given->bytes), static_cast<std::size_t>(given->size)};
  view.offsets = view.bytes.data() + packed::kHeaderBytes;
  view.rows = static_cast<std::uint32_t>(given->rows);
  view.columns = given->fields;
  return view;
}

void check_row(const packed::RowsView& view, std::uint64_t row) {
  if (row < view.rows) return;
  fail_at({Place::Kind::Row, row, Place::kNone, Place::kNone}, ErrorCode::OutOfRange, "row %llu of %u",
          static_cast<unsigned long long>(row), view.rows);
}

void give_field(Bytes bytes, cdd_field* out) noexcept {
  *out = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void open_view(Bytes bytes, packed::Check check, cdd_packed* out) {
  const packed::Header header = packed::parse_header(bytes);
  if (header.version != 1) {
    fail(ErrorCode::Unsupported, "packed rows of version %u are no view: version 1 is", header.version);
  }
  const packed::RowsView view = packed::open_version1(bytes);
  packed::check_rows(view, check);
  cdd_packed known{};
  known.version = 1;
  known.bytes = bytes.data();
  known.size = bytes.size();
  known.rows = view.rows;
  known.fields = view.columns;
  give(known, out, "cdd_packed");
}

std::uint8_t or_default(std::uint8_t given, char otherwise) noexcept {
  return given != 0 ? given : static_cast<std::uint8_t>(otherwise);
}

packed::CsvOptions options_of(const cdd_csv_options& given) {
  need_zero(given.reserved, "cdd_csv_options.reserved");
  need_zero(given.reserved2, "cdd_csv_options.reserved2");
  packed::CsvOptions options;
  options.dialect.delimiter = or_default(given.delimiter, ',');
  options.dialect.quote = or_default(given.quote, '"');
  options.dialect.quotes = given.no_quotes == 0;
  options.has_comment = given.comment != 0;
  options.comment = given.comment;
  options.strict = given.lenient == 0;
  options.utf8 = given.any_bytes == 0;
  options.ragged = static_cast<packed::Ragged>(one_of(given.ragged, 3, "cdd_csv_options.ragged"));
  options.blank = static_cast<packed::Blank>(one_of(given.blank, 3, "cdd_csv_options.blank"));
  options.skip_lines = given.skip_lines;
  if (given.columns != nullptr) options.columns.assign(given.columns, given.columns + given.ncolumns);
  if (given.max_row_bytes != 0) options.max_row_bytes = given.max_row_bytes;
  if (given.max_columns != 0) options.max_columns = given.max_columns;
  return options;
}

Bytes bytes_of(const void* data, std::size_t size, const char* name) {
  if (size != 0) need(data, name);
  return {as_bytes(data), size};
}

}  // namespace

cdd_status cdd_packed_open(const void* bytes, size_t size, uint32_t check, cdd_packed* out,
                           cdd_error* error) {
  return guarded(error, [&] {
    open_view(bytes_of(bytes, size, "bytes"), static_cast<packed::Check>(one_of(check, 4, "check")), out);
  });
}

cdd_status cdd_packed_row(const cdd_packed* given, uint64_t row, cdd_field* out, size_t fields,
                          cdd_error* error) {
  return guarded(error, [&] {
    const packed::RowsView view = view_of(given);
    check_row(view, row);
    if (fields < view.columns) {
      fail(ErrorCode::InvalidArgument, "out has %zu places, a row %u fields", fields, view.columns);
    }
    if (view.columns != 0) need(out, "out");
    const auto i = static_cast<std::uint32_t>(row);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    if (!view.bounds(i, &begin, &end)) packed::read_field(view, i, 0);  // says what is wrong
    packed::RowCursor cursor = view.cursor(begin, end);
    for (std::uint32_t j = 0; j < view.columns; ++j) {
      Bytes field;
      if (!cursor.next(&field)) packed::read_field(view, i, j);
      give_field(field, out + j);
    }
  });
}

cdd_status cdd_packed_field(const cdd_packed* given, uint64_t row, uint32_t field, cdd_field* out,
                            cdd_error* error) {
  return guarded(error, [&] {
    const packed::RowsView view = view_of(given);
    check_row(view, row);
    need(out, "out");
    if (field >= view.columns) {
      fail_at({Place::Kind::Row, row, field, Place::kNone}, ErrorCode::OutOfRange, "field %u of %u", field,
              view.columns);
    }
    const auto i = static_cast<std::uint32_t>(row);
    Bytes bytes;
    if (!packed::find_field(view, i, field, &bytes)) bytes = packed::read_field(view, i, field);
    give_field(bytes, out);
  });
}

cdd_status cdd_csv_pack(const void* text, size_t text_bytes, const cdd_csv_options* given, void* out,
                        size_t out_bytes, uint64_t* used, cdd_packed* view, cdd_error* error) {
  return guarded(error, [&] {
    const packed::CsvOptions options = options_of(taken(given, "cdd_csv_options"));
    std::uint64_t needed = 0;
    try {
      packed::pack_csv(options, bytes_of(text, text_bytes, "text"), [&](std::uint64_t bytes) {
        needed = bytes;
        if (used != nullptr) *used = bytes;
        if (out == nullptr || bytes > out_bytes) {
          fail(ErrorCode::Limit, "out has %zu bytes, the packed rows %llu", out == nullptr ? 0 : out_bytes,
               static_cast<unsigned long long>(bytes));
        }
        return MutableBytes(static_cast<std::byte*>(out), static_cast<std::size_t>(bytes));
      });
    } catch (const Error& what) {
      if (out == nullptr && needed != 0 && what.code() == ErrorCode::Limit) return;  // asked for the size
      throw;
    }
    if (view == nullptr) return;
    open_view({static_cast<const std::byte*>(out), static_cast<std::size_t>(needed)}, packed::Check::Header,
              view);
  });
}
