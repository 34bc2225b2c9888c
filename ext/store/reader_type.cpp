// class Reader:
//     """Rows of one store, into buffers. Arrays, indexing and defaults are the Python Reader's."""
//     def __init__(self, source: str | Memory | Fetched | Buffer, options: dict)    ext/options.h
//     rows, chunks, stored_bytes: int;  layout: (dtype code, dims) | None;  user_meta: bytes;  id: str;
//     closed: bool
//     def read_into(self, start: int, stop: int, out: Buffer, cells: Cells = all) -> None
//     def read_windows(self, starts: Buffer, rows: int, out: Buffer, cells: Cells = all) -> None
//         starts: int64 or uint64; cells: (first level, end, first feature, end, level step), out then has
//         any shape
//     def search(self, values: Buffer, is_right: bool, places: Buffer | None) -> int | None
//         values of the rows' dtype, places uint64 or int64; None: returns that of one value
//     def plan(self, starts: Buffer, rows: int) -> bytes    (offset, bytes) of each chunk, as uint64
//     def chunk_rows(self, chunk: int) -> (start, stop)
//     def chunk_info(self, chunk: int) -> (start, stop, codec, raw_bytes, stored_bytes, offset)
//     def verify_chunk(self, chunk: int) -> None
//     def verify_chunks(self, first: int, count: int) -> [(chunk, code, offset | None, text without place)]
//     def is_warm(self, start: int, stop: int | None) -> bool    little, and in memory
//     def refresh(self) -> bool
//     def snapshot(self) -> (id, chunks, rows, digest of the index)    the option as_of of another Reader
//     def close(self) -> None            reads under way in other threads end well
#include "ext/store/reader_type.h"

#include <new>
#include <string>

#include "ext/arguments.h"
#include "ext/options.h"
#include "ext/store/fetched_type.h"
#include "ext/store/memory_type.h"

namespace cdd::ext {
namespace {

ReaderObject* cast(PyObject* self) { return reinterpret_cast<ReaderObject*>(self); }

// Null with a Python exception set when the reader is closed.
std::shared_ptr<Reader> open_core(PyObject* self) {
  return std::static_pointer_cast<Reader>(open_rows(self));
}

PyObject* reader_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* source = nullptr;
  PyObject* dict = nullptr;
  if (PyArg_ParseTuple(args, "OO!:Reader", &source, &PyDict_Type, &dict) == 0) return nullptr;
  auto* const self = allocate<ReaderObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->source.core) Handle<Rows>();
  new (&self->held) Buffer();
  new (&self->warm) Handle<WarmChunks>();
  self->source.filename = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));

  const ModuleState& state = state_of_type(type);
  MemoryObject* const memory = as_memory(state, source);
  FetchedObject* const fetched = as_fetched(state, source);
  std::string path;
  if (PyUnicode_Check(source) != 0) {
    self->source.filename = Ref::borrow(source).release();
    path = path_of(source);
    if (PyErr_Occurred() != nullptr) return nullptr;
  } else if (memory == nullptr && fetched == nullptr && !self->held.acquire(source, PyBUF_SIMPLE)) {
    return nullptr;
  }
  ReadOptions options;
  if (!with_gil(state, nullptr, [&] { options = read_options(dict); })) return nullptr;
  const bool opened = without_gil(state, self->source.filename, [&] {
    std::shared_ptr<Storage> storage;
    if (self->source.filename == nullptr) {
      if (memory != nullptr) {
        storage = memory->storage.get();
      } else if (fetched != nullptr) {
        storage = fetched->storage;
      } else {
        storage = std::make_shared<ViewStorage>(self->held.bytes(), "<bytes>");
      }
    } else {
      storage = open_for_reading(path, options.mapping);
    }
    self->source.core.set(std::make_shared<Reader>(std::move(storage), options.core));
  });
  return opened ? owner.release() : nullptr;
}

void reader_dealloc(PyObject* self) {
  ReaderObject* const reader = cast(self);
  reader->source.core.~Handle<Rows>();
  reader->held.~Buffer();
  reader->warm.~Handle<WarmChunks>();
  Py_CLEAR(reader->source.filename);
  free_object(self);
}

// Whether rows [start, stop) are so few, and so surely in memory, that reading them here and now costs less
// than another thread would. False for all that is not plain numbers of rows that are there.
PyObject* reader_is_warm(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  const std::shared_ptr<Reader> core =
      count == 2 ? std::static_pointer_cast<Reader>(as_source(self)->core.get()) : nullptr;
  std::uint64_t first = 0;
  std::uint64_t end = core ? core->rows() : 0;
  if (!core || !row_of(args[0], end, &first) || (args[1] != Py_None && !row_of(args[1], end, &end)) ||
      end < first) {
    Py_RETURN_FALSE;
  }
  bool warm = false;
  const auto look = [&] { warm = cast(self)->warm_chunks()->is_warm(*core, {first, end - first}); };
  if (!with_gil(state_of(self), as_source(self)->filename, look)) return nullptr;
  return PyBool_FromLong(warm ? 1 : 0);
}

// Runs work(core, chunk) without the GIL for the chunk number that a method got.
template <class Work>
bool for_chunk(PyObject* self, PyObject* number, Work&& work) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return false;
  const unsigned long long chunk = PyLong_AsUnsignedLongLong(number);
  if (chunk == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;
  return without_gil(state_of(self), as_source(self)->filename, [&] { work(*core, chunk); });
}

PyObject* reader_chunk_rows(PyObject* self, PyObject* number) {
  RowRange rows;
  if (!for_chunk(self, number,
                 [&](const Reader& core, std::uint64_t chunk) { rows = core.chunk_rows(chunk); })) {
    return nullptr;
  }
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(rows.first),
                       static_cast<unsigned long long>(rows.first + rows.count));
}

PyObject* reader_chunk_info(PyObject* self, PyObject* number) {
  ChunkInfo info;
  if (!for_chunk(self, number,
                 [&](const Reader& core, std::uint64_t chunk) { info = core.chunk_info(chunk); })) {
    return nullptr;
  }
  return Py_BuildValue(
      "(KKsKKK)", static_cast<unsigned long long>(info.start), static_cast<unsigned long long>(info.stop),
      info.codec.c_str(), static_cast<unsigned long long>(info.raw_bytes),
      static_cast<unsigned long long>(info.stored_bytes), static_cast<unsigned long long>(info.offset));
}

PyObject* reader_verify_chunk(PyObject* self, PyObject* number) {
  if (!for_chunk(self, number, [](const Reader& core, std::uint64_t chunk) { core.verify_chunk(chunk); })) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* reader_verify_chunks(PyObject* self, PyObject* args) {
  unsigned long long first = 0;
  unsigned long long count = 0;
  if (PyArg_ParseTuple(args, "KK:verify_chunks", &first, &count) == 0) return nullptr;
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  std::vector<Error> errors;
  if (!without_gil(state_of(self), as_source(self)->filename,
                   [&] { errors = core->verify_chunks(first, count); })) {
    return nullptr;
  }
  Ref list(PyList_New(0));
  for (const Error& error : errors) {
    if (!list) return nullptr;
    const Place& place = error.place();
    const Ref item(Py_BuildValue("(KsNN)", static_cast<unsigned long long>(place.number),
                                 to_string(error.code()), number_or_none(place.offset),
                                 PyUnicode_DecodeFSDefault(error.text_without_place())));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* reader_plan(PyObject* self, PyObject* args) {
  PyObject* starts = nullptr;
  unsigned long long rows = 0;
  if (PyArg_ParseTuple(args, "OK:plan", &starts, &rows) == 0) return nullptr;
  const std::shared_ptr<Reader> core = open_core(self);
  Buffer buffer;
  std::span<const std::uint64_t> numbers;
  if (!core || !acquire_numbers(starts, "starts", buffer, &numbers)) return nullptr;
  std::vector<ByteRange> ranges;
  if (!without_gil(state_of(self), as_source(self)->filename, [&] { ranges = core->plan(numbers, rows); })) {
    return nullptr;
  }
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(ranges.data()),
                                   static_cast<Py_ssize_t>(ranges.size() * sizeof(ByteRange)));
}

PyObject* reader_refresh(PyObject* self, PyObject*) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  bool more = false;
  if (!without_gil(state_of(self), as_source(self)->filename, [&] { more = core->refresh(); }))
    return nullptr;
  return PyBool_FromLong(more);
}

PyObject* reader_snapshot(PyObject* self, PyObject*) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  Snapshot now;
  if (!without_gil(state_of(self), as_source(self)->filename, [&] { now = core->snapshot(); }))
    return nullptr;
  const Bytes digest(as_bytes(static_cast<const void*>(now.digest.data())), sizeof now.digest);
  return Py_BuildValue("(NKKs)", id_object(now.id), static_cast<unsigned long long>(now.chunks),
                       static_cast<unsigned long long>(now.rows), hex(digest).c_str());
}

PyObject* reader_close(PyObject* self, PyObject*) {
  std::shared_ptr<Rows> core = as_source(self)->core.take();
  // Another thread may still read from the bytes this reader holds; then they are let go of with the object.
  const bool last = core.use_count() == 1;
  if (core && !without_gil(state_of(self), nullptr, [&] { core.reset(); })) return nullptr;
  if (last) cast(self)->held.release();
  Py_RETURN_NONE;
}

PyObject* reader_chunks(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? PyLong_FromUnsignedLongLong(core->chunks()) : nullptr;
}

PyObject* reader_stored_bytes(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  std::uint64_t bytes = 0;
  if (!without_gil(state_of(self), as_source(self)->filename, [&] { bytes = core->storage().size(); }))
    return nullptr;
  return PyLong_FromUnsignedLongLong(bytes);
}

PyObject* reader_user_meta(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? bytes_object(core->header().user_meta) : nullptr;
}

PyObject* reader_id(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? id_object(core->header().metadata.salt) : nullptr;
}

PyMethodDef methods[] = {
    {"read_into", as_method(source_read_into), METH_FASTCALL, nullptr},
    {"read_windows", as_method(source_read_windows), METH_FASTCALL, nullptr},
    {"is_warm", as_method(reader_is_warm), METH_FASTCALL, nullptr},
    {"search", as_method(source_search), METH_FASTCALL, nullptr},
    {"plan", reader_plan, METH_VARARGS, nullptr},
    {"chunk_rows", reader_chunk_rows, METH_O, nullptr},
    {"chunk_info", reader_chunk_info, METH_O, nullptr},
    {"verify_chunk", reader_verify_chunk, METH_O, nullptr},
    {"verify_chunks", reader_verify_chunks, METH_VARARGS, nullptr},
    {"refresh", reader_refresh, METH_NOARGS, nullptr},
    {"snapshot", reader_snapshot, METH_NOARGS, nullptr},
    {"close", reader_close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"rows", source_rows, nullptr, nullptr, nullptr},
    {"chunks", reader_chunks, nullptr, nullptr, nullptr},
    {"stored_bytes", reader_stored_bytes, nullptr, nullptr, nullptr},
    {"layout", source_layout, nullptr, nullptr, nullptr},
    {"user_meta", reader_user_meta, nullptr, nullptr, nullptr},
    {"id", reader_id, nullptr, nullptr, nullptr},
    {"closed", source_closed, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(reader_new)},
    {Py_tp_dealloc, as_slot(reader_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Reader", sizeof(ReaderObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                    slots};

}  // namespace

bool add_reader_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.reader_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.reader_type && PyModule_AddObjectRef(module, "Reader", state.reader_type) == 0;
}

}  // namespace cdd::ext
