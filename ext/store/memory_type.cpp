// class Memory:
//     """A store in memory, to be opened like a file."""
//     def __new__(cls, data: Buffer = b"") -> Memory    holds a copy of these bytes
//     def __len__(self) -> int           bytes stored
//     def __bytes__(self) -> bytes       a copy of them: what the file would hold
#include "ext/store/memory_type.h"

#include <cstring>
#include <new>

#include "ext/errors.h"

namespace cdd::ext {
namespace {

MemoryObject* cast(PyObject* self) { return reinterpret_cast<MemoryObject*>(self); }

PyObject* memory_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  PyObject* data = nullptr;
  Buffer given;
  static const char* const names[] = {"data", nullptr};
  if (PyArg_ParseTupleAndKeywords(args, keywords, "|O:Memory", const_cast<char**>(names), &data) == 0 ||
      (data != nullptr && !given.acquire(data, PyBUF_SIMPLE))) {
    return nullptr;
  }
  auto* const self = allocate<MemoryObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->storage) Handle<MemoryStorage>();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool made = with_gil(state_of_type(type), nullptr, [&] {
    auto storage = std::make_shared<MemoryStorage>();
    if (data != nullptr) storage->write_at(0, given.bytes());
    self->storage.set(std::move(storage));
  });
  return made ? owner.release() : nullptr;
}

void memory_dealloc(PyObject* self) {
  cast(self)->storage.~Handle<MemoryStorage>();
  free_object(self);
}

Py_ssize_t memory_length(PyObject* self) {
  const std::shared_ptr<MemoryStorage> storage = cast(self)->storage.get();
  std::uint64_t size = 0;
  const bool known = without_gil(state_of(self), nullptr, [&] { size = storage->size(); });
  return known ? static_cast<Py_ssize_t>(size) : -1;
}

// The result is allocated with the GIL and filled without it, so a writer may have grown the store in
// between: then again.
PyObject* memory_bytes(PyObject* self, PyObject*) {
  const std::shared_ptr<MemoryStorage> storage = cast(self)->storage.get();
  for (;;) {
    const Py_ssize_t size = memory_length(self);
    if (size < 0) return nullptr;
    Ref bytes(PyBytes_FromStringAndSize(nullptr, size));
    if (!bytes) return nullptr;
    char* const out = PyBytes_AsString(bytes.get());
    bool fits = false;
    const bool done = without_gil(state_of(self), nullptr, [&] {
      storage->visit([&](Bytes all) {
        fits = all.size() == static_cast<std::size_t>(size);
        if (fits && size > 0) std::memcpy(out, all.data(), all.size());
      });
    });
    if (!done) return nullptr;
    if (fits) return bytes.release();
  }
}

PyObject* memory_repr(PyObject* self) {
  const Py_ssize_t size = memory_length(self);
  return size < 0 ? nullptr : PyUnicode_FromFormat("<cdd.Memory, %zd bytes>", size);
}

PyObject* memory_reduce(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError,
                  "a cdd.Memory cannot be pickled: bytes(memory) can, and cdd.open reads them");
  return nullptr;
}

PyMethodDef methods[] = {
    {"__bytes__", memory_bytes, METH_NOARGS, "A copy of the stored bytes: what a file would hold."},
    {"__reduce__", memory_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

const char doc[] =
    "Memory(data=b\"\")\n--\n\n"
    "A store in memory: cdd.open(m, \"w\"), \"x\" or \"a\" writes to it, cdd.open(m) reads it.\n\n"
    "It begins as a copy of `data`, the bytes of a cdd file: Memory(bytes(m)) goes on where m is.\n"
    "len(m) is the number of bytes stored, bytes(m) a copy of them, which is a whole cdd file.\n"
    "One writer and any number of readers may have it open at once, in any threads.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(doc)},
    {Py_tp_new, as_slot(memory_new)},
    {Py_tp_dealloc, as_slot(memory_dealloc)},
    {Py_tp_repr, as_slot(memory_repr)},
    {Py_tp_methods, methods},
    {Py_sq_length, as_slot(memory_length)},
    {0, nullptr},
};

PyType_Spec spec = {"cdd.Memory", sizeof(MemoryObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                    slots};

}  // namespace

MemoryObject* as_memory(const ModuleState& state, PyObject* object) noexcept {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(state.memory_type)) ? cast(object)
                                                                                        : nullptr;
}

bool add_memory_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.memory_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.memory_type && PyModule_AddObjectRef(module, "Memory", state.memory_type) == 0;
}

}  // namespace cdd::ext
