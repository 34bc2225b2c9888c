// Iteration over packed rows as tuples of str. A column's last value is kept and given again where the bytes
// are the same: symbols, sides and times of a file repeat, and comparing them costs less than making them. A
// column whose values do not repeat is tried now and then only.
//
// Other values are cut out of a str of some rows with their lengths, where all of that is ASCII: nothing has
// to look at a field's characters then. A tuple that nobody else holds any more is filled again, as zip()
// does.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "ext/packed/packed_types.h"

namespace cdd::ext {
namespace {

struct Last {
  Bytes bytes;
  PyObject* text = nullptr;
  std::uint32_t others = 0;  // values one after the other, each unlike the one before as far as was looked

  bool is_worth_keeping() const noexcept { return others <= 32 || others % 128 == 0; }
};

// Rows as one str, if they are ASCII; null if they are not.
struct Ascii {
  static constexpr std::size_t kBytes = 16 << 10;

  // The field, from the str at hand or the next one. Null where it is not ASCII, or with an exception.
  PyObject* cut(Bytes field, const std::byte* end) {
    if (field.data() < begin || field.data() + field.size() > begin + bytes) {
      if (field.size() > kBytes / 2) return nullptr;
      take(field.data(), std::min<std::size_t>(kBytes, static_cast<std::size_t>(end - field.data())));
    }
    if (text == nullptr) return nullptr;
    const Py_ssize_t at = field.data() - begin;
    return PyUnicode_Substring(text, at, at + static_cast<Py_ssize_t>(field.size()));
  }
  void take(const std::byte* data, std::size_t count) {
    forget();
    begin = data;
    bytes = count;
    std::uint64_t high = 0;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) high |= load<std::uint64_t>(data + i);
    for (; i < count; ++i) high |= static_cast<std::uint64_t>(data[i]);
    if ((high & 0x8080808080808080) != 0) return;
    text =
        PyUnicode_DecodeLatin1(reinterpret_cast<const char*>(data), static_cast<Py_ssize_t>(count), nullptr);
  }
  void forget() {
    Py_CLEAR(text);
    begin = nullptr;
    bytes = 0;
  }

  PyObject* text = nullptr;
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

struct Iteration {
  std::uint64_t row = 0;
  std::uint64_t end = 0;
  std::vector<std::uint32_t> columns;  // those that are wanted; empty: all
  std::vector<Last> last;              // of each wanted column
  std::vector<Bytes> fields;           // of the row at hand
  std::shared_ptr<const packed::RowBlock> block;
  Ascii ascii;
  PyObject* given[2] = {nullptr, nullptr};  // the last two tuples
  std::size_t width = 0;                    // their fields
  std::mutex mutex;

  ~Iteration() {
    forget();
    Py_XDECREF(given[0]);
    Py_XDECREF(given[1]);
  }
  void forget() {
    for (Last& last_one : last) {
      Py_XDECREF(last_one.text);
      last_one = {};
    }
    ascii.forget();
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

bool same(Bytes a, Bytes b) noexcept {
  return a.size() == b.size() &&
         (a.empty() || (a.back() == b.back() && std::memcmp(a.data(), b.data(), a.size()) == 0));
}

PyObject* text_of(const ModuleState& state, Iteration& at, std::size_t k, Bytes field, std::uint64_t column) {
  Last& last = at.last[k];
  if (last.text != nullptr) {
    if (same(last.bytes, field)) {
      last.others = 0;
      return Ref::borrow(last.text).release();
    }
    Py_CLEAR(last.text);
  }
  const Bytes all = at.block->view.bytes;
  PyObject* text = at.ascii.cut(field, all.data() + all.size());
  if (text == nullptr && PyErr_Occurred() == nullptr) text = str_of(state, field, at.row, column);
  if (text == nullptr) throw PythonError();
  ++last.others;
  if (last.is_worth_keeping()) {
    last.bytes = field;
    last.text = Ref::borrow(text).release();
  }
  return text;
}

// A new tuple, or the one before the last, which a loop has let go of by now. From Python 3.14 on a tuple
// keeps its hash, so that it cannot be filled again.
PyObject* tuple_for(Iteration& at, std::size_t fields) {
  const auto wanted = static_cast<Py_ssize_t>(fields);
#if !defined(Py_GIL_DISABLED)
  if (Py_Version < 0x030e0000) {
    std::swap(at.given[0], at.given[1]);
    PyObject*& oldest = at.given[1];
    if (at.width != fields) {
      Py_CLEAR(at.given[0]);
      Py_CLEAR(oldest);
      at.width = fields;
    }
    if (oldest != nullptr && Py_REFCNT(oldest) == 1) return std::exchange(oldest, nullptr);
    Py_CLEAR(oldest);
  }
#endif
  PyObject* const made = PyTuple_New(wanted);
  if (made == nullptr) throw PythonError();
  return made;
}

void keep_tuple([[maybe_unused]] Iteration& at, [[maybe_unused]] PyObject* tuple) {
#if !defined(Py_GIL_DISABLED)
  if (Py_Version < 0x030e0000) at.given[1] = Ref::borrow(tuple).release();
#endif
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
  Ref tuple(tuple_for(at, wanted));
  if (at.columns.empty()) {
    packed::RowCursor cursor = view.cursor(begin, end);
    for (std::size_t j = 0; j < wanted; ++j) {
      Bytes field;
      if (!cursor.next(&field)) packed::read_field(view, row, static_cast<std::uint32_t>(j));
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(j), text_of(state, at, j, field, j));
    }
  } else {
    at.fields.resize(fields);
    packed::read_row(view, row, at.fields);
    for (std::size_t k = 0; k < wanted; ++k) {
      const std::uint32_t column = at.columns[k];
      if (column >= fields) packed::read_field(view, row, column);
      PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(k),
                      text_of(state, at, k, at.fields[column], column));
    }
  }
  keep_tuple(at, tuple.get());
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
  const ModuleState& state = *iterator->packed->state;
  const bool made = with_gil(state, nullptr, [&] {
    move_on(iterator->packed, at);
    tuple = next_tuple(state, at);
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
