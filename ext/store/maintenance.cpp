// def repair(path: str, output: str, replace: bool, max_chunk_bytes: int) ->
//     (rows, chunks, complete, [(first chunk, chunks, first row | None, row behind the last | None)])
// def truncate(path: str, output: str, replace: bool, rows: int) -> None
// def compact(path: str, output: str, replace: bool, only_smaller: bool, options: dict) ->
//     (bytes before, bytes after)
// def whole_end(path: str, max_chunk_bytes: int) -> int    chunks up to the last record that ends an append
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

// Runs `work` without the GIL. False with a Python exception set, which has the name of the file it is about.
template <class Work>
bool run(PyObject* module, const Paths& paths, Work&& work) {
  PyObject* filename = paths.source_object;
  return without_gil(state_of_module(module), filename, [&] {
    try {
      work();
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
  if (PyArg_ParseTuple(args, "UUpK:repair", &paths.source_object, &paths.output_object, &paths.replace,
                       &max_chunk_bytes) == 0 ||
      !paths.encode()) {
    return nullptr;
  }
  Salvage found;
  const bool done = run(module, paths, [&] {
    found = repair_file(paths.source, paths.output, paths.replace != 0, max_chunk_bytes);
  });
  if (!done) return nullptr;
  return Py_BuildValue("(KnNN)", static_cast<unsigned long long>(found.rows),
                       static_cast<Py_ssize_t>(found.records.size()), PyBool_FromLong(found.complete),
                       lost_object(found.lost));
}

PyObject* whole_end(PyObject* module, PyObject* args) {
  PyObject* path = nullptr;
  unsigned long long max_chunk_bytes = 0;
  if (PyArg_ParseTuple(args, "UK:whole_end", &path, &max_chunk_bytes) == 0) return nullptr;
  const std::string name = path_of(path);
  if (PyErr_Occurred() != nullptr) return nullptr;
  std::uint64_t end = 0;
  const bool done = without_gil(state_of_module(module), path, [&] {
    end = salvage(*FileStorage::open(name, FileStorage::Access::Read), max_chunk_bytes).whole_end;
  });
  return done ? PyLong_FromUnsignedLongLong(end) : nullptr;
}

PyObject* truncate(PyObject* module, PyObject* args) {
  Paths paths;
  unsigned long long rows = 0;
  if (PyArg_ParseTuple(args, "UUpK:truncate", &paths.source_object, &paths.output_object, &paths.replace,
                       &rows) == 0 ||
      !paths.encode()) {
    return nullptr;
  }
  const bool done =
      run(module, paths, [&] { truncate_file(paths.source, paths.output, paths.replace != 0, rows); });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* compact(PyObject* module, PyObject* args) {
  Paths paths;
  int only_smaller = 0;
  PyObject* dict = nullptr;
  if (PyArg_ParseTuple(args, "UUppO!:compact", &paths.source_object, &paths.output_object, &paths.replace,
                       &only_smaller, &PyDict_Type, &dict) == 0 ||
      !paths.encode()) {
    return nullptr;
  }
  WriterOptions options;
  if (!with_gil(state_of_module(module), nullptr, [&] { options = chunk_options(dict); })) return nullptr;
  Compacted sizes;
  const bool done = run(module, paths, [&] {
    sizes = compact_file(paths.source, paths.output, paths.replace != 0, only_smaller != 0, options);
  });
  if (!done) return nullptr;
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(sizes.bytes_before),
                       static_cast<unsigned long long>(sizes.bytes_after));
}

}  // namespace cdd::ext
