// class Superchunks:
//     """The files of a dataset that are open."""
//     def __init__(self, options: dict, max_open: int, on_missing: Callable | None)    those of Reader
//         on_missing(text): called before a FormatError of that text, of a file that is not there; what it
//         raises comes out in its place. It has no reference to this, which no garbage collector sees
//     open_files: int
//     def close(self) -> None     of all files, those in use when they no longer are
//
// class Column:
//     """Rows of a dataset's column, into buffers. It shares its reading methods with Reader."""
//     def __init__(self, layout: (dtype code, dims), prefix: str, files: Superchunks)
//         prefix: of the paths of superchunks, which go on with a number and "__.cdd"
//         name: of the column, for errors
//     def set(self, extents: Buffer, elsewhere: {number: path | Memory | Fetched}, rows: int, name: str) ->
//     None
//         extents: 8 int64 each, as core/dataset/column.h has them
//     def show(self, rows: int) -> None      the same extents, of the last one as many rows as these need
//     def rows_there(self) -> int            how many rows show() may take; looks at the last file again
//     read_into, read_windows, search, rows, layout, closed, close: as Reader
#include "core/dataset/column.h"

#include <new>

#include "ext/arguments.h"
#include "ext/options.h"
#include "ext/store/fetched_type.h"
#include "ext/store/memory_type.h"
#include "ext/store/reader_type.h"

namespace cdd::ext {
namespace {

struct SuperchunksObject {
  PyObject_HEAD std::shared_ptr<Superchunks> core;  // set once, by new
};

struct ColumnObject {
  SourceObject source;  // its core is a Column, and empty before set()
  std::shared_ptr<Superchunks> superchunks;
  RowLayout layout;
  std::string prefix;
};

SuperchunksObject* as_superchunks(PyObject* self) { return reinterpret_cast<SuperchunksObject*>(self); }
ColumnObject* cast(PyObject* self) { return reinterpret_cast<ColumnObject*>(self); }

// Calls a Python function, of any thread; empty for None.
std::function<void(const std::string&)> caller(PyObject* function) {
  if (function == Py_None) return {};
  const std::shared_ptr<PyObject> held(Ref::borrow(function).release(), [](PyObject* object) {
    if (Py_IsInitialized() == 0) return;
    const Gil gil;
    Py_DECREF(object);
  });
  return [held](const std::string& text) {
    const Gil gil;
    const Ref done(PyObject_CallFunction(held.get(), "s", text.c_str()));
    if (!done) throw_python_exception();
  };
}

PyObject* superchunks_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* options = nullptr;
  long long max_open = 0;
  PyObject* on_missing = Py_None;
  if (PyArg_ParseTuple(args, "O!L|O:Superchunks", &PyDict_Type, &options, &max_open, &on_missing) == 0) {
    return nullptr;
  }
  auto* const self = allocate<SuperchunksObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::shared_ptr<Superchunks>();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool made = with_gil(state_of_type(type), nullptr, [&] {
    if (max_open < 1) fail(ErrorCode::InvalidArgument, "max_open is %lld, at least 1", max_open);
    const ReadOptions read = read_options(options);
    self->core = std::make_shared<Superchunks>(Superchunks::Options{
        read.core, read.mapping, static_cast<std::size_t>(max_open), caller(on_missing)});
  });
  return made ? owner.release() : nullptr;
}

void superchunks_dealloc(PyObject* self) {
  as_superchunks(self)->core.~shared_ptr();
  free_object(self);
}

PyObject* superchunks_open_files(PyObject* self, void*) {
  return PyLong_FromSize_t(as_superchunks(self)->core->open_files());
}

PyObject* superchunks_close(PyObject* self, PyObject*) {
  const std::shared_ptr<Superchunks> core = as_superchunks(self)->core;
  if (!without_gil(state_of(self), nullptr, [&] { core->close(); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* column_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* layout = nullptr;
  PyObject* prefix = nullptr;
  PyObject* files = nullptr;
  const ModuleState& state = state_of_type(type);
  if (PyArg_ParseTuple(args, "OUO!:Column", &layout, &prefix,
                       reinterpret_cast<PyTypeObject*>(state.superchunks_type), &files) == 0) {
    return nullptr;
  }
  auto* const self = allocate<ColumnObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->source.core) Handle<Rows>();
  self->source.filename = nullptr;
  new (&self->superchunks) std::shared_ptr<Superchunks>(as_superchunks(files)->core);
  new (&self->layout) RowLayout();
  new (&self->prefix) std::string();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool made = with_gil(state, nullptr, [&] {
    self->layout = parse_layout(layout);
    self->prefix = path_of(prefix);
    if (PyErr_Occurred() != nullptr) throw PythonError();
  });
  return made ? owner.release() : nullptr;
}

void column_dealloc(PyObject* self) {
  ColumnObject* const column = cast(self);
  column->source.core.~Handle<Rows>();
  column->superchunks.~shared_ptr();
  column->layout.~RowLayout();
  column->prefix.~basic_string();
  Py_CLEAR(column->source.filename);
  free_object(self);
}

// Throws PythonError.
Extents::Exceptions exceptions_of(const ModuleState& state, PyObject* elsewhere) {
  Extents::Exceptions exceptions;
  PyObject* number = nullptr;
  PyObject* place = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(elsewhere, &at, &number, &place) != 0;) {
    Extents::Elsewhere found;
    if (MemoryObject* const memory = as_memory(state, place)) {
      found.memory = memory->storage.get();
      found.path = "<memory>";
    } else if (FetchedObject* const fetched = as_fetched(state, place)) {
      found.memory = fetched->storage;
      found.path = fetched->storage->name();
    } else {
      found.path = path_of(place);
    }
    const unsigned long long key = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred() != nullptr) throw PythonError();
    exceptions.emplace(key, std::move(found));
  }
  return exceptions;
}

PyObject* column_set(PyObject* self, PyObject* args) {
  PyObject* given = nullptr;
  PyObject* elsewhere = nullptr;
  unsigned long long rows = 0;
  const char* name = nullptr;
  if (PyArg_ParseTuple(args, "OO!Ks:set", &given, &PyDict_Type, &elsewhere, &rows, &name) == 0) {
    return nullptr;
  }
  ColumnObject* const column = cast(self);
  Buffer buffer;
  if (!buffer.acquire(given, PyBUF_ND)) return nullptr;
  const auto before = std::static_pointer_cast<Column>(column->source.core.get());
  std::shared_ptr<Column> made;
  bool done = with_gil(state_of(self), nullptr, [&] {
    if (buffer.bytes().size() % sizeof(Extent) != 0) {
      fail(ErrorCode::InvalidArgument, "extents are 8 int64 each, not %zu bytes", buffer.bytes().size());
    }
    std::vector<Extent> extents(buffer.bytes().size() / sizeof(Extent));
    if (!extents.empty()) std::memcpy(extents.data(), buffer.bytes().data(), buffer.bytes().size());
    auto shared =
        std::make_shared<const Extents>(extents, column->prefix, exceptions_of(state_of(self), elsewhere));
    made = std::make_shared<Column>(name, column->layout, std::move(shared), rows, column->superchunks);
    column->source.core.set(made);
  });
  if (done && before) {
    done = without_gil(state_of(self), nullptr,
                       [&] { before->extents()->let_go(*made->extents(), *column->superchunks); });
  }
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

// Null with a Python exception set when the column is closed.
std::shared_ptr<Column> open_column(PyObject* self) {
  return std::static_pointer_cast<Column>(open_rows(self));
}

PyObject* column_show(PyObject* self, PyObject* number) {
  const std::shared_ptr<Column> core = open_column(self);
  if (!core) return nullptr;
  const unsigned long long rows = PyLong_AsUnsignedLongLong(number);
  if (rows == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  ColumnObject* const column = cast(self);
  const bool done = with_gil(state_of(self), nullptr, [&] {
    column->source.core.set(
        std::make_shared<Column>(core->name(), column->layout, core->extents(), rows, column->superchunks));
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* column_rows_there(PyObject* self, PyObject*) {
  const std::shared_ptr<Column> core = open_column(self);
  if (!core) return nullptr;
  std::uint64_t rows = 0;
  if (!without_gil(state_of(self), nullptr, [&] { rows = core->rows_there(); })) return nullptr;
  return PyLong_FromUnsignedLongLong(rows);
}

PyObject* column_close(PyObject* self, PyObject*) {
  std::shared_ptr<Rows> core = as_source(self)->core.take();
  if (core && !without_gil(state_of(self), nullptr, [&] { core.reset(); })) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef column_methods[] = {
    {"read_into", as_method(source_read_into), METH_FASTCALL, nullptr},
    {"read_windows", as_method(source_read_windows), METH_FASTCALL, nullptr},
    {"search", as_method(source_search), METH_FASTCALL, nullptr},
    {"set", column_set, METH_VARARGS, nullptr},
    {"show", column_show, METH_O, nullptr},
    {"rows_there", column_rows_there, METH_NOARGS, nullptr},
    {"close", column_close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef column_properties[] = {
    {"rows", source_rows, nullptr, nullptr, nullptr},
    {"layout", source_layout, nullptr, nullptr, nullptr},
    {"closed", source_closed, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot column_slots[] = {
    {Py_tp_new, as_slot(column_new)},
    {Py_tp_dealloc, as_slot(column_dealloc)},
    {Py_tp_methods, column_methods},
    {Py_tp_getset, column_properties},
    {0, nullptr},
};

PyType_Spec column_spec = {"cdd._cdd.Column", sizeof(ColumnObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, column_slots};

PyMethodDef superchunks_methods[] = {
    {"close", superchunks_close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef superchunks_properties[] = {
    {"open_files", superchunks_open_files, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot superchunks_slots[] = {
    {Py_tp_new, as_slot(superchunks_new)},
    {Py_tp_dealloc, as_slot(superchunks_dealloc)},
    {Py_tp_methods, superchunks_methods},
    {Py_tp_getset, superchunks_properties},
    {0, nullptr},
};

PyType_Spec superchunks_spec = {"cdd._cdd.Superchunks", sizeof(SuperchunksObject), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, superchunks_slots};

}  // namespace

bool add_superchunks_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.superchunks_type = PyType_FromModuleAndSpec(module, &superchunks_spec, nullptr);
  return state.superchunks_type && PyModule_AddObjectRef(module, "Superchunks", state.superchunks_type) == 0;
}

bool add_column_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.column_type = PyType_FromModuleAndSpec(module, &column_spec, nullptr);
  return state.column_type && PyModule_AddObjectRef(module, "Column", state.column_type) == 0;
}

}  // namespace cdd::ext
