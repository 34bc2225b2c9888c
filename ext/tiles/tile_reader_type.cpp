// class TileReader:
//     """Reads boxes of an array of tiles. cdd.tiles.TileReader has NumPy's keys."""
//     def __init__(self, path: str)
//     def read(self, start: tuple[int, ...], count: tuple[int, ...], out: Buffer) -> None
//     def refresh(self) -> bool                         whether the shape has changed
//     def stored(self) -> tuple[int, int, int]          bytes, tiles, tiles that are not stored
//     metadata: str                                     zarr.json, as far as it is understood
//     dtype: int                                        its code
#include <new>

#include "ext/arguments.h"
#include "ext/tiles/tile_types.h"

#include "core/tiles/tile_reader.h"

namespace cdd::ext {
namespace {

using tiles::TileReader;

struct TileReaderObject {
  PyObject_HEAD std::shared_ptr<TileReader> core;  // set once, by new
  PyObject* filename;
};

TileReaderObject* cast(PyObject* self) { return reinterpret_cast<TileReaderObject*>(self); }

PyObject* reader_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* target = nullptr;
  if (PyArg_ParseTuple(args, "O:TileReader", &target) == 0) return nullptr;
  auto* const self = allocate<TileReaderObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::shared_ptr<TileReader>();
  self->filename = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  const std::string path = path_of(target);
  if (PyErr_Occurred() != nullptr) return nullptr;
  self->filename = Ref::borrow(target).release();
  const bool opened = without_gil(state_of_type(type), self->filename,
                                  [&] { self->core = std::make_shared<TileReader>(tiles::files_in(path)); });
  return opened ? owner.release() : nullptr;
}

void reader_dealloc(PyObject* self) {
  cast(self)->core.~shared_ptr<TileReader>();
  Py_CLEAR(cast(self)->filename);
  free_object(self);
}

bool naturals_of(PyObject* tuple, std::vector<std::uint64_t>& out) {
  const Py_ssize_t n = PyTuple_Size(tuple);
  for (Py_ssize_t i = 0; i < n; ++i) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, i));
    if (value == ~0ull && PyErr_Occurred() != nullptr) return false;
    out.push_back(value);
  }
  return n >= 0;
}

PyObject* reader_read(PyObject* self, PyObject* args) {
  PyObject *start_tuple = nullptr, *count_tuple = nullptr, *target = nullptr;
  if (PyArg_ParseTuple(args, "O!O!O:read", &PyTuple_Type, &start_tuple, &PyTuple_Type, &count_tuple,
                       &target) == 0) {
    return nullptr;
  }
  std::vector<std::uint64_t> start, count;
  if (!naturals_of(start_tuple, start) || !naturals_of(count_tuple, count)) return nullptr;
  Buffer out;
  if (!out.acquire(target, PyBUF_WRITABLE)) return nullptr;
  if (!without_gil(state_of(self), cast(self)->filename,
                   [&] { cast(self)->core->read(start, count, out.mutable_bytes()); })) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* reader_refresh(PyObject* self, PyObject*) {
  bool has_changed = false;
  if (!without_gil(state_of(self), cast(self)->filename,
                   [&] { has_changed = cast(self)->core->refresh(); })) {
    return nullptr;
  }
  return PyBool_FromLong(has_changed);
}

PyObject* reader_stored(PyObject* self, PyObject*) {
  TileReader::Stored stored;
  if (!without_gil(state_of(self), cast(self)->filename, [&] { stored = cast(self)->core->stored(); })) {
    return nullptr;
  }
  using K = unsigned long long;
  return Py_BuildValue("(KKK)", K{stored.bytes}, K{stored.tiles}, K{stored.absent_tiles});
}

PyObject* reader_metadata(PyObject* self, void*) {
  std::string text;
  const bool done = with_gil(state_of(self), nullptr, [&] { text = cast(self)->core->metadata()->dump(); });
  return done ? PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())) : nullptr;
}

PyObject* reader_dtype(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(cast(self)->core->metadata()->dtype.code());
}

PyMethodDef methods[] = {
    {"read", reader_read, METH_VARARGS, nullptr},
    {"refresh", reader_refresh, METH_NOARGS, nullptr},
    {"stored", reader_stored, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"metadata", reader_metadata, nullptr, nullptr, nullptr},
    {"dtype", reader_dtype, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(reader_new)},
    {Py_tp_dealloc, as_slot(reader_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.TileReader", sizeof(TileReaderObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

bool add_tile_reader_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.tile_reader_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.tile_reader_type && PyModule_AddObjectRef(module, "TileReader", state.tile_reader_type) == 0;
}

}  // namespace cdd::ext
