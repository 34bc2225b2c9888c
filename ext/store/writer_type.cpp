// class Writer:
//     """Appends buffers of rows to one store. Arrays and defaults are the Python Writer's."""
//     def __init__(self, target: str | Memory, mode: str, options: dict)    ext/options.h
//         mode: those of Writer, and "r+", which appends to what is there and creates nothing
//     rows, chunks: int;  layout: (dtype code, dims) | None;  user_meta: bytes;  id: str;  closed: bool
//     cast_error: (largest absolute, largest relative)
//     def append(self, dtype_code: int, rows: Buffer, swap_bytes: int) -> None
//         first dimension: the rows; any strides; swap_bytes: so many of each item are in reverse, 0 for none
//     def flush(self) -> None
//     def close(self) -> None
//     def give_up(self) -> None         closes without writing; with visible="close" what was there stays
#include <cerrno>
#include <new>

#include "core/store/open_or_create.h"
#include "ext/arguments.h"
#include "ext/options.h"
#include "ext/store/memory_type.h"
#include "ext/store/writer_type.h"

namespace cdd::ext {
namespace {

WriterObject* cast(PyObject* self) { return reinterpret_cast<WriterObject*>(self); }

enum class Mode { Replace, Create, Append, Existing };

std::shared_ptr<Writer> open_file(const std::string& path, Mode mode, const WriteOptions& options) {
  if (mode == Mode::Append) return open_or_create(path, options.core);
  if (mode == Mode::Existing) return Writer::open_file(path, options.core);
  return Writer::create_file(path, mode == Mode::Replace, options.core, options.visible);
}

// Readers of a replaced store keep what they had open, as with a file.
std::shared_ptr<Writer> open_memory(MemoryObject& memory, Mode mode, const WriteOptions& options,
                                    std::shared_ptr<MemoryStorage>* unseen) {
  const std::shared_ptr<MemoryStorage> old = memory.storage.get();
  std::shared_ptr<WritableStorage> locked = MemoryStorage::lock_for_writing(old);
  // Replaced between the two: then the lock is that of a store nobody has any more.
  if (memory.storage.get() != old) return open_memory(memory, mode, options, unseen);
  const bool is_new = locked->size() == 0;
  if (mode == Mode::Create && !is_new) fail_io(EEXIST, locked->name(), "cannot create %s");
  if (mode == Mode::Existing && is_new) fail_io(ENOENT, locked->name(), "cannot open %s");
  if ((mode == Mode::Append || mode == Mode::Existing) && !is_new)
    return Writer::open(std::move(locked), options.core);
  const auto fresh = std::make_shared<MemoryStorage>();
  std::shared_ptr<Writer> writer = Writer::create(MemoryStorage::lock_for_writing(fresh), options.core);
  if (options.visible == Writer::Visible::AtClose) {
    *unseen = fresh;
  } else {
    memory.storage.set(fresh);
  }
  return writer;
}

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* target = nullptr;
  const char* mode_name = nullptr;
  PyObject* dict = nullptr;
  if (PyArg_ParseTuple(args, "OsO!:Writer", &target, &mode_name, &PyDict_Type, &dict) == 0) return nullptr;
  auto* const self = allocate<WriterObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::shared_ptr<Writer>();
  new (&self->unseen) std::shared_ptr<MemoryStorage>();
  new (&self->strand) Strand();
  self->process = process_id();
  self->filename = nullptr;
  self->memory = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));

  const ModuleState& state = state_of_type(type);
  MemoryObject* const memory = as_memory(state, target);
  std::string path;
  if (memory == nullptr) {
    path = path_of(target);
    if (PyErr_Occurred() != nullptr) return nullptr;
    self->filename = Ref::borrow(target).release();
  } else {
    self->memory = Ref::borrow(target).release();
  }
  static constexpr Choice<Mode> kModes[] = {
      {"w", Mode::Replace}, {"x", Mode::Create}, {"a", Mode::Append}, {"r+", Mode::Existing}};
  Mode mode{};
  WriteOptions options;
  const auto read_arguments = [&] {
    mode = choose("mode", mode_name, kModes);
    options = write_options(dict);
    if (mode != Mode::Replace && mode != Mode::Create && options.visible == Writer::Visible::AtClose)
      fail(ErrorCode::InvalidArgument, "visible=\"close\" is for new stores, of mode \"w\" or \"x\"");
  };
  const bool opened = with_gil(state, nullptr, read_arguments) && without_gil(state, self->filename, [&] {
                        self->core = memory != nullptr ? open_memory(*memory, mode, options, &self->unseen)
                                                       : open_file(path, mode, options);
                      });
  return opened ? owner.release() : nullptr;
}

// Closing writes and syncs: other threads need not wait for that.
void writer_dealloc(PyObject* self) {
  WriterObject* const writer = cast(self);
  if (writer->core) {
    const GilRelease released;
    // In a forked child what is under way is the parent's.
    if (writer->process == process_id()) Jobs::shared().wait_until_idle(writer->strand);
    writer->core.reset();
  }
  std::destroy_at(&writer->strand);
  writer->core.~shared_ptr<Writer>();
  writer->unseen.~shared_ptr<MemoryStorage>();
  Py_CLEAR(writer->filename);
  Py_CLEAR(writer->memory);
  free_object(self);
}

// The rows of a buffer, which may be strided.
StridedRows strided_rows(const Py_buffer& view, const RowLayout& layout, std::size_t swap_bytes) {
  StridedRows rows;
  rows.first = as_bytes(static_cast<const void*>(view.buf));
  rows.rows = static_cast<std::uint64_t>(view.shape[0]);
  rows.row_stride = view.strides[0];
  rows.ndim = layout.dims().size();
  for (std::size_t i = 0; i < rows.ndim; ++i) {
    rows.dims[i] = layout.dims()[i];
    rows.strides[i] = view.strides[i + 1];
  }
  rows.item_bytes = layout.item_bytes();
  rows.swap_bytes = swap_bytes;
  return rows;
}

PyObject* writer_append(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 3) {
    PyErr_Format(PyExc_TypeError, "append takes 3 arguments, got %zd", count);
    return nullptr;
  }
  const long code = PyLong_AsLong(args[0]);
  const long swap_bytes = PyErr_Occurred() == nullptr ? PyLong_AsLong(args[2]) : 0;
  if (PyErr_Occurred() != nullptr) return nullptr;
  Buffer rows;
  if (!rows.acquire(args[1], PyBUF_STRIDES)) return nullptr;
  const bool done = without_gil(state_of(self), cast(self)->filename, [&] {
    append_buffer(*cast(self)->core, static_cast<int>(code), rows, static_cast<std::size_t>(swap_bytes));
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

template <void (Writer::*method)()>
PyObject* writer_call(PyObject* self, PyObject*) {
  if (!without_gil(state_of(self), cast(self)->filename, [&] { (cast(self)->core.get()->*method)(); }))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* writer_close(PyObject* self, PyObject*) {
  WriterObject* const writer = cast(self);
  if (!without_gil(state_of(self), writer->filename, [&] { close_writer(*writer); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* writer_give_up(PyObject* self, PyObject*) {
  WriterObject* const writer = cast(self);
  const bool done = without_gil(state_of(self), writer->filename, [&] {
    writer->core->give_up();
    writer->unseen.reset();
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

// What `get` says of the writer, as `convert` makes it a Python object. Asking waits for an append under way,
// so it is done without the GIL.
template <auto get, class Convert>
PyObject* ask(PyObject* self, Convert&& convert) {
  decltype((cast(self)->core.get()->*get)()) value{};
  const auto work = [&] { value = (cast(self)->core.get()->*get)(); };
  return without_gil(state_of(self), cast(self)->filename, work) ? convert(value) : nullptr;
}

PyObject* writer_rows(PyObject* self, void*) { return ask<&Writer::rows>(self, PyLong_FromUnsignedLongLong); }

PyObject* writer_chunks(PyObject* self, void*) {
  return ask<&Writer::chunks>(self, PyLong_FromUnsignedLongLong);
}

PyObject* writer_stats(PyObject* self, PyObject*) {
  return ask<&Writer::stats>(self, [](const WriterStats& stats) {
    return Py_BuildValue("(KKKKKK)", stats.rows, stats.waiting_rows, stats.chunks, stats.unsynced_chunks,
                         stats.raw_bytes, stats.stored_bytes);
  });
}

PyObject* writer_layout(PyObject* self, void*) { return ask<&Writer::layout>(self, layout_object); }

PyObject* writer_user_meta(PyObject* self, void*) { return ask<&Writer::user_meta>(self, bytes_object); }

PyObject* writer_id(PyObject* self, void*) { return ask<&Writer::id>(self, id_object); }

PyObject* writer_closed(PyObject* self, void*) { return ask<&Writer::is_closed>(self, PyBool_FromLong); }

PyObject* writer_cast_error(PyObject* self, void*) {
  return ask<&Writer::cast_error>(self, [](const CastError& error) {
    return Py_BuildValue("(dd)", error.max_absolute, error.max_relative);
  });
}

PyMethodDef methods[] = {
    {"append", as_method(writer_append), METH_FASTCALL, nullptr},
    {"flush", writer_call<&Writer::flush>, METH_NOARGS, nullptr},
    {"close", writer_close, METH_NOARGS, nullptr},
    {"give_up", writer_give_up, METH_NOARGS, nullptr},
    {"stats", writer_stats, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"rows", writer_rows, nullptr, nullptr, nullptr},
    {"chunks", writer_chunks, nullptr, nullptr, nullptr},
    {"layout", writer_layout, nullptr, nullptr, nullptr},
    {"user_meta", writer_user_meta, nullptr, nullptr, nullptr},
    {"id", writer_id, nullptr, nullptr, nullptr},
    {"closed", writer_closed, nullptr, nullptr, nullptr},
    {"cast_error", writer_cast_error, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(writer_new)},
    {Py_tp_dealloc, as_slot(writer_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Writer", sizeof(WriterObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                    slots};

}  // namespace

void append_buffer(Writer& writer, int dtype_code, const Buffer& rows, std::size_t swap_bytes) {
  const Py_buffer& view = rows.view();
  if (view.ndim < 1) {
    fail(ErrorCode::InvalidArgument, "rows need a first dimension: one row is appended as row[None]");
  }
  const RowLayout layout = layout_of(dtype_code, view.shape + 1, static_cast<std::size_t>(view.ndim) - 1);
  const auto n_rows = static_cast<std::uint64_t>(view.shape[0]);
  if (rows.bytes().size() != n_rows * layout.row_bytes()) {
    fail(ErrorCode::InvalidArgument, "%llu rows of %u bytes are not the buffer's %zu",
         static_cast<unsigned long long>(n_rows), layout.row_bytes(), rows.bytes().size());
  }
  if (swap_bytes == 0 && PyBuffer_IsContiguous(&view, 'C') != 0) {
    writer.append(layout, rows.bytes(), n_rows);
  } else {
    writer.append(layout, strided_rows(view, layout, swap_bytes));
  }
}

void close_writer(WriterObject& writer) {
  writer.core->close();
  if (writer.unseen) reinterpret_cast<MemoryObject*>(writer.memory)->storage.set(std::move(writer.unseen));
}

bool add_writer_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.writer_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.writer_type && PyModule_AddObjectRef(module, "Writer", state.writer_type) == 0;
}

}  // namespace cdd::ext
