// class Writer:
//     """Appends buffers of rows to one store. Arrays and defaults are the Python Writer's."""
//     def __init__(self, target: str | Memory, mode: str, layout: (dtype code, dims) | None,
//                  user_meta: Buffer, codec: str, profile: str, level: int, float16: bool,
//                  normalise: str | None, size_scale: float, chunk_bytes: int, chunk_rows: int,
//                  durability: str)      mode "s": as "w", visible with close(); chunk_rows 0: by bytes
//     rows, chunks: int;  layout: (dtype code, dims) | None;  user_meta: bytes;  closed: bool
//     cast_error: (largest absolute, largest relative)
//     def append(self, dtype_code: int, rows: Buffer) -> None      first dimension: the rows
//     def flush(self) -> None
//     def close(self) -> None
//     def give_up(self) -> None         closes without writing; in mode "s" what was there stays
#include <cerrno>
#include <new>

#include "core/store/writer.h"
#include "ext/arguments.h"
#include "ext/store/memory_type.h"

namespace cdd::ext {
namespace {

struct WriterObject {
  PyObject_HEAD std::shared_ptr<Writer> core;  // set once, by new
  PyObject* filename;                          // null for a store in memory
};

WriterObject* cast(PyObject* self) { return reinterpret_cast<WriterObject*>(self); }

struct Arguments {
  PyObject* target;
  PyObject* layout;
  PyObject* user_meta;
  const char* mode;
  const char* codec;
  const char* profile;
  const char* normalise;
  const char* durability;
  int level;
  int float16;
  float size_scale;
  long long chunk_bytes;
  long long chunk_rows;
};

Float16Options float16_options(const Arguments& given) {
  static constexpr Choice<Normalise> kNormalise[] = {{"mid", Normalise::Mid}};
  Float16Options options;
  options.enabled = given.float16 != 0;
  if (given.normalise != nullptr) options.normalise = choose("normalise", given.normalise, kNormalise);
  options.size_scale = given.size_scale;
  return options;
}

RowLayout parse_layout(PyObject* object) {
  if (object == Py_None) return {};
  int code = 0;
  PyObject* dims = nullptr;
  if (PyArg_ParseTuple(object, "iO!", &code, &PyTuple_Type, &dims) == 0) throw PythonError();
  std::array<Py_ssize_t, kMaxRowDims + 1> sizes{};
  const auto count = static_cast<std::size_t>(PyTuple_Size(dims));
  for (std::size_t i = 0; i < count && i < sizes.size(); ++i) {
    sizes[i] = PyLong_AsSsize_t(PyTuple_GetItem(dims, static_cast<Py_ssize_t>(i)));
    if (sizes[i] == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  }
  return layout_of(code, sizes.data(), count);
}

WriterOptions options_of(const Arguments& given) {
  static constexpr Choice<Durability> kDurability[] = {{"none", Durability::None},
                                                       {"commit", Durability::Commit},
                                                       {"batch", Durability::Batch},
                                                       {"always", Durability::Always}};
  WriterOptions options;
  options.layout = parse_layout(given.layout);
  options.codec = given.codec;
  options.profile = choose("profile", given.profile, kProfiles);
  options.level = given.level;
  options.float16 = float16_options(given);
  options.chunk_rows = size_of("chunk_rows", given.chunk_rows);
  options.chunk_bytes = size_of("chunk_bytes", given.chunk_bytes);
  options.durability = choose("durability", given.durability, kDurability);
  Buffer user_meta;
  if (!user_meta.acquire(given.user_meta, PyBUF_SIMPLE)) throw PythonError();
  options.user_meta.assign(user_meta.bytes().begin(), user_meta.bytes().end());
  return options;
}

enum class Mode { Replace, ReplaceAtClose, Create, Append };

// Between the two attempts of Append somebody else may create the file, or remove it.
std::shared_ptr<Writer> open_file(const std::string& path, Mode mode, const WriterOptions& options) {
  using Visible = Writer::Visible;
  if (mode == Mode::ReplaceAtClose) return Writer::create_file(path, true, options, Visible::AtClose);
  if (mode != Mode::Append) return Writer::create_file(path, mode == Mode::Replace, options);
  for (;;) {
    try {
      return Writer::open_file(path, options);
    } catch (const Error& error) {
      if (error.os_errno() != ENOENT) throw;
    }
    try {
      return Writer::create_file(path, false, options);
    } catch (const Error& error) {
      if (error.os_errno() != EEXIST) throw;
    }
  }
}

// Readers of a replaced store keep what they had open, as with a file.
std::shared_ptr<Writer> open_memory(MemoryObject& memory, Mode mode, const WriterOptions& options) {
  const std::shared_ptr<MemoryStorage> old = memory.storage.get();
  std::shared_ptr<Storage> locked = MemoryStorage::lock_for_writing(old);
  // Replaced between the two: then the lock is that of a store nobody has any more.
  if (memory.storage.get() != old) return open_memory(memory, mode, options);
  const bool is_new = locked->size() == 0;
  if (mode == Mode::Create && !is_new) fail_io(EEXIST, locked->name(), "cannot create %s");
  if (mode == Mode::Append && !is_new) return Writer::open(std::move(locked), options);
  const auto fresh = std::make_shared<MemoryStorage>();
  std::shared_ptr<Writer> writer = Writer::create(MemoryStorage::lock_for_writing(fresh), options);
  memory.storage.set(fresh);
  return writer;
}

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  Arguments given{};
  if (PyArg_ParseTuple(args, "OsOOssipzfLLs:Writer", &given.target, &given.mode, &given.layout,
                       &given.user_meta, &given.codec, &given.profile, &given.level, &given.float16,
                       &given.normalise, &given.size_scale, &given.chunk_bytes, &given.chunk_rows,
                       &given.durability) == 0) {
    return nullptr;
  }
  auto* const self = allocate<WriterObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::shared_ptr<Writer>();
  self->filename = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));

  const ModuleState& state = state_of_type(type);
  MemoryObject* const memory = as_memory(state, given.target);
  std::string path;
  if (memory == nullptr) {
    path = path_of(given.target);
    if (PyErr_Occurred() != nullptr) return nullptr;
    self->filename = Ref::borrow(given.target).release();
  }
  static constexpr Choice<Mode> kModes[] = {
      {"w", Mode::Replace}, {"s", Mode::ReplaceAtClose}, {"x", Mode::Create}, {"a", Mode::Append}};
  Mode mode{};
  WriterOptions options;
  const bool opened =
      with_gil(state, nullptr,
               [&] {
                 mode = choose("mode", given.mode, kModes);
                 options = options_of(given);
               }) &&
      without_gil(state, self->filename, [&] {
        self->core = memory != nullptr ? open_memory(*memory, mode, options) : open_file(path, mode, options);
      });
  return opened ? owner.release() : nullptr;
}

// Closing writes and syncs: other threads need not wait for that.
void writer_dealloc(PyObject* self) {
  WriterObject* const writer = cast(self);
  if (writer->core) {
    const GilRelease released;
    writer->core.reset();
  }
  writer->core.~shared_ptr<Writer>();
  Py_CLEAR(writer->filename);
  free_object(self);
}

PyObject* writer_append(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "append takes 2 arguments, got %zd", count);
    return nullptr;
  }
  const long code = PyLong_AsLong(args[0]);
  if (code == -1 && PyErr_Occurred() != nullptr) return nullptr;
  Buffer rows;
  if (!rows.acquire(args[1], PyBUF_ND)) return nullptr;
  const Py_buffer& view = rows.view();
  if (view.ndim < 1) {
    PyErr_SetString(PyExc_ValueError, "rows need a first dimension: one row is appended as row[None]");
    return nullptr;
  }
  const bool done = without_gil(state_of(self), cast(self)->filename, [&] {
    const RowLayout layout =
        layout_of(static_cast<int>(code), view.shape + 1, static_cast<std::size_t>(view.ndim) - 1);
    const auto n_rows = static_cast<std::uint64_t>(view.shape[0]);
    if (rows.bytes().size() != n_rows * layout.row_bytes()) {
      fail(ErrorCode::InvalidArgument, "%llu rows of %u bytes are not the buffer's %zu",
           static_cast<unsigned long long>(n_rows), layout.row_bytes(), rows.bytes().size());
    }
    cast(self)->core->append(layout, rows.bytes(), n_rows);
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

PyObject* writer_layout(PyObject* self, void*) { return ask<&Writer::layout>(self, layout_object); }

PyObject* writer_user_meta(PyObject* self, void*) { return ask<&Writer::user_meta>(self, bytes_object); }

PyObject* writer_closed(PyObject* self, void*) { return ask<&Writer::is_closed>(self, PyBool_FromLong); }

PyObject* writer_cast_error(PyObject* self, void*) {
  return ask<&Writer::cast_error>(self, [](const CastError& error) {
    return Py_BuildValue("(dd)", error.max_absolute, error.max_relative);
  });
}

PyMethodDef methods[] = {
    {"append", as_method(writer_append), METH_FASTCALL, nullptr},
    {"flush", writer_call<&Writer::flush>, METH_NOARGS, nullptr},
    {"close", writer_call<&Writer::close>, METH_NOARGS, nullptr},
    {"give_up", writer_call<&Writer::give_up>, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"rows", writer_rows, nullptr, nullptr, nullptr},
    {"chunks", writer_chunks, nullptr, nullptr, nullptr},
    {"layout", writer_layout, nullptr, nullptr, nullptr},
    {"user_meta", writer_user_meta, nullptr, nullptr, nullptr},
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

bool add_writer_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.writer_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.writer_type && PyModule_AddObjectRef(module, "Writer", state.writer_type) == 0;
}

}  // namespace cdd::ext
