// The functions of _cdd over several columns of a dataset.
#pragma once

#include "ext/module_state.h"

namespace cdd::ext {

// read_columns([(Column, starts, rows, out, cells | None), ...]): windows of several columns in one call.
PyObject* read_columns_of(PyObject* module, PyObject* columns);

// asof(left, ranges, right, direction, tolerance, exact, left_factor, right_factor, out): joined rows as
// int64, -1 for none; tolerance -1: any.
PyObject* asof(PyObject* module, PyObject* args);

// content_hash(buffer) -> 16 bytes: the first of BLAKE3.
PyObject* content_hash(PyObject* module, PyObject* bytes);

}  // namespace cdd::ext
