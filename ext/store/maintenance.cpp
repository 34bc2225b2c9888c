// Progress is a function progress(done, total) or None. Ctrl-C and what it raises end the work, with
// everything as it was.
//
// def repair(path: str, output: str, replace: bool, max_chunk_bytes: int, progress: Progress) ->
//     (rows, chunks, complete, [(first chunk, chunks, first row | None, row behind the last | None)],
//      id of the damaged file)
// def truncate(path: str, output: str, replace: bool, rows: int, progress: Progress) -> None
// def compact(path: str, output: str, replace: bool, only_smaller: bool, options: dict, progress: Progress)
// ->
//     (bytes before, bytes after)
// def count_chunks(path: str, max_chunk_bytes: int) -> (chunks that the index shows, whole ones behind them)
#include <chrono>

#include "core/store/rescue/hidden_chunks.h"
#include "core/store/rescue/rewrite.h"

#include "ext/arguments.h"
#include "ext/options.h"

namespace cdd::ext {
namespace {

struct Paths {
  PyObject* source_object = nullptr;
  PyObject* output_object = nullptr;
  int replace = 0;
  std::string source;
  std::string output;

  // False with a Python exception set.
  bool encode() {
    source = path_of(source_object);
    if (PyErr_Occurred() == nullptr) output = path_of(output_object);
    return PyErr_Occurred() == nullptr;
  }
};

constexpr std::chrono::milliseconds kBetweenLooks{20};

// A core's Progress for work without the GIL: now and then it takes the GIL, lets signals be handled and
// calls the caller's function. Throws Cancelled with a Python exception set.
class Watch {
 public:
  Watch(GilRelease& gil, PyObject* callable) : gil_(gil), callable_(callable) {}

  void operator()(std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    bool goes_on = false;
    gil_.pause([&] { goes_on = PyErr_CheckSignals() == 0 && tell_caller(done, total); });
    if (!goes_on) fail(ErrorCode::Cancelled, "ended before it was done");
    next_ = std::chrono::steady_clock::now() + kBetweenLooks;
  }

 private:
  bool tell_caller(std::uint64_t done, std::uint64_t total) const {
    if (callable_ == Py_None) return true;
    const Ref result(PyObject_CallFunction(callable_, "KK", static_cast<unsigned long long>(done),
                                           static_cast<unsigned long long>(total)));
    return static_cast<bool>(result);
  }

  GilRelease& gil_;
  PyObject* callable_;
  std::chrono::steady_clock::time_point next_;
};

// Runs `work(progress)` without the GIL. False with a Python exception set, which has the name of the file it
// is about.
template <class Work>
bool run(PyObject* module, const Paths& paths, PyObject* progress, Work&& work) {
  PyObject* filename = paths.source_object;
  return without_gil(state_of_module(module), filename, [&](GilRelease& gil) {
    try {
      Watch watch(gil, progress);
      work(Progress(std::ref(watch)));
    } catch (const Error& error) {
      if (error.path() == paths.output) filename = paths.output_object;
      throw;
    }
  });
}

PyObject* row_object(const std::optional<std::uint64_t>& row) {
  return number_or_none(row ? *row : Place::kNone);
}

PyObject* lost_object(const std::vector<LostChunks>& lost) {
  Ref list(PyList_New(0));
  for (const LostChunks& gap : lost) {
    if (!list) return nullptr;
    const Ref item(Py_BuildValue("(KKNN)", static_cast<unsigned long long>(gap.first),
                                 static_cast<unsigned long long>(gap.count), row_object(gap.row_begin),
                                 row_object(gap.row_end)));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace

PyObject* repair(PyObject* module, PyObject* args) {
  Paths paths;
  unsigned long long max_chunk_bytes = 0;
  PyObject* progress = nullptr;
  if (PyArg_ParseTuple(args, "UUpKO:repair", &paths.source_object, &paths.output_object, &paths.replace,
                       &max_chunk_bytes, &progress) == 0 ||
      !paths.encode()) {
    return nullptr;
  }
  Salvage found;
  const bool done = run(module, paths, progress, [&](const Progress& tell) {
    found = repair_file(paths.source, paths.output, paths.replace != 0, max_chunk_bytes, tell);
  });
  if (!done) return nullptr;
  return Py_BuildValue("(KnNNN)", static_cast<unsigned long long>(found.rows),
                       static_cast<Py_ssize_t>(found.records.size()), PyBool_FromLong(found.complete),
                       lost_object(found.lost), id_object(found.header.metadata.salt));
}

PyObject* count_chunks(PyObject* module, PyObject* args) {
  PyObject* path = nullptr;
  unsigned long long max_chunk_bytes = 0;
  if (PyArg_ParseTuple(args, "UK:count_chunks", &path, &max_chunk_bytes) == 0) return nullptr;
  Paths paths;
  paths.source_object = path;
  paths.source = path_of(path);
  if (PyErr_Occurred() != nullptr) return nullptr;
  ShownChunks found;
  const bool done = run(module, paths, Py_None, [&](const Progress& tell) {
    found = cdd::count_chunks(paths.source, max_chunk_bytes, tell);
  });
  if (!done) return nullptr;
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(found.shown),
                       static_cast<unsigned long long>(found.hidden));
}

PyObject* truncate(PyObject* module, PyObject* args) {
  Paths paths;
  unsigned long long rows = 0;
  PyObject* progress = nullptr;
  if (PyArg_ParseTuple(args, "UUpKO:truncate", &paths.source_object, &paths.output_object, &paths.replace,
                       &rows, &progress) == 0 ||
      !paths.encode()) {
    return nullptr;
  }
  const bool done = run(module, paths, progress, [&](const Progress& tell) {
    truncate_file(paths.source, paths.output, paths.replace != 0, rows, tell);
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* compact(PyObject* module, PyObject* args) {
  Paths paths;
  int only_smaller = 0;
  PyObject* dict = nullptr;
  PyObject* progress = nullptr;
  if (PyArg_ParseTuple(args, "UUppO!O:compact", &paths.source_object, &paths.output_object, &paths.replace,
                       &only_smaller, &PyDict_Type, &dict, &progress) == 0 ||
      !paths.encode()) {
    return nullptr;
  }
  WriterOptions options;
  if (!with_gil(state_of_module(module), nullptr, [&] { options = chunk_options(dict); })) return nullptr;
  Compacted sizes;
  const bool done = run(module, paths, progress, [&](const Progress& tell) {
    sizes = compact_file(paths.source, paths.output, paths.replace != 0, only_smaller != 0, options, tell);
  });
  if (!done) return nullptr;
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(sizes.bytes_before),
                       static_cast<unsigned long long>(sizes.bytes_after));
}

}  // namespace cdd::ext
