// Tables in and out by the Arrow C stream, as Python buffers; cdd/arrow.py makes arrays of them. Knows
// nothing of CSV or datasets.
#pragma once

#include "ext/errors.h"

namespace cdd::ext {

// (fields, batches) -> capsule. fields: (name, format, nullable, format of the dictionary's values or None)
// each. batches: an iterable, read as the consumer asks, of (rows, columns); a column is (rows, nulls,
// buffers, dictionary or None), a buffer an object with one, or None; a dictionary is such a column again.
// Buffers are kept until the consumer lets go of the batch.
PyObject* arrow_stream(PyObject* module, PyObject* args);

// (capsule,) -> (fields, iterator of batches) in the same form, with an offset in each column:
// (rows, nulls, offset, buffers, dictionary or None). The capsule is used up. Raises UnsupportedError for
// nested columns.
PyObject* arrow_batches(PyObject* module, PyObject* capsule);

}  // namespace cdd::ext
