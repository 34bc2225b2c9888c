// _cdd.Fetched as the other types see it.
#pragma once

#include <memory>

#include "core/storage/fetched.h"
#include "ext/module_state.h"

namespace cdd::ext {

struct FetchedObject {
  PyObject_HEAD std::shared_ptr<FetchedStorage> storage;  // set once, by new
};

// Null when `object` is no Fetched of this module.
FetchedObject* as_fetched(const ModuleState& state, PyObject* object) noexcept;

}  // namespace cdd::ext
