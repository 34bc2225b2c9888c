// The module's functions that make one file from another: docs in maintenance.cpp.
#pragma once

#include "ext/py_objects.h"

namespace cdd::ext {

PyObject* repair(PyObject* module, PyObject* args);
PyObject* truncate(PyObject* module, PyObject* args);
PyObject* compact(PyObject* module, PyObject* args);

}  // namespace cdd::ext
