// class Pages:
//     """Memory that the core filled: a read-only buffer of bytes. NumPy, memoryview and writes take it as it
//     is.""" def __len__(self) -> int
#include <cstring>
#include <new>

#include "ext/packed/packed_types.h"

namespace cdd::ext {
namespace {

struct PagesObject {
  PyObject_HEAD Pages pages;
  std::size_t bytes;
};

PagesObject* cast(PyObject* self) { return reinterpret_cast<PagesObject*>(self); }

void pages_dealloc(PyObject* self) {
  cast(self)->pages.~Pages();
  free_object(self);
}

int pages_buffer(PyObject* self, Py_buffer* view, int flags) {
  static std::byte nothing{};  // a buffer of no bytes has an address, too
  std::byte* const data = cast(self)->pages.data();
  return PyBuffer_FillInfo(view, self, data == nullptr ? &nothing : data,
                           static_cast<Py_ssize_t>(cast(self)->bytes), 1, flags);
}

Py_ssize_t pages_length(PyObject* self) { return static_cast<Py_ssize_t>(cast(self)->bytes); }

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Memory that the core filled: a read-only buffer of bytes.")},
    {Py_tp_dealloc, as_slot(pages_dealloc)},
    {Py_bf_getbuffer, as_slot(pages_buffer)},
    {Py_sq_length, as_slot(pages_length)},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Pages", sizeof(PagesObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* pages_object(const ModuleState& state, Pages pages, std::size_t bytes) {
  auto* const self = allocate<PagesObject>(reinterpret_cast<PyTypeObject*>(state.pages_type));
  if (self == nullptr) return nullptr;
  new (&self->pages) Pages(std::move(pages));
  self->bytes = bytes;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* pages_of(const ModuleState& state, const void* data, std::size_t bytes) {
  Pages pages;
  const bool made = with_gil(state, nullptr, [&] {
    pages = Pages(bytes);
    if (bytes > 0) std::memcpy(pages.data(), data, bytes);
  });
  return made ? pages_object(state, std::move(pages), bytes) : nullptr;
}

bool add_pages_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.pages_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.pages_type && PyModule_AddObjectRef(module, "Pages", state.pages_type) == 0;
}

}  // namespace cdd::ext
