// Iteration over packed rows as tuples of str. A column's last value is kept and given again where the bytes
// are the same: symbols, sides and times of a file repeat, and comparing them costs less than making them.
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "ext/packed/packed_types.h"

namespace cdd::ext {
namespace {

struct Last {
  Bytes bytes;
  PyObject* text = nullptr;
};

struct Iteration {
  std::uint64_t row = 0;
  std::uint64_t end = 0;
  std::vector<std::uint32_t> columns;  // those that are wanted; empty: all
  std::vector<Last> last;              // of each wanted column
  std::vector<Bytes> fields;           // of the row at hand
  std::shared_ptr<const packed::RowBlock> block;
  std::mutex mutex;

  ~Iteration() { forget(); }
  void forget() {
    for (Last& last_one : last) {
      Py_XDECREF(last_one.text);
      last_one = {};
    }
  }
};

struct IteratorObject {
  PyObject_HEAD PackedObject* packed;
  Iteration* iteration;
};

IteratorObject* cast(PyObject* self) { return reinterpret_cast<IteratorObject*>(self); }

void iterator_dealloc(PyObject* self) {
  delete cast(self)->iteration;
  Py_XDECREF(reinterpret_cast<PyObject*>(cast(self)->packed));
  free_object(self);
}

// The block of the next row; values kept point into the one before.
void move_on(PackedObject* packed, Iteration& at) {
  const bool within = at.block && at.row - at.block->first_row < at.block->view.rows;
  if (within) return;
  at.forget();
  at.block = packed->only ? packed->only : packed->shared->file->block_of(at.row);
}

PyObject* text_of(const ModuleState& state, Last& last, Bytes field, std::uint64_t row,
                  std::uint64_t column) {
  if (last.text != nullptr && last.bytes.size() == field.size() &&
      std::memcmp(last.bytes.data(), field.data(), field.size()) == 0) {
    return Ref::borrow(last.text).release();
  }
  PyObject* const text = str_of(state, field, row, column);
  if (text == nullptr) return nullptr;
  Py_XDECREF(last.text);
  last = {field, Ref::borrow(text).release()};
  return text;
}

// A tuple of the row's fields, or those that are wanted.
PyObject* next_tuple(const ModuleState& state, Iteration& at) {
  const packed::RowsView& view = at.block->view;
  const auto row = static_cast<std::uint32_t>(at.row - at.block->first_row);
  const std::size_t fields = view.ragged ? packed::count_fields(view, row) : view.columns;
  const std::size_t wanted = at.columns.empty() ? fields : at.columns.size();
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (!view.bounds(row, &begin, &end) || fields * view.width > end - begin) {
    packed::read_field(view, row,
                       static_cast<std::uint32_t>(fields > 0 ? fields - 1 : 0));  // says what is wrong
  }
  if (at.last.size() < wanted) at.last.resize(wanted);
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(wanted)));
  if (!tuple) throw PythonError();
  packed::RowCursor cursor = view.cursor(begin, end);
  if (at.columns.empty()) {
    for (std::size_t j = 0; j < wanted; ++j) {
      Bytes field;
      if (!cursor.next(&field)) packed::read_field(view, row, static_cast<std::uint32_t>(j));
      PyObject* const text = text_of(state, at.last[j], field, at.row, j);
      if (text == nullptr) throw PythonError();
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(j), text);
    }
    return tuple.release();
  }
  at.fields.resize(fields);
  packed::read_row(view, row, at.fields);
  for (std::size_t k = 0; k < wanted; ++k) {
    const std::uint32_t column = at.columns[k];
    if (column >= fields) packed::read_field(view, row, column);
    PyObject* const text = text_of(state, at.last[k], at.fields[column], at.row, column);
    if (text == nullptr) throw PythonError();
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(k), text);
  }
  return tuple.release();
}

PyObject* iterator_next(PyObject* self) {
  IteratorObject* const iterator = cast(self);
  Iteration& at = *iterator->iteration;
#if defined(Py_GIL_DISABLED)
  const std::lock_guard lock(at.mutex);
#endif
  if (at.row >= at.end) return nullptr;
  PyObject* tuple = nullptr;
  const bool made = with_gil(state_of(self), nullptr, [&] {
    move_on(iterator->packed, at);
    tuple = next_tuple(state_of(self), at);
    ++at.row;
  });
  return made ? tuple : nullptr;
}

PyType_Slot slots[] = {
    {Py_tp_dealloc, as_slot(iterator_dealloc)},
    {Py_tp_iter, as_slot(PyObject_SelfIter)},
    {Py_tp_iternext, as_slot(iterator_next)},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.PackedIterator", sizeof(IteratorObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

// Numbers of columns, negative ones from the end.
bool take_columns(PyObject* given, std::uint32_t columns, std::vector<std::uint32_t>* wanted) {
  const Ref list(PySequence_List(given));
  if (!list) return false;
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i) {
    const Py_ssize_t number = PyNumber_AsSsize_t(PyList_GetItem(list.get(), i), PyExc_IndexError);
    if (number == -1 && PyErr_Occurred() != nullptr) return false;
    const Py_ssize_t at = number < 0 ? number + static_cast<Py_ssize_t>(columns) : number;
    if (at < 0 || at >= static_cast<Py_ssize_t>(columns)) {
      PyErr_Format(PyExc_IndexError, "field %zd of %u", number, columns);
      return false;
    }
    wanted->push_back(static_cast<std::uint32_t>(at));
  }
  if (!wanted->empty()) return true;
  PyErr_SetString(PyExc_ValueError, "columns names none: give at least one");
  return false;
}

}  // namespace

PyObject* new_packed_iterator(PackedObject* packed, PyObject* columns) {
  const ModuleState& state = *packed->state;
  auto* const self = allocate<IteratorObject>(reinterpret_cast<PyTypeObject*>(state.packed_iterator_type));
  if (self == nullptr) return nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool made = with_gil(state, nullptr, [&] { self->iteration = new Iteration; });
  if (!made) return nullptr;
  self->packed = reinterpret_cast<PackedObject*>(Ref::borrow(reinterpret_cast<PyObject*>(packed)).release());
  self->iteration->row = packed->first;
  self->iteration->end = packed->first + packed->count;
  if (columns != nullptr &&
      !take_columns(columns, packed->shared->file->columns(), &self->iteration->columns)) {
    return nullptr;
  }
  return owner.release();
}

bool add_packed_iterator(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.packed_iterator_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.packed_iterator_type != nullptr;
}

}  // namespace cdd::ext
