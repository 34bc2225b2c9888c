// The module's functions that look after files: maintenance.cpp says what they take.
#pragma once

#include "ext/py_objects.h"

namespace cdd::ext {

PyObject* repair(PyObject* module, PyObject* args);
PyObject* count_chunks(PyObject* module, PyObject* args);
PyObject* truncate(PyObject* module, PyObject* args);
PyObject* compact(PyObject* module, PyObject* args);

}  // namespace cdd::ext
