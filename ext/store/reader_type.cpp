// class Reader:
//     """Rows of one store, into buffers. Arrays, indexing and defaults are the Python Reader's."""
//     def __init__(self, source: str | Memory | Buffer, options: dict)    ext/options.h
//     rows, chunks, stored_bytes: int;  layout: (dtype code, dims) | None;  user_meta: bytes;  id: str;
//     closed: bool
//     def read_into(self, start: int, stop: int | None, out: Buffer, cells: Cells = all) -> None
//     def read_windows(self, starts: Buffer, rows: int, out: Buffer, cells: Cells = all) -> None
//         starts: int64 or uint64; cells: (first level, end, first feature, end), out then has any shape
//     def chunk_rows(self, chunk: int) -> (start, stop)
//     def chunk_info(self, chunk: int) -> (start, stop, codec, raw_bytes, stored_bytes, offset)
//     def verify_chunk(self, chunk: int) -> None
//     def verify_chunks(self, first: int, count: int) -> [(chunk, code, offset | None, text without place)]
//     def refresh(self) -> bool
//     def snapshot(self) -> (id, chunks, rows, digest of the index)    the option as_of of another Reader
//     def close(self) -> None            reads under way in other threads end well
#include "ext/store/reader_type.h"

#include <new>
#include <string>

#include "core/storage/mapped_file.h"
#include "ext/arguments.h"
#include "ext/options.h"
#include "ext/store/memory_type.h"

namespace cdd::ext {
namespace {

ReaderObject* cast(PyObject* self) { return reinterpret_cast<ReaderObject*>(self); }

// Null with a Python exception set when the reader is closed.
std::shared_ptr<Reader> open_core(PyObject* self) {
  std::shared_ptr<Reader> core = cast(self)->core.get();
  if (core) return core;
  PyObject* const name = cast(self)->filename;
  if (name != nullptr) {
    PyErr_Format(PyExc_ValueError, "the reader of %R is closed", name);
  } else {
    PyErr_SetString(PyExc_ValueError, "the reader is closed");
  }
  return nullptr;
}

// Where addresses have 32 bits, a map of a large file would leave little for anything else.
std::shared_ptr<Storage> open_file(const std::string& path, Mapping mapping) {
  if (mapping == Mapping::Preferred && sizeof(void*) < 8) mapping = Mapping::Never;
  if (mapping == Mapping::Always) return MappedStorage::open(path);
  if (mapping == Mapping::Preferred) {
    try {
      return MappedStorage::open(path);
    } catch (const Error&) {
      // Not every file system has maps. What is wrong with the file itself is found again below.
    }
  }
  return FileStorage::open(path, FileStorage::Access::Read);
}

PyObject* reader_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* source = nullptr;
  PyObject* dict = nullptr;
  if (PyArg_ParseTuple(args, "OO!:Reader", &source, &PyDict_Type, &dict) == 0) return nullptr;
  auto* const self = allocate<ReaderObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) Handle<Reader>();
  new (&self->held) Buffer();
  self->filename = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));

  const ModuleState& state = state_of_type(type);
  MemoryObject* const memory = as_memory(state, source);
  std::string path;
  if (PyUnicode_Check(source) != 0) {
    self->filename = Ref::borrow(source).release();
    path = path_of(source);
    if (PyErr_Occurred() != nullptr) return nullptr;
  } else if (memory == nullptr && !self->held.acquire(source, PyBUF_SIMPLE)) {
    return nullptr;
  }
  ReadOptions options;
  if (!with_gil(state, nullptr, [&] { options = read_options(dict); })) return nullptr;
  const bool opened = without_gil(state, self->filename, [&] {
    std::shared_ptr<Storage> storage;
    if (self->filename == nullptr) {
      if (memory != nullptr) {
        storage = memory->storage.get();
      } else {
        storage = std::make_shared<ViewStorage>(self->held.bytes(), "<bytes>");
      }
    } else {
      storage = open_file(path, options.mapping);
    }
    self->core.set(std::make_shared<Reader>(std::move(storage), options.core));
  });
  return opened ? owner.release() : nullptr;
}

void reader_dealloc(PyObject* self) {
  ReaderObject* const reader = cast(self);
  reader->core.~Handle<Reader>();
  reader->held.~Buffer();
  Py_CLEAR(reader->filename);
  free_object(self);
}

// A row number, counted from the end when negative.
bool row_of(PyObject* object, std::uint64_t rows, long long* out) {
  *out = PyLong_AsLongLong(object);
  if (*out == -1 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) return false;
    PyErr_Clear();
    PyErr_Format(PyExc_IndexError, "row %S is not within the store's %llu", object,
                 static_cast<unsigned long long>(rows));
    return false;
  }
  if (*out < 0) *out += static_cast<long long>(rows);
  return true;
}

bool range_of(PyObject* start, PyObject* stop, std::uint64_t rows, RowRange* range) {
  long long first = 0;
  auto end = static_cast<long long>(rows);
  if (!row_of(start, rows, &first) || (stop != Py_None && !row_of(stop, rows, &end))) return false;
  if (first < 0 || end < first || static_cast<std::uint64_t>(end) > rows) {
    PyErr_Format(PyExc_IndexError, "rows %S to %S are not within the store's %llu", start, stop,
                 static_cast<unsigned long long>(rows));
    return false;
  }
  *range = {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(end - first)};
  return true;
}

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

// A writable view of `out` that is flat or has exactly the shape (lead..., row dims...), or any for a part of
// rows; the core checks its size.
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

// Whether the arguments are three, or four with the cells last.
bool takes_cells(const char* method, PyObject* const* args, Py_ssize_t count, Cells* cells) {
  if (count == 4) {
    return PyArg_ParseTuple(args[3], "IIII;cells are four numbers", &cells->level_begin, &cells->level_end,
                            &cells->feature_begin, &cells->feature_end) != 0;
  }
  if (count != 3) PyErr_Format(PyExc_TypeError, "%s takes 3 or 4 arguments, got %zd", method, count);
  return count == 3;
}

PyObject* reader_read_into(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Cells cells;
  if (!takes_cells("read_into", args, count, &cells)) return nullptr;
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  RowRange range;
  Buffer out;
  if (!range_of(args[0], args[1], core->rows(), &range)) return nullptr;
  if (!acquire_out(args[2], {range.count}, core->layout(), count == 4, out)) return nullptr;
  const bool done = without_gil(state_of(self), cast(self)->filename, [&] {
    core->read_into(range, out.mutable_bytes(), count == 4 ? &cells : nullptr);
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* reader_read_windows(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Cells cells;
  if (!takes_cells("read_windows", args, count, &cells)) return nullptr;
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  Buffer starts;
  Buffer out;
  const unsigned long long rows = PyLong_AsUnsignedLongLong(args[1]);
  if (rows == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  if (!starts.acquire(args[0], PyBUF_ND)) return nullptr;
  if (starts.view().itemsize != sizeof(std::uint64_t)) {
    PyErr_SetString(PyExc_TypeError, "starts must be 64-bit integers");
    return nullptr;
  }
  const std::span<const std::uint64_t> span(static_cast<const std::uint64_t*>(starts.view().buf),
                                            starts.bytes().size() / sizeof(std::uint64_t));
  if (!acquire_out(args[2], {span.size(), rows}, core->layout(), count == 4, out)) return nullptr;
  const bool done = without_gil(state_of(self), cast(self)->filename, [&] {
    core->read_windows(span, rows, out.mutable_bytes(), count == 4 ? &cells : nullptr);
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

// Runs work(core, chunk) without the GIL for the chunk number that a method got.
template <class Work>
bool for_chunk(PyObject* self, PyObject* number, Work&& work) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return false;
  const unsigned long long chunk = PyLong_AsUnsignedLongLong(number);
  if (chunk == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;
  return without_gil(state_of(self), cast(self)->filename, [&] { work(*core, chunk); });
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
  if (!without_gil(state_of(self), cast(self)->filename,
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

PyObject* reader_refresh(PyObject* self, PyObject*) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  bool more = false;
  if (!without_gil(state_of(self), cast(self)->filename, [&] { more = core->refresh(); })) return nullptr;
  return PyBool_FromLong(more);
}

PyObject* reader_snapshot(PyObject* self, PyObject*) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  Snapshot now;
  if (!without_gil(state_of(self), cast(self)->filename, [&] { now = core->snapshot(); })) return nullptr;
  const Bytes digest(as_bytes(static_cast<const void*>(now.digest.data())), sizeof now.digest);
  return Py_BuildValue("(NKKs)", id_object(now.id), static_cast<unsigned long long>(now.chunks),
                       static_cast<unsigned long long>(now.rows), hex(digest).c_str());
}

PyObject* reader_close(PyObject* self, PyObject*) {
  std::shared_ptr<Reader> core = cast(self)->core.take();
  // Another thread may still read from the bytes this reader holds; then they are let go of with the object.
  const bool last = core.use_count() == 1;
  if (core && !without_gil(state_of(self), nullptr, [&] { core.reset(); })) return nullptr;
  if (last) cast(self)->held.release();
  Py_RETURN_NONE;
}

PyObject* reader_rows(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? PyLong_FromUnsignedLongLong(core->rows()) : nullptr;
}

PyObject* reader_chunks(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? PyLong_FromUnsignedLongLong(core->chunks()) : nullptr;
}

PyObject* reader_stored_bytes(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  if (!core) return nullptr;
  std::uint64_t bytes = 0;
  if (!without_gil(state_of(self), cast(self)->filename, [&] { bytes = core->storage().size(); }))
    return nullptr;
  return PyLong_FromUnsignedLongLong(bytes);
}

PyObject* reader_layout(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? layout_object(core->layout()) : nullptr;
}

PyObject* reader_user_meta(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? bytes_object(core->header().user_meta) : nullptr;
}

PyObject* reader_id(PyObject* self, void*) {
  const std::shared_ptr<Reader> core = open_core(self);
  return core ? id_object(core->header().metadata.salt) : nullptr;
}

PyObject* reader_closed(PyObject* self, void*) { return PyBool_FromLong(!cast(self)->core.get()); }

PyMethodDef methods[] = {
    {"read_into", as_method(reader_read_into), METH_FASTCALL, nullptr},
    {"read_windows", as_method(reader_read_windows), METH_FASTCALL, nullptr},
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
    {"rows", reader_rows, nullptr, nullptr, nullptr},
    {"chunks", reader_chunks, nullptr, nullptr, nullptr},
    {"stored_bytes", reader_stored_bytes, nullptr, nullptr, nullptr},
    {"layout", reader_layout, nullptr, nullptr, nullptr},
    {"user_meta", reader_user_meta, nullptr, nullptr, nullptr},
    {"id", reader_id, nullptr, nullptr, nullptr},
    {"closed", reader_closed, nullptr, nullptr, nullptr},
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
