#include "ext/store/rows_source.h"

#include <array>
#include <string>

#include "ext/arguments.h"

namespace cdd::ext {

std::shared_ptr<Rows> open_rows(PyObject* self) {
  std::shared_ptr<Rows> core = as_source(self)->core.get();
  if (core) return core;
  PyObject* const name = as_source(self)->filename;
  if (name != nullptr) {
    PyErr_Format(PyExc_ValueError, "the reader of %R is closed", name);
  } else {
    PyErr_SetString(PyExc_ValueError, "the reader is closed");
  }
  return nullptr;
}

bool row_of(PyObject* object, std::uint64_t rows, std::uint64_t* row) {
  long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  if (number < 0) number += static_cast<long long>(rows);
  *row = static_cast<std::uint64_t>(number);
  return number >= 0 && *row <= rows;
}

namespace {

// Exporters refuse in their own words and with several exception types; the caller gets one, with the reason.
void explain_refusal(PyObject* out) {
  PyErr_Clear();
  Buffer any;
  if (PyObject_CheckBuffer(out) == 0) {
    PyErr_Format(PyExc_TypeError, "out must be a writable buffer, not %R", Py_TYPE(out));
  } else if (!any.acquire(out, PyBUF_FULL_RO)) {
    // The exporter's own exception says it best.
  } else if (any.view().readonly != 0) {
    PyErr_SetString(PyExc_ValueError, "out is read-only");
  } else {
    PyErr_SetString(PyExc_ValueError, "out is not C-contiguous");
  }
}

std::string shape_text(const Py_ssize_t* dims, std::size_t count) {
  std::string text = "(";
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + (count == 1 ? ",)" : ")");
}

}  // namespace

bool acquire_out(PyObject* out, std::initializer_list<std::uint64_t> lead, const RowLayout& layout,
                 bool is_part, Buffer& buffer) {
  if (!buffer.acquire(out, PyBUF_WRITABLE | PyBUF_ND)) {
    explain_refusal(out);
    return false;
  }
  const Py_buffer& view = buffer.view();
  if (view.ndim <= 1 || is_part) return true;
  std::array<Py_ssize_t, kMaxRowDims + 2> wanted{};
  std::size_t count = 0;
  for (const std::uint64_t dim : lead) wanted[count++] = static_cast<Py_ssize_t>(dim);
  for (const std::uint32_t dim : layout.dims()) wanted[count++] = static_cast<Py_ssize_t>(dim);
  const auto ndim = static_cast<std::size_t>(view.ndim);
  if (ndim == count && std::equal(view.shape, view.shape + ndim, wanted.begin())) return true;
  PyErr_Format(PyExc_ValueError, "out has shape %s, needs %s", shape_text(view.shape, ndim).c_str(),
               shape_text(wanted.data(), count).c_str());
  return false;
}

bool acquire_numbers(PyObject* object, const char* name, Buffer& buffer,
                     std::span<const std::uint64_t>* numbers) {
  if (!buffer.acquire(object, PyBUF_ND)) return false;
  if (buffer.view().itemsize != sizeof(std::uint64_t)) {
    PyErr_Format(PyExc_TypeError, "%s must be 64-bit integers", name);
    return false;
  }
  *numbers = {static_cast<const std::uint64_t*>(buffer.view().buf),
              buffer.bytes().size() / sizeof(std::uint64_t)};
  return true;
}

bool parse_cells(PyObject* tuple, Cells* cells) {
  return PyArg_ParseTuple(tuple, "IIIII;cells are five numbers", &cells->level_begin, &cells->level_end,
                          &cells->feature_begin, &cells->feature_end, &cells->level_step) != 0;
}

namespace {

// Whether the arguments are three, or four with the cells last.
bool takes_cells(const char* method, PyObject* const* args, Py_ssize_t count, Cells* cells) {
  if (count == 4) return parse_cells(args[3], cells);
  if (count != 3) PyErr_Format(PyExc_TypeError, "%s takes 3 or 4 arguments, got %zd", method, count);
  return count == 3;
}

// Rows [start, stop), for the core to check against what there is. False with a Python exception set.
bool range_of(PyObject* start, PyObject* stop, RowRange* range) {
  const unsigned long long first = PyLong_AsUnsignedLongLong(start);
  if (first == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;
  const unsigned long long end = PyLong_AsUnsignedLongLong(stop);
  if (end == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;
  if (end < first) {
    PyErr_Format(PyExc_IndexError, "rows %llu to %llu: they end before they begin", first, end);
    return false;
  }
  *range = {first, end - first};
  return true;
}

}  // namespace

PyObject* source_read_into(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Cells cells;
  if (!takes_cells("read_into", args, count, &cells)) return nullptr;
  const std::shared_ptr<Rows> core = open_rows(self);
  if (!core) return nullptr;
  RowRange range;
  Buffer out;
  if (!range_of(args[0], args[1], &range)) return nullptr;
  if (!acquire_out(args[2], {range.count}, core->layout(), count == 4, out)) return nullptr;
  const bool done = without_gil(state_of(self), as_source(self)->filename, [&] {
    core->read_into(range, out.mutable_bytes(), count == 4 ? &cells : nullptr);
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* source_read_windows(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Cells cells;
  if (!takes_cells("read_windows", args, count, &cells)) return nullptr;
  const std::shared_ptr<Rows> core = open_rows(self);
  if (!core) return nullptr;
  Buffer starts;
  Buffer out;
  const unsigned long long rows = PyLong_AsUnsignedLongLong(args[1]);
  if (rows == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  std::span<const std::uint64_t> span;
  if (!acquire_numbers(args[0], "starts", starts, &span)) return nullptr;
  if (!acquire_out(args[2], {span.size(), rows}, core->layout(), count == 4, out)) return nullptr;
  const bool done = without_gil(state_of(self), as_source(self)->filename, [&] {
    core->read_windows(span, rows, out.mutable_bytes(), count == 4 ? &cells : nullptr);
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

// search(values, is_right, places): values of the rows' dtype; their places as 64-bit integers into `places`,
// or, of one value, returned where that is None.
PyObject* source_search(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) {
    PyErr_Format(PyExc_TypeError, "search takes 3 arguments, got %zd", count);
    return nullptr;
  }
  const std::shared_ptr<Rows> core = open_rows(self);
  if (!core) return nullptr;
  const int is_right = PyObject_IsTrue(args[1]);
  Buffer values;
  Buffer places;
  const bool is_one = args[2] == Py_None;
  if (is_right < 0 || !values.acquire(args[0], PyBUF_ND) ||
      (!is_one && !places.acquire(args[2], PyBUF_WRITABLE | PyBUF_ND))) {
    return nullptr;
  }
  std::uint64_t place = 0;
  std::span<std::uint64_t> found(&place, 1);
  if (!is_one) {
    const MutableBytes out = places.mutable_bytes();
    found = {reinterpret_cast<std::uint64_t*>(out.data()), out.size() / sizeof place};
  }
  const bool done = without_gil(state_of(self), as_source(self)->filename, [&] {
    core->search(values.bytes(), is_right != 0 ? Side::Right : Side::Left, found);
  });
  if (!done) return nullptr;
  if (is_one) return PyLong_FromUnsignedLongLong(place);
  Py_RETURN_NONE;
}

PyObject* source_rows(PyObject* self, void*) {
  const std::shared_ptr<Rows> core = open_rows(self);
  return core ? PyLong_FromUnsignedLongLong(core->rows()) : nullptr;
}

PyObject* source_layout(PyObject* self, void*) {
  const std::shared_ptr<Rows> core = open_rows(self);
  return core ? layout_object(core->layout()) : nullptr;
}

PyObject* source_closed(PyObject* self, void*) { return PyBool_FromLong(!as_source(self)->core.get()); }

}  // namespace cdd::ext
