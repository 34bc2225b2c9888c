// What one import of cdd._cdd owns: its exception and object types. Each sub-interpreter has its own.
#pragma once

#include "ext/py_objects.h"

namespace cdd::ext {

struct ModuleState {
  PyObject* cdd_error;
  PyObject* format_error;
  PyObject* truncated_error;
  PyObject* checksum_error;
  PyObject* unsupported_error;
  PyObject* limit_error;
  PyObject* reader_type;
  PyObject* rows_type;
  PyObject* writer_type;
  PyObject* memory_type;
  PyObject* fetched_type;
  PyObject* lock_type;
  PyObject* packed_type;
  PyObject* packed_iterator_type;
  PyObject* pages_type;
  PyObject* packed_writer_type;
  PyObject* tile_reader_type;
  PyObject* tile_writer_type;
  PyObject* arrow_buffer_type;
  PyObject* arrow_batches_type;
  PyObject* column_type;
  PyObject* superchunks_type;
};

inline ModuleState& state_of_module(PyObject* module) noexcept {
  return *static_cast<ModuleState*>(PyModule_GetState(module));
}
inline ModuleState& state_of_type(PyTypeObject* type) noexcept {
  return *static_cast<ModuleState*>(PyType_GetModuleState(type));
}
inline ModuleState& state_of(PyObject* object) noexcept { return state_of_type(Py_TYPE(object)); }

// Each adds its part to the module and to the state. False with a Python exception set.
bool add_errors(PyObject* module);
bool add_reader_type(PyObject* module);
bool add_rows_type(PyObject* module);
bool add_writer_type(PyObject* module);
bool add_memory_type(PyObject* module);
bool add_fetched_type(PyObject* module);
bool add_lock_type(PyObject* module);
bool add_packed_types(PyObject* module);
bool add_arrow_types(PyObject* module);
bool add_superchunks_type(PyObject* module);
bool add_column_type(PyObject* module);
bool add_queue_type(PyObject* module);
bool add_watch_type(PyObject* module);

}  // namespace cdd::ext
