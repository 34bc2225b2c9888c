// _cdd.Memory as the other types see it.
#pragma once

#include <memory>

#include "core/storage/memory.h"
#include "ext/module_state.h"

namespace cdd::ext {

struct MemoryObject {
  PyObject_HEAD Handle<MemoryStorage> storage;  // never empty; replaced as a whole by mode "w"
};

// Null when `object` is no Memory of this module.
MemoryObject* as_memory(const ModuleState& state, PyObject* object) noexcept;

}  // namespace cdd::ext
