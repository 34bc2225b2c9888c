// class TileWriter:
//     """Writes one array of tiles. Arguments and defaults are cdd.tiles.open's."""
//     def __init__(self, path: str, mode: str, options: dict[str, object])
//     def write(self, data: Buffer) -> int              bytes that were taken
//     def append(self, data: Buffer) -> None
//     def put_layer(self, tiles: tuple[Buffer, ...], frames: int) -> None
//     def flush(self) -> None
//     def close(self) -> None
//     def give_up(self) -> None                         as a crash would
//     def progress(self) -> tuple[int | float, ...]     the fields of TileProgress, in their order
//     metadata: str                                     zarr.json as it would be now
//     closed: bool
// def tile_bytes_needed(options: dict[str, object], threads: int) -> int
#include <cerrno>
#include <new>

#include "core/os/folders.h"
#include "ext/arguments.h"
#include "ext/tiles/tile_options.h"
#include "ext/tiles/tile_types.h"

namespace cdd::ext {
namespace {

using tiles::TileOptions;
using tiles::TileWriter;

struct TileWriterObject {
  PyObject_HEAD std::shared_ptr<TileWriter> core;  // set once, by new
  PyObject* filename;
};

TileWriterObject* cast(PyObject* self) { return reinterpret_cast<TileWriterObject*>(self); }

enum class Mode { Replace, Create, Append };

// Only what is an array or a group of them gives way to a new one, and not while somebody writes it.
void make_room(const std::string& path, bool replace) {
  const PathKind kind = kind_of(path);
  if (kind == PathKind::None) return;
  if (kind == PathKind::File || !replace) fail_io(EEXIST, path, "cannot create %s");
  if (names_in(path).empty()) return;
  if (kind_of(path + "/" + tiles::kMetadataKey) != PathKind::File) {
    fail_io(EEXIST, path, "cannot replace %s, which holds other things than an array");
  }
  const auto files = tiles::files_in(path);
  const auto lock = files->lock(tiles::kJournalKey);
  remove_tree(path);
}

// `bound`: frames of an array that is gone on with, 0 for as before.
std::shared_ptr<TileWriter> open_writer(const std::string& path, Mode mode, const TileOptions& options,
                                        std::uint64_t bound) {
  if (mode == Mode::Append) return TileWriter::open(tiles::files_in(path), options, bound);
  static_cast<void>(tiles::bytes_needed(options, 1));  // refuses what is wrong before anything is removed
  make_room(path, mode == Mode::Replace);
  make_folders(path);
  return TileWriter::create(tiles::files_in(path), options);
}

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* target = nullptr;
  const char* mode_name = nullptr;
  PyObject* given = nullptr;
  if (PyArg_ParseTuple(args, "OsO!:TileWriter", &target, &mode_name, &PyDict_Type, &given) == 0)
    return nullptr;
  auto* const self = allocate<TileWriterObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::shared_ptr<TileWriter>();
  self->filename = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  const ModuleState& state = state_of_type(type);
  const std::string path = path_of(target);
  if (PyErr_Occurred() != nullptr) return nullptr;
  self->filename = Ref::borrow(target).release();
  static constexpr Choice<Mode> kModes[] = {{"w", Mode::Replace}, {"x", Mode::Create}, {"a", Mode::Append}};
  Mode mode{};
  TileOptions options;
  std::uint64_t bound = 0;
  const bool opened =
      with_gil(state, nullptr,
               [&] {
                 mode = choose("mode", mode_name, kModes);
                 options = tile_options_of(given);
                 bound = natural_in(given, "bound", 0);
               }) &&
      without_gil(state, self->filename, [&] { self->core = open_writer(path, mode, options, bound); });
  return opened ? owner.release() : nullptr;
}

// One that was not closed is left as by a crash: what it flushed is there, and "a" goes on with it.
void writer_dealloc(PyObject* self) {
  TileWriterObject* const writer = cast(self);
  if (writer->core) {
    const GilRelease released;
    writer->core.reset();
  }
  writer->core.~shared_ptr<TileWriter>();
  Py_CLEAR(writer->filename);
  free_object(self);
}

PyObject* writer_write(PyObject* self, PyObject* data) {
  Buffer bytes;
  if (!bytes.acquire(data, PyBUF_SIMPLE)) return nullptr;
  std::size_t taken = 0;
  const bool done = without_gil(state_of(self), cast(self)->filename, [&] {
    const tiles::WriteResult result = cast(self)->core->write(bytes.bytes());
    if (result.error) cast(self)->core->check();
    taken = bytes.bytes().size() - result.unconsumed.size();
  });
  return done ? PyLong_FromSize_t(taken) : nullptr;
}

PyObject* writer_append(PyObject* self, PyObject* data) {
  Buffer bytes;
  if (!bytes.acquire(data, PyBUF_SIMPLE)) return nullptr;
  if (!without_gil(state_of(self), cast(self)->filename, [&] { cast(self)->core->append(bytes.bytes()); })) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* writer_put_layer(PyObject* self, PyObject* args) {
  PyObject* tuple = nullptr;
  unsigned long long frames = 0;
  if (PyArg_ParseTuple(args, "O!K:put_layer", &PyTuple_Type, &tuple, &frames) == 0) return nullptr;
  const auto n = static_cast<std::size_t>(PyTuple_Size(tuple));
  const std::unique_ptr<Buffer[]> buffers(new (std::nothrow) Buffer[n]);
  if (!buffers) return PyErr_NoMemory();
  std::vector<Bytes> tiles(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!buffers[i].acquire(PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i)), PyBUF_SIMPLE)) return nullptr;
    tiles[i] = buffers[i].bytes();
  }
  if (!without_gil(state_of(self), cast(self)->filename,
                   [&] { cast(self)->core->put_layer(tiles, frames); })) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

template <auto method>
PyObject* writer_call(PyObject* self, PyObject*) {
  if (!without_gil(state_of(self), cast(self)->filename, [&] { (cast(self)->core.get()->*method)(); }))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* writer_progress(PyObject* self, PyObject*) {
  const tiles::TileProgress p = cast(self)->core->progress();
  using K = unsigned long long;
  return Py_BuildValue("(KKKKKKKKKKKddd)", K{p.frames_received}, K{p.frames_encoded}, K{p.frames_readable},
                       K{p.frames_durable}, K{p.received_bytes}, K{p.stored_bytes}, K{p.wasted_bytes},
                       K{p.planes}, K{p.planes_in_use}, K{p.planes_most_in_use}, K{p.stalls},
                       p.scatter_seconds, p.encode_seconds, p.commit_seconds);
}

PyObject* writer_metadata(PyObject* self, void*) {
  std::string text;
  const bool done = with_gil(state_of(self), nullptr, [&] { text = cast(self)->core->metadata(); });
  return done ? PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())) : nullptr;
}

PyObject* writer_closed(PyObject* self, void*) { return PyBool_FromLong(cast(self)->core->is_closed()); }

PyMethodDef methods[] = {
    {"write", writer_write, METH_O, nullptr},
    {"append", writer_append, METH_O, nullptr},
    {"put_layer", writer_put_layer, METH_VARARGS, nullptr},
    {"flush", writer_call<&TileWriter::flush>, METH_NOARGS, nullptr},
    {"close", writer_call<&TileWriter::close>, METH_NOARGS, nullptr},
    {"give_up", writer_call<&TileWriter::give_up>, METH_NOARGS, nullptr},
    {"progress", writer_progress, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"metadata", writer_metadata, nullptr, nullptr, nullptr},
    {"closed", writer_closed, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(writer_new)},
    {Py_tp_dealloc, as_slot(writer_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.TileWriter", sizeof(TileWriterObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

PyObject* tile_bytes_needed(PyObject* module, PyObject* args) {
  PyObject* given = nullptr;
  unsigned threads = 0;
  if (PyArg_ParseTuple(args, "O!I:tile_bytes_needed", &PyDict_Type, &given, &threads) == 0) return nullptr;
  std::uint64_t bytes = 0;
  const bool done = with_gil(state_of_module(module), nullptr,
                             [&] { bytes = tiles::bytes_needed(tile_options_of(given), threads); });
  return done ? PyLong_FromUnsignedLongLong(bytes) : nullptr;
}

bool add_tile_writer_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.tile_writer_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.tile_writer_type && PyModule_AddObjectRef(module, "TileWriter", state.tile_writer_type) == 0;
}

}  // namespace cdd::ext
