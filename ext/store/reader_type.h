// _cdd.Reader as the other types see it.
#pragma once

#include <memory>

#include "core/store/reader.h"
#include "ext/module_state.h"

namespace cdd::ext {

struct ReaderObject {
  PyObject_HEAD Handle<Reader> core;  // empty once closed
  Buffer held;                        // of a store that is given as bytes
  PyObject* filename;                 // null for a store in memory
};

}  // namespace cdd::ext
