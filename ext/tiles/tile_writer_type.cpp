// class TileWriter:
//     """Writes an array of tiles, and its smaller scales. Arguments and defaults are cdd.tiles.open's."""
//     def __init__(self, path: str, mode: str, options: dict[str, object])
//     def write(self, data: Buffer) -> int              bytes that were taken
//     def append(self, data: Buffer) -> None            whole frames
//     def put_layer(self, tiles: tuple[Buffer, ...], frames: int) -> None
//     def flush(self) -> None
//     def close(self) -> None
//     def give_up(self) -> None                         as a crash would
//     def progress(self, scale: int) -> tuple[int | float, ...]     the fields of TileProgress, in order
//     def metadata(self, scale: int) -> str             its zarr.json as it would be now
//     scales: int
//     closed: bool
// def tile_bytes_needed(options: dict[str, object], threads: int) -> int
#include <cerrno>
#include <new>

#include "core/os/folders.h"
#include "core/os/publish.h"
#include "core/threads/for_each.h"
#include "ext/arguments.h"
#include "ext/tiles/tile_options.h"
#include "ext/tiles/tile_types.h"

namespace cdd::ext {
namespace {

using tiles::PyramidOptions;
using tiles::TilePyramid;

struct TileWriterObject {
  PyObject_HEAD std::shared_ptr<TilePyramid> core;  // set once, by new
  PyObject* filename;
};

TileWriterObject* cast(PyObject* self) { return reinterpret_cast<TileWriterObject*>(self); }

enum class Mode { Replace, Create, Append };

bool has_file(const std::string& folder, const char* key) {
  return kind_of(folder + "/" + key) == PathKind::File;
}

// The journals of an array or a group of them, locked: a writer has its own all along, so Locked while there
// is one.
std::vector<std::unique_ptr<tiles::ArrayFile>> lock_journals(const std::string& path) {
  std::vector<std::unique_ptr<tiles::ArrayFile>> locks;
  const auto lock = [&](const std::string& folder) {
    if (has_file(folder, tiles::kJournalKey)) {
      locks.push_back(tiles::files_in(folder)->lock(tiles::kJournalKey));
    }
  };
  lock(path);
  for (const std::string& name : names_in(path)) lock(path + "/" + name);
  return locks;
}

// What stands where a new array comes. Only an array, a group of them, or what one that failed has left gives
// way, and not while somebody writes it. It lies beside, under another name, until the new one is there:
// where that fails it comes back, and nothing of the new one stays.
class Room {
 public:
  Room(std::string path, bool replace) : path_(std::move(path)) {
    const PathKind kind = kind_of(path_);
    if (kind == PathKind::None) return;
    if (kind == PathKind::File || !replace) fail_io(EEXIST, path_, "cannot create %s");
    const std::vector<std::string> names = names_in(path_);
    if (names.empty()) return;
    const bool is_left_over = names.size() == 1 && has_file(path_, tiles::kJournalKey);
    if (!is_left_over && !has_file(path_, tiles::kMetadataKey)) {
      fail_io(EEXIST, path_, "cannot replace %s, which holds other things than an array");
    }
    static_cast<void>(lock_journals(path_));
    aside_ = temporary_beside(path_);
    rename_tree(path_, aside_);
  }
  ~Room() {
    if (is_taken_) return;
    try {
      // Another writer may have come to the same place first: its array is none of what failed here.
      const auto locks = lock_journals(path_);
      remove_tree(path_);
      if (!aside_.empty()) rename_tree(aside_, path_);
    } catch (const Error&) {
      // The error that led here is told; what was there still lies beside.
    }
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  void take() {
    is_taken_ = true;
    if (!aside_.empty()) remove_tree(aside_);
  }

 private:
  std::string path_, aside_;
  bool is_taken_ = false;
};

// `bound`: frames of an array that is gone on with, 0 for as before. `group`: zarr.json of a pyramid.
std::shared_ptr<TilePyramid> open_writer(const std::string& path, Mode mode, const PyramidOptions& options,
                                         std::uint64_t bound, const std::string& group) {
  const auto files = [&](unsigned k) {
    return tiles::files_in(options.scales == 1 ? path : path + "/" + std::to_string(k));
  };
  if (mode == Mode::Append) return TilePyramid::open(files, options, bound);
  static_cast<void>(tiles::bytes_needed(options, threads()));  // refuses before anything is moved
  Room room(path, mode == Mode::Replace);
  make_folders(path);
  if (!group.empty()) {
    tiles::files_in(path)->publish(tiles::kMetadataKey, {as_bytes(group.data()), group.size()});
    for (unsigned k = 0; k < options.scales; ++k) make_folders(path + "/" + std::to_string(k));
  }
  std::shared_ptr<TilePyramid> made = TilePyramid::create(files, options);
  room.take();
  return made;
}

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* target = nullptr;
  const char* mode_name = nullptr;
  PyObject* given = nullptr;
  if (PyArg_ParseTuple(args, "OsO!:TileWriter", &target, &mode_name, &PyDict_Type, &given) == 0)
    return nullptr;
  auto* const self = allocate<TileWriterObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::shared_ptr<TilePyramid>();
  self->filename = nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  const ModuleState& state = state_of_type(type);
  const std::string path = path_of(target);
  if (PyErr_Occurred() != nullptr) return nullptr;
  self->filename = Ref::borrow(target).release();
  static constexpr Choice<Mode> kModes[] = {{"w", Mode::Replace}, {"x", Mode::Create}, {"a", Mode::Append}};
  Mode mode{};
  PyramidOptions options;
  std::uint64_t bound = 0;
  std::string group;
  const bool opened = with_gil(state, nullptr,
                               [&] {
                                 mode = choose("mode", mode_name, kModes);
                                 options = tile_options_of(given);
                                 bound = natural_in(given, "bound", 0);
                                 group = text_in(given, "group", "");
                               }) &&
                      without_gil(state, self->filename,
                                  [&] { self->core = open_writer(path, mode, options, bound, group); });
  return opened ? owner.release() : nullptr;
}

// One that was not closed is left as by a crash: what it flushed is there, and "a" goes on with it.
void writer_dealloc(PyObject* self) {
  TileWriterObject* const writer = cast(self);
  if (writer->core) {
    const GilRelease released;
    writer->core.reset();
  }
  writer->core.~shared_ptr<TilePyramid>();
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
    if (result.error == ErrorCode::OutOfRange)
      cast(self)->core->append_frames(bytes.bytes());  // says why not
    taken = bytes.bytes().size() - result.unconsumed.size();
  });
  return done ? PyLong_FromSize_t(taken) : nullptr;
}

PyObject* writer_append(PyObject* self, PyObject* data) {
  Buffer bytes;
  if (!bytes.acquire(data, PyBUF_SIMPLE)) return nullptr;
  if (!without_gil(state_of(self), cast(self)->filename,
                   [&] { cast(self)->core->append_frames(bytes.bytes()); })) {
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

// The writer of one scale; null with IndexError set.
tiles::TileWriter* scale_of(PyObject* self, PyObject* number) {
  const std::size_t k = PyLong_AsSize_t(number);
  if (k == static_cast<std::size_t>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  if (k < cast(self)->core->scales()) return &cast(self)->core->scale(k);
  PyErr_Format(PyExc_IndexError, "scale %zu is not one of %zu", k, cast(self)->core->scales());
  return nullptr;
}

PyObject* writer_progress(PyObject* self, PyObject* number) {
  const tiles::TileWriter* const writer = scale_of(self, number);
  if (writer == nullptr) return nullptr;
  const tiles::TileProgress p = writer->progress();
  using K = unsigned long long;
  return Py_BuildValue("(KKKKKKKKKKKddd)", K{p.frames_received}, K{p.frames_encoded}, K{p.frames_readable},
                       K{p.frames_durable}, K{p.received_bytes}, K{p.stored_bytes}, K{p.wasted_bytes},
                       K{p.planes}, K{p.planes_in_use}, K{p.planes_most_in_use}, K{p.stalls},
                       p.scatter_seconds, p.encode_seconds, p.commit_seconds);
}

PyObject* writer_metadata(PyObject* self, PyObject* number) {
  const tiles::TileWriter* const writer = scale_of(self, number);
  if (writer == nullptr) return nullptr;
  std::string text;
  const bool done = with_gil(state_of(self), nullptr, [&] { text = writer->metadata(); });
  return done ? PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())) : nullptr;
}

PyObject* writer_scales(PyObject* self, void*) { return PyLong_FromSize_t(cast(self)->core->scales()); }

PyObject* writer_closed(PyObject* self, void*) { return PyBool_FromLong(cast(self)->core->is_closed()); }

PyMethodDef methods[] = {
    {"write", writer_write, METH_O, nullptr},
    {"append", writer_append, METH_O, nullptr},
    {"put_layer", writer_put_layer, METH_VARARGS, nullptr},
    {"flush", writer_call<&TilePyramid::flush>, METH_NOARGS, nullptr},
    {"close", writer_call<&TilePyramid::close>, METH_NOARGS, nullptr},
    {"give_up", writer_call<&TilePyramid::give_up>, METH_NOARGS, nullptr},
    {"progress", writer_progress, METH_O, nullptr},
    {"metadata", writer_metadata, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"scales", writer_scales, nullptr, nullptr, nullptr},
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
