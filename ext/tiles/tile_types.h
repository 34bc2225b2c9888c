// The handles of arrays of tiles, as the module adds them.
#pragma once

#include "ext/module_state.h"

namespace cdd::ext {

PyObject* tile_bytes_needed(PyObject* module, PyObject* args);
bool add_tile_writer_type(PyObject* module);
bool add_tile_reader_type(PyObject* module);

}  // namespace cdd::ext
