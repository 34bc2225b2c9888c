// Functions of the module on CSV text and rows of packed fields; cdd/csv.py calls them.
#pragma once

#include "core/packed/columns.h"
#include "ext/packed/packed_types.h"

namespace cdd::ext {

// The options as cdd/packed/options.py gives them: a tuple (delimiter, quote or -1, strict, utf8, comment or
// -1, ragged, blank, skip, columns, max_row_bytes, max_columns). False with a Python exception set.
bool take_csv_options(const ModuleState& state, PyObject* tuple, packed::CsvOptions* options);

// Where reading goes on: (begun, header, lines, rows, skipped, offset, columns).
bool take_where(PyObject* tuple, packed::ColumnsState* state);
PyObject* where_object(const packed::ColumnsState& state);

// A type by its name. Throws InvalidArgument.
packed::Type column_type(const char* name);

// The bytes of a str or bytes, which keeps them. False with TypeError set; `row` is for its text.
bool field_bytes(PyObject* field, unsigned long long row, Bytes* bytes);

// Columns of `rows` rows from a tuple of (type, values, text or None, validity or None, nulls), copied. False
// with a Python exception set.
bool take_columns(const ModuleState& state, PyObject* tuple, std::uint64_t rows, packed::Columns* columns);

// (columns, rows, (delimiter, quote or -1)) -> bytes: CSV text
PyObject* csv_text(PyObject* module, PyObject* args);
// (type, items, rows, dims of a row, number of the first row or -1, step of numbers, (delimiter, quote or -1)
// or None for JSON) -> bytes: a line for each row of an array
PyObject* array_text(PyObject* module, PyObject* args);
// (packed, (delimiter, quote or -1)) -> bytes
PyObject* packed_text(PyObject* module, PyObject* args);

// (columns, rows) of packed rows of version 2: (packed, first row, rows) -> a list as of csv_columns
PyObject* packed_table(PyObject* module, PyObject* args);

// (text, options, out or None) -> (Pages or None, rows, columns, bytes, skipped)
PyObject* csv_pack(PyObject* module, PyObject* args);
// (text, options, whether it is all of it) -> the fields of its first row, () without one, None where more
// text is needed
PyObject* csv_first_row(PyObject* module, PyObject* args);
// (text, options) -> rows
PyObject* csv_count(PyObject* module, PyObject* args);
// (rows of str or bytes, out or None) -> as csv_pack
PyObject* packed_pack(PyObject* module, PyObject* args);

// (text, options, types or None, masks or None, whether the text is the last, where it goes on) -> (names,
// columns, rows, consumed bytes, where the next goes on); where is (begun, header, lines, rows, skipped,
// offset, columns), a column (type, values, text or None, validity or None, nulls, mask)
PyObject* csv_columns(PyObject* module, PyObject* args);

// () -> a stream; (stream, bytes, out) -> (bytes taken, bytes made, whether the input may end here)
PyObject* zstd_stream(PyObject* module, PyObject*);
PyObject* zstd_step(PyObject* module, PyObject* args);

}  // namespace cdd::ext
