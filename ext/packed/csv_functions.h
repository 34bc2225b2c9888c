// Functions of the module on CSV text and rows of packed fields; cdd/csv.py calls them.
#pragma once

#include "core/packed/csv_options.h"
#include "ext/packed/packed_types.h"

namespace cdd::ext {

// The options as cdd/packed/options.py gives them: a tuple (delimiter, quote or -1, strict, utf8, comment or
// -1, ragged, blank, skip, columns, max_row_bytes, max_columns). False with a Python exception set.
bool take_csv_options(const ModuleState& state, PyObject* tuple, packed::CsvOptions* options);

// (text, options, out or None) -> (Pages or None, rows, columns, bytes, skipped)
PyObject* csv_pack(PyObject* module, PyObject* args);
// The first rows of text that may go on: (text, options, rows) -> as csv_pack
PyObject* csv_head(PyObject* module, PyObject* args);
// (text, options) -> rows
PyObject* csv_count(PyObject* module, PyObject* args);
// (rows of str or bytes, out or None) -> as csv_pack
PyObject* packed_pack(PyObject* module, PyObject* args);

// (text, options, types or None, masks or None, whether the text is the last, where it goes on) -> (names,
// columns, rows, consumed bytes, where the next goes on); where is (begun, header, lines, rows, skipped,
// offset, columns), a column (type, values, text or None, validity or None, nulls, mask)
PyObject* csv_columns(PyObject* module, PyObject* args);

}  // namespace cdd::ext
