// The extension module cdd._cdd: the core's border to CPython, no logic of its own. Limited API 3.11, one
// binary for all later versions; it also compiles without Py_LIMITED_API, for free-threaded builds.
//
// Keywords, defaults and NumPy live in the Python package; here arguments are positional and arrays are
// buffers.
#include <algorithm>
#include <iterator>

#include "core/codec/scheme.h"
#include "core/threads/alone.h"
#include "core/threads/for_each.h"
#include "ext/arrow/arrow.h"
#include "ext/dataset/dataset.h"
#include "ext/errors.h"
#include "ext/os.h"
#include "ext/packed/csv_functions.h"
#include "ext/store/maintenance.h"
#include "ext/tiles/tile_types.h"

namespace {

using cdd::ext::ModuleState;
using cdd::ext::state_of_module;

PyObject* threads(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(cdd::threads()); }

PyObject* set_threads(PyObject* module, PyObject* number) {
  const unsigned long asked = PyLong_AsUnsignedLong(number);
  if (asked == static_cast<unsigned long>(-1) && PyErr_Occurred() != nullptr) return nullptr;
  constexpr unsigned long kMost = static_cast<unsigned>(-1);
  const auto wanted = static_cast<unsigned>(asked < kMost ? asked : kMost);
  if (!cdd::ext::with_gil(state_of_module(module), nullptr, [&] { cdd::set_threads(wanted); }))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* work_alone(PyObject*, PyObject* alone) {
  const int asked = PyObject_IsTrue(alone);
  if (asked < 0) return nullptr;
  cdd::work_alone(asked != 0);
  Py_RETURN_NONE;
}

PyObject* begin_finalization(PyObject*, PyObject*) {
  cdd::ext::begin_finalization();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"_begin_finalization", begin_finalization, METH_NOARGS, nullptr},
    {"threads", threads, METH_NOARGS, nullptr},
    {"set_threads", set_threads, METH_O, nullptr},
    {"work_alone", work_alone, METH_O, nullptr},
    {"publish", cdd::ext::publish_file, METH_VARARGS, nullptr},
    {"tile_bytes_needed", cdd::ext::tile_bytes_needed, METH_VARARGS, nullptr},
    {"repair", cdd::ext::repair, METH_VARARGS, nullptr},
    {"count_chunks", cdd::ext::count_chunks, METH_VARARGS, nullptr},
    {"truncate", cdd::ext::truncate, METH_VARARGS, nullptr},
    {"compact", cdd::ext::compact, METH_VARARGS, nullptr},
    {"arrow_stream", cdd::ext::arrow_stream, METH_VARARGS, nullptr},
    {"arrow_batches", cdd::ext::arrow_batches, METH_O, nullptr},
    {"csv_pack", cdd::ext::csv_pack, METH_VARARGS, nullptr},
    {"csv_first_row", cdd::ext::csv_first_row, METH_VARARGS, nullptr},
    {"csv_columns", cdd::ext::csv_columns, METH_VARARGS, nullptr},
    {"csv_count", cdd::ext::csv_count, METH_VARARGS, nullptr},
    {"csv_text", cdd::ext::csv_text, METH_VARARGS, nullptr},
    {"array_text", cdd::ext::array_text, METH_VARARGS, nullptr},
    {"packed_text", cdd::ext::packed_text, METH_VARARGS, nullptr},
    {"packed_table", cdd::ext::packed_table, METH_VARARGS, nullptr},
    {"packed_pack", cdd::ext::packed_pack, METH_VARARGS, nullptr},
    {"zstd_stream", cdd::ext::zstd_stream, METH_NOARGS, nullptr},
    {"zstd_step", cdd::ext::zstd_step, METH_VARARGS, nullptr},
    {"read_columns", cdd::ext::read_columns_of, METH_O, nullptr},
    {"asof", cdd::ext::asof, METH_VARARGS, nullptr},
    {"content_hash", cdd::ext::content_hash, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

constexpr bool (*kParts[])(PyObject*) = {
    cdd::ext::add_errors,           cdd::ext::add_memory_type,      cdd::ext::add_reader_type,
    cdd::ext::add_rows_type,        cdd::ext::add_writer_type,      cdd::ext::add_lock_type,
    cdd::ext::add_packed_types,     cdd::ext::add_arrow_types,      cdd::ext::add_tile_reader_type,
    cdd::ext::add_tile_writer_type, cdd::ext::add_superchunks_type, cdd::ext::add_column_type,
    cdd::ext::add_fetched_type,     cdd::ext::add_queue_type,       cdd::ext::add_watch_type,
};

int exec(PyObject* module) {
  using cdd::ext::Ref;
  const bool done =
      PyModule_AddStringConstant(module, "__version__", CDD_VERSION) == 0 &&
      PyModule_AddStringConstant(module, "codec_names", cdd::scheme_names().c_str()) == 0 &&
      PyModule_AddIntConstant(module, "max_threads", cdd::kMostThreads) == 0 &&
      PyModule_AddIntConstant(module, "understands_environment", cdd::understands_environment() ? 1 : 0) ==
          0 &&
      std::all_of(std::begin(kParts), std::end(kParts), [&](const auto add) { return add(module); }) &&
      cdd::ext::watch_finalization(Ref(PyObject_GetAttrString(module, "_begin_finalization")).get());
  return done ? 0 : -1;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
  const ModuleState& state = state_of_module(module);
  Py_VISIT(state.cdd_error);
  Py_VISIT(state.format_error);
  Py_VISIT(state.truncated_error);
  Py_VISIT(state.checksum_error);
  Py_VISIT(state.unsupported_error);
  Py_VISIT(state.limit_error);
  Py_VISIT(state.reader_type);
  Py_VISIT(state.rows_type);
  Py_VISIT(state.writer_type);
  Py_VISIT(state.memory_type);
  Py_VISIT(state.fetched_type);
  Py_VISIT(state.lock_type);
  Py_VISIT(state.packed_type);
  Py_VISIT(state.packed_iterator_type);
  Py_VISIT(state.pages_type);
  Py_VISIT(state.packed_writer_type);
  Py_VISIT(state.tile_reader_type);
  Py_VISIT(state.tile_writer_type);
  Py_VISIT(state.arrow_buffer_type);
  Py_VISIT(state.arrow_batches_type);
  Py_VISIT(state.column_type);
  Py_VISIT(state.superchunks_type);
  return 0;
}

int clear(PyObject* module) {
  ModuleState& state = state_of_module(module);
  Py_CLEAR(state.cdd_error);
  Py_CLEAR(state.format_error);
  Py_CLEAR(state.truncated_error);
  Py_CLEAR(state.checksum_error);
  Py_CLEAR(state.unsupported_error);
  Py_CLEAR(state.limit_error);
  Py_CLEAR(state.reader_type);
  Py_CLEAR(state.rows_type);
  Py_CLEAR(state.writer_type);
  Py_CLEAR(state.memory_type);
  Py_CLEAR(state.fetched_type);
  Py_CLEAR(state.lock_type);
  Py_CLEAR(state.packed_type);
  Py_CLEAR(state.packed_iterator_type);
  Py_CLEAR(state.pages_type);
  Py_CLEAR(state.packed_writer_type);
  Py_CLEAR(state.tile_reader_type);
  Py_CLEAR(state.tile_writer_type);
  Py_CLEAR(state.arrow_buffer_type);
  Py_CLEAR(state.arrow_batches_type);
  Py_CLEAR(state.column_type);
  Py_CLEAR(state.superchunks_type);
  return 0;
}

void free_module(void* module) { clear(static_cast<PyObject*>(module)); }

// Ids and values that the 3.11 headers do not have yet. An interpreter refuses ids it does not know.
constexpr int kModMultipleInterpreters = 3;  // 3.12
constexpr int kModGil = 4;                   // 3.13
void* const kPerInterpreterGil = reinterpret_cast<void*>(2);
void* const kGilNotUsed = reinterpret_cast<void*>(1);

// The first import makes it, in whichever interpreter and thread that is; later ones find it made.
PyModuleDef* definition() {
  static PyModuleDef_Slot slots[4] = {
      {Py_mod_exec, reinterpret_cast<void*>(exec)},
      {Py_Version >= 0x030C0000 ? kModMultipleInterpreters : 0, kPerInterpreterGil},
      {Py_Version >= 0x030D0000 ? kModGil : 0, kGilNotUsed},
      {0, nullptr},
  };
  static PyModuleDef made = {PyModuleDef_HEAD_INIT,
                             "cdd._cdd",
                             nullptr,
                             sizeof(ModuleState),
                             methods,
                             slots,
                             traverse,
                             clear,
                             free_module};
  return &made;
}

}  // namespace

PyMODINIT_FUNC PyInit__cdd(void) { return PyModuleDef_Init(definition()); }
