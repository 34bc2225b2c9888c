// The module's functions that look after single files of other kinds than stores: os.cpp says what they take.
#pragma once

#include "ext/py_objects.h"

namespace cdd::ext {

PyObject* publish_file(PyObject* module, PyObject* args);

}  // namespace cdd::ext
