// What _cdd.Reader and _cdd.Column have in common: an object that begins with a core's rows, and the methods
// that read them into buffers.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "core/store/rows.h"
#include "ext/module_state.h"

namespace cdd::ext {

// The beginning of both.
struct SourceObject {
  PyObject_HEAD Handle<Rows> core;  // empty once closed
  PyObject* filename;               // null in memory
};

inline SourceObject* as_source(PyObject* self) { return reinterpret_cast<SourceObject*>(self); }

// Whether an object begins so.
inline bool is_source(const ModuleState& state, PyObject* object) {
  PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return type == state.reader_type || type == state.column_type;
}

// Null with a Python exception set when it is closed.
std::shared_ptr<Rows> open_rows(PyObject* self);

// The number of a row, or of the end of so many, where negative ones count from the end. False, and no
// exception is set, for what is none.
bool row_of(PyObject* object, std::uint64_t rows, std::uint64_t* row);

// A writable view of `out` that is flat or has exactly the shape (lead..., row dims...), or any for a part of
// rows; the core checks its size. False with a Python exception set.
bool acquire_out(PyObject* out, std::initializer_list<std::uint64_t> lead, const RowLayout& layout,
                 bool is_part, Buffer& buffer);
// A view of 64-bit integers.
bool acquire_numbers(PyObject* object, const char* name, Buffer& buffer,
                     std::span<const std::uint64_t>* numbers);
// Cells as Python has them, a tuple of (level_begin, level_end, feature_begin, feature_end, level_step).
// False with a Python exception set.
bool parse_cells(PyObject* tuple, Cells* cells);

// Methods and properties.
PyObject* source_read_into(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* source_read_windows(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* source_search(PyObject* self, PyObject* const* args, Py_ssize_t count);
PyObject* source_rows(PyObject* self, void*);
PyObject* source_layout(PyObject* self, void*);
PyObject* source_closed(PyObject* self, void*);

}  // namespace cdd::ext
