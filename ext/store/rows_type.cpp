// class Rows:
//     """The base of cdd.Reader and a dataset's columns: rows and cells that are runs, without a Python
//     frame, since a window may take no longer to decode than such a frame to run."""
//
//     def _reads(self, core: Reader | Column, dtype: dtype, array: type, empty: Callable) -> None    once
//
//     def read(self, start=0, stop=None, out=None, *, levels=None, features=None) -> array
//
//     def __getitem__(self, key) -> array
//
// Whatever is not of the plainest kind (another type of `out`, lists of levels, a wrong number, everything
// before _reads()) goes as it came to self._read_any or self._get_any, which say what is wrong, too.
#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "ext/errors.h"
#include "ext/store/rows_source.h"

namespace cdd::ext {
namespace {

struct RowsObject {
  PyObject_HEAD std::atomic<SourceObject*> reader;  // null until the others are set
  PyObject* dtype;                                  // of the items, which has a buffer
  PyObject* array;                                  // the type of arrays
  PyObject* empty;                                  // (shape, dtype) -> array
  PyObject* dtype_name;                             // "dtype"
};

RowsObject* cast(PyObject* self) { return reinterpret_cast<RowsObject*>(self); }

// What a call asks for: rows, maybe cells of them, and the shape in which they come.
struct Wanted {
  RowRange rows;
  Cells cells;
  bool has_cells = false;
  std::array<Py_ssize_t, kMaxRowDims + 1> shape{};
  std::size_t ndim = 0;

  void add(std::uint64_t size) { shape[ndim++] = static_cast<Py_ssize_t>(size); }
};

PyObject* rows_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* const self = allocate<RowsObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->reader) std::atomic<SourceObject*>(nullptr);
  return reinterpret_cast<PyObject*>(self);
}

void rows_dealloc(PyObject* self) {
  RowsObject* const rows = cast(self);
  Py_XDECREF(reinterpret_cast<PyObject*>(rows->reader.load()));
  Py_CLEAR(rows->dtype);
  Py_CLEAR(rows->array);
  Py_CLEAR(rows->empty);
  Py_CLEAR(rows->dtype_name);
  free_object(self);
}

PyObject* rows_reads(PyObject* self, PyTypeObject* type, PyObject* const* args, Py_ssize_t count, PyObject*) {
  RowsObject* const rows = cast(self);
  if (count != 4 || !is_source(state_of_type(type), args[0]) || rows->reader.load() != nullptr) {
    PyErr_SetString(PyExc_TypeError, "_reads takes a Reader or Column and three objects, once");
    return nullptr;
  }
  rows->dtype_name = PyUnicode_InternFromString("dtype");
  if (rows->dtype_name == nullptr) return nullptr;
  rows->dtype = Ref::borrow(args[1]).release();
  rows->array = Ref::borrow(args[2]).release();
  rows->empty = Ref::borrow(args[3]).release();
  rows->reader.store(as_source(Ref::borrow(args[0]).release()));
  Py_RETURN_NONE;
}

// The functions below return false, or nothing, for what is not plain. No exception is set then.

// A slice that goes forward; both ends are within `size`, and so is the step.
bool run_of(PyObject* slice, std::uint64_t size, std::uint64_t* begin, std::uint64_t* end,
            std::uint64_t* step) {
  Py_ssize_t first = 0;
  Py_ssize_t last = 0;
  Py_ssize_t every = 0;
  if (size > static_cast<std::uint64_t>(PY_SSIZE_T_MAX)) return false;
  if (PySlice_Unpack(slice, &first, &last, &every) < 0) {
    PyErr_Clear();
    return false;
  }
  PySlice_AdjustIndices(static_cast<Py_ssize_t>(size), &first, &last, every);
  *begin = static_cast<std::uint64_t>(first);
  *end = static_cast<std::uint64_t>(std::max(first, last));
  if (every < 0) return false;
  *step = std::min(static_cast<std::uint64_t>(every), size);
  return true;
}

// One dimension of a row, null for all of it.
bool add_pick(PyObject* key, std::uint32_t size, std::uint32_t* begin, std::uint32_t* end,
              std::uint32_t* step, Wanted* wanted) {
  std::uint64_t first = 0;
  std::uint64_t last = size;
  std::uint64_t every = 1;
  if (key != nullptr && PyLong_CheckExact(key) != 0) {
    if (!row_of(key, size, &first) || first == size) return false;
    last = first + 1;
  } else {
    if (key != nullptr && (PySlice_Check(key) == 0 || !run_of(key, size, &first, &last, &every)))
      return false;
    if (first == last) return false;
    wanted->add((last - first - 1) / every + 1);
  }
  *begin = static_cast<std::uint32_t>(first);
  *end = static_cast<std::uint32_t>(last);
  *step = static_cast<std::uint32_t>(every);
  return first < last;
}

bool add_cells(const RowLayout& layout, PyObject* levels, PyObject* features, Wanted* wanted) {
  if (layout.dims().size() != 2) return false;
  Cells& cells = wanted->cells;
  wanted->has_cells = true;
  std::uint32_t feature_step = 1;
  return add_pick(levels, layout.levels(), &cells.level_begin, &cells.level_end, &cells.level_step, wanted) &&
         add_pick(features, layout.features(), &cells.feature_begin, &cells.feature_end, &feature_step,
                  wanted) &&
         feature_step == 1;
}

void add_whole_rows(const RowLayout& layout, Wanted* wanted) {
  for (const std::uint32_t dim : layout.dims()) wanted->add(dim);
}

// The rows of an index, without their dimension for a number.
bool add_rows(PyObject* key, std::uint64_t rows, Wanted* wanted) {
  std::uint64_t end = 0;
  if (PySlice_Check(key) != 0) {
    std::uint64_t step = 1;
    if (!run_of(key, rows, &wanted->rows.first, &end, &step) || step != 1) return false;
    wanted->rows.count = end - wanted->rows.first;
    wanted->add(wanted->rows.count);
    return true;
  }
  wanted->rows.count = 1;
  return PyLong_CheckExact(key) != 0 && row_of(key, rows, &wanted->rows.first) && wanted->rows.first < rows;
}

Ref new_array(const RowsObject& self, const Wanted& wanted) {
  const Ref shape(PyTuple_New(static_cast<Py_ssize_t>(wanted.ndim)));
  if (!shape) return {};
  for (std::size_t i = 0; i < wanted.ndim; ++i) {
    PyObject* const size = PyLong_FromSsize_t(wanted.shape[i]);
    if (size == nullptr || PyTuple_SetItem(shape.get(), static_cast<Py_ssize_t>(i), size) < 0) return {};
  }
  return Ref(PyObject_CallFunctionObjArgs(self.empty, shape.get(), self.dtype, nullptr));
}

bool is_array_of_items(const RowsObject& self, PyObject* out) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(out)) != self.array) return false;
  const Ref dtype(PyObject_GetAttr(out, self.dtype_name));
  if (!dtype) PyErr_Clear();
  return dtype.get() == self.dtype;
}

// Into `out`, or a new array where that is null. A null result has an exception set.
std::optional<PyObject*> read_wanted(const RowsObject& self, const Rows& core, const Wanted& wanted,
                                     PyObject* out) {
  core.fetch_ahead(wanted.rows.first);  // while the array is asked for its memory
  if (out != nullptr && !is_array_of_items(self, out)) return std::nullopt;
  Ref array = out == nullptr ? new_array(self, wanted) : Ref::borrow(out);
  if (!array) return nullptr;
  Buffer buffer;
  if (!buffer.acquire(array.get(), PyBUF_WRITABLE | PyBUF_ND)) {
    PyErr_Clear();
    return std::nullopt;
  }
  const Py_buffer& view = buffer.view();
  if (static_cast<std::size_t>(view.ndim) != wanted.ndim ||
      !std::equal(view.shape, view.shape + wanted.ndim, wanted.shape.begin())) {
    return std::nullopt;
  }
  SourceObject* const reader = self.reader.load();
  const bool done = without_gil(state_of(reinterpret_cast<PyObject*>(reader)), reader->filename, [&] {
    core.read_into(wanted.rows, buffer.mutable_bytes(), wanted.has_cells ? &wanted.cells : nullptr);
  });
  return done ? array.release() : nullptr;
}

// The reader while it is open and what it reads is known.
std::shared_ptr<Rows> core_of(const RowsObject& self) {
  SourceObject* const reader = self.reader.load();
  return reader == nullptr ? nullptr : reader->core.get();
}

std::optional<PyObject*> read_plain(const RowsObject& self, PyObject* start, PyObject* stop, PyObject* out,
                                    PyObject* levels, PyObject* features) {
  const std::shared_ptr<Rows> core = core_of(self);
  if (!core) return std::nullopt;
  const std::uint64_t rows = core->rows();
  Wanted wanted;
  std::uint64_t end = rows;
  if ((start != nullptr && !row_of(start, rows, &wanted.rows.first)) ||
      (stop != nullptr && !row_of(stop, rows, &end)) || end < wanted.rows.first) {
    return std::nullopt;
  }
  wanted.rows.count = end - wanted.rows.first;
  wanted.add(wanted.rows.count);
  if (levels == nullptr && features == nullptr) {
    add_whole_rows(core->layout(), &wanted);
  } else if (!add_cells(core->layout(), levels, features, &wanted)) {
    return std::nullopt;
  }
  return read_wanted(self, *core, wanted, out);
}

std::optional<PyObject*> get_plain(const RowsObject& self, PyObject* key) {
  const std::shared_ptr<Rows> core = core_of(self);
  if (!core) return std::nullopt;
  Wanted wanted;
  if (PyTuple_Check(key) == 0) {
    if (!add_rows(key, core->rows(), &wanted)) return std::nullopt;
    add_whole_rows(core->layout(), &wanted);
  } else {
    const Py_ssize_t count = PyTuple_Size(key);
    if (count < 2 || count > 3 || !add_rows(PyTuple_GetItem(key, 0), core->rows(), &wanted) ||
        !add_cells(core->layout(), PyTuple_GetItem(key, 1), count == 3 ? PyTuple_GetItem(key, 2) : nullptr,
                   &wanted)) {
      return std::nullopt;
    }
  }
  if (wanted.ndim == 0) return std::nullopt;  // one item is no array
  return read_wanted(self, *core, wanted, nullptr);
}

// Rows that are read whole and then left to NumPy: fewer bytes take less time than finding out which part of
// them a key needs.
constexpr std::uint64_t kNearBytes = std::uint64_t{1} << 20;

// The rows of a number or of a slice of step 1 or -1, and the key that picks the same of them once they are
// read.
Ref near_rows(PyObject* key, std::uint64_t rows, Wanted* wanted) {
  if (PySlice_Check(key) == 0) {
    if (!add_rows(key, rows, wanted)) return {};
    wanted->add(1);
    return Ref(PyLong_FromLong(0));
  }
  Py_ssize_t first = 0;
  Py_ssize_t last = 0;
  Py_ssize_t step = 0;
  if (rows > static_cast<std::uint64_t>(PY_SSIZE_T_MAX)) return {};
  if (PySlice_Unpack(key, &first, &last, &step) < 0) {
    PyErr_Clear();
    return {};
  }
  const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(rows), &first, &last, step);
  if (step != 1 && step != -1) return {};
  wanted->rows.count = static_cast<std::uint64_t>(count);
  wanted->rows.first = count == 0 ? 0 : static_cast<std::uint64_t>(step > 0 ? first : first - (count - 1));
  wanted->add(wanted->rows.count);
  const Ref back(step > 0 ? nullptr : PyLong_FromLong(-1));
  return Ref(PySlice_New(nullptr, nullptr, back.get()));
}

// A part of less than an eighth would keep all of its block alive: then a copy.
PyObject* own_array(Ref found, PyObject* block) {
  Buffer whole;
  Buffer part;
  if (!whole.acquire(block, PyBUF_SIMPLE) || !part.acquire(found.get(), PyBUF_FULL_RO)) {
    PyErr_Clear();
    return found.release();
  }
  const auto* const begin = static_cast<const char*>(whole.view().buf);
  const auto* const at = static_cast<const char*>(part.view().buf);
  const bool is_view = at >= begin && at < begin + whole.view().len;
  if (!is_view || part.view().len >= whole.view().len / 8) return found.release();
  return PyObject_CallMethod(found.get(), "copy", nullptr);
}

std::optional<PyObject*> get_near(const RowsObject& self, PyObject* key) {
  const std::shared_ptr<Rows> core = core_of(self);
  const Py_ssize_t count = PyTuple_Check(key) != 0 ? PyTuple_Size(key) : 1;
  if (!core || count == 0) return std::nullopt;
  Wanted wanted;
  Ref rows = near_rows(PyTuple_Check(key) != 0 ? PyTuple_GetItem(key, 0) : key, core->rows(), &wanted);
  if (!rows || wanted.rows.count > kNearBytes / core->layout().row_bytes()) {
    PyErr_Clear();
    return std::nullopt;
  }
  add_whole_rows(core->layout(), &wanted);
  const auto read = read_wanted(self, *core, wanted, nullptr);
  if (!read || *read == nullptr) return read;
  const Ref block(*read);
  const Ref rest(PyTuple_New(count));
  if (!rest || PyTuple_SetItem(rest.get(), 0, rows.release()) < 0) return nullptr;
  for (Py_ssize_t i = 1; i < count; ++i) {
    if (PyTuple_SetItem(rest.get(), i, Ref::borrow(PyTuple_GetItem(key, i)).release()) < 0) return nullptr;
  }
  Ref found(PyObject_GetItem(block.get(), rest.get()));
  return found ? own_array(std::move(found), block.get()) : nullptr;
}

constexpr std::array<const char*, 5> kArguments = {"start", "stop", "out", "levels", "features"};
constexpr Py_ssize_t kPositional = 3;

// Each argument of read(), null where it is not given or None. False with an exception set.
bool take_arguments(PyObject* const* args, Py_ssize_t count, PyObject* names,
                    std::array<PyObject*, kArguments.size()>* taken) {
  if (count > kPositional) {
    PyErr_Format(PyExc_TypeError, "read() takes at most %zd positional arguments, got %zd", kPositional,
                 count);
    return false;
  }
  std::copy(args, args + count, taken->begin());
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(names, i);
    std::size_t at = 0;
    while (at < kArguments.size() && PyUnicode_CompareWithASCIIString(name, kArguments[at]) != 0) ++at;
    if (at == kArguments.size() || (*taken)[at] != nullptr) {
      PyErr_Format(PyExc_TypeError,
                   at == kArguments.size() ? "read() got an unexpected keyword argument '%U'"
                                           : "read() got multiple values for argument '%U'",
                   name);
      return false;
    }
    (*taken)[at] = args[count + i];
  }
  std::replace(taken->begin() + 1, taken->end(), Py_None, static_cast<PyObject*>(nullptr));
  return true;
}

PyObject* or_none(PyObject* object) { return object == nullptr ? Py_None : object; }

PyObject* rows_read(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  std::array<PyObject*, kArguments.size()> taken{};
  if (!take_arguments(args, count, names, &taken)) return nullptr;
  const auto [start, stop, out, levels, features] = taken;
  if (const auto read = read_plain(*cast(self), start, stop, out, levels, features)) return *read;
  const Ref first = start == nullptr ? Ref(PyLong_FromLong(0)) : Ref::borrow(start);
  if (!first) return nullptr;
  return PyObject_CallMethod(self, "_read_any", "OOOOO", first.get(), or_none(stop), or_none(out),
                             or_none(levels), or_none(features));
}

PyObject* rows_get(PyObject* self, PyObject* key) {
  if (const auto read = get_plain(*cast(self), key)) return *read;
  if (const auto read = get_near(*cast(self), key)) return *read;
  return PyObject_CallMethod(self, "_get_any", "(O)", key);
}

constexpr char kReadDoc[] =
    "read($self, /, start=0, stop=None, out=None, *, levels=None, features=None)\n"
    "--\n\n"
    "Rows [start, stop) as an array of shape (stop - start, *row shape), or into `out`, which is returned.\n"
    "\n"
    "`out` is any writable C-contiguous buffer: an ndarray of that shape and the store's dtype (or flat,\n"
    "with as many items), or that many bytes as bytearray, memoryview or shared memory; also a tensor whose\n"
    "numpy() shares its memory. Negative numbers count from the end, stop=None is the end. Unlike a slice,\n"
    "rows that are not there raise IndexError. Raises ValueError for an `out` of the wrong size, dtype or\n"
    "shape, or a read-only one.\n"
    "\n"
    "Of (N, levels, features) books, `levels` and `features` pick a part of each row: read(a, b,\n"
    "levels=slice(20, 30), features=0) is r[a:b, 20:30, 0]. Each is a slice, a number (whose dimension the\n"
    "result then lacks), or a list of numbers or bools; both together pick a rectangle. The run of levels\n"
    "and features that holds all of them is what is made where the codec can do without the rest: that\n"
    "saves memory, and of a window that is decoded little time.";

PyMethodDef methods[] = {
    {"_reads", as_method(rows_reads), METH_METHOD | METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"read", as_method(rows_read), METH_FASTCALL | METH_KEYWORDS, kReadDoc},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(rows_new)},
    {Py_tp_dealloc, as_slot(rows_dealloc)},
    {Py_tp_methods, methods},
    {Py_mp_subscript, as_slot(rows_get)},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Rows", sizeof(RowsObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

bool add_rows_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.rows_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.rows_type && PyModule_AddObjectRef(module, "Rows", state.rows_type) == 0;
}

}  // namespace cdd::ext
