// class Fetched:
//     """An object on another machine, whose bytes functions get."""
//     def __init__(self, name: str, size: Callable, ask: Callable, read: Callable)
//         size() -> int
//         ask(ranges: [(offset, bytes)]) -> None    these are read next; none: it is opened next. Returns at
//             once
//         read(offset: int, count: int) -> Buffer | [(offset, Buffer)]    count bytes; or ranges that are
//         kept,
//             and then asked for no more
//         All are called from any thread. What they raise comes out of the read.
#include "ext/store/fetched_type.h"

#include <cstring>
#include <new>
#include <string>

#include "ext/arguments.h"

namespace cdd::ext {
namespace {

FetchedObject* cast(PyObject* self) { return reinterpret_cast<FetchedObject*>(self); }

class Callables final : public FetchedStorage::Source {
 public:
  Callables(PyObject* size, PyObject* ask, PyObject* read) noexcept
      : size_(Ref::borrow(size)), ask_(Ref::borrow(ask)), read_(Ref::borrow(read)) {}
  ~Callables() override {
    Ref* const held[] = {&size_, &ask_, &read_};
    if (Py_IsInitialized() == 0) {
      for (Ref* const ref : held) ref->release();
      return;
    }
    const Gil gil;
    for (Ref* const ref : held) *ref = Ref();
  }

  std::uint64_t size() override {
    const Gil gil;
    const Ref found(PyObject_CallFunctionObjArgs(size_.get(), nullptr));
    if (!found) throw_python_exception();
    const unsigned long long size = PyLong_AsUnsignedLongLong(found.get());
    if (PyErr_Occurred() != nullptr) throw_python_exception();
    return size;
  }

  void ask(std::span<const ByteRange> ranges) override {
    const Gil gil;
    const Ref list(PyList_New(0));
    for (const ByteRange& range : ranges) {
      const Ref item(Py_BuildValue("(KK)", static_cast<unsigned long long>(range.offset),
                                   static_cast<unsigned long long>(range.size)));
      if (!list || !item || PyList_Append(list.get(), item.get()) < 0) throw_python_exception();
    }
    const Ref done(PyObject_CallFunctionObjArgs(ask_.get(), list.get(), nullptr));
    if (!done) throw_python_exception();
  }

  std::vector<FetchedStorage::Held> read(std::uint64_t offset, MutableBytes out) override {
    const Gil gil;
    const Ref found(PyObject_CallFunction(read_.get(), "Kn", static_cast<unsigned long long>(offset),
                                          static_cast<Py_ssize_t>(out.size())));
    if (!found) throw_python_exception();
    std::vector<FetchedStorage::Held> held;
    if (PyList_Check(found.get()) == 0) {
      Buffer buffer;
      if (!buffer.acquire(found.get(), PyBUF_SIMPLE)) throw_python_exception();
      if (buffer.bytes().size() != out.size()) {
        fail(ErrorCode::Truncated, "%zu bytes at 0x%llx were fetched, of %zu", buffer.bytes().size(),
             static_cast<unsigned long long>(offset), out.size());
      }
      std::memcpy(out.data(), buffer.bytes().data(), out.size());
      return held;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(found.get()); ++i) {
      unsigned long long at = 0;
      PyObject* bytes = nullptr;
      Buffer buffer;
      PyObject* const pair = PyList_GetItem(found.get(), i);
      if (PyArg_ParseTuple(pair, "KO", &at, &bytes) == 0 || !buffer.acquire(bytes, PyBUF_SIMPLE)) {
        throw_python_exception();
      }
      held.push_back({at, {buffer.bytes().begin(), buffer.bytes().end()}});
    }
    if (held.empty()) fail(ErrorCode::Io, "nothing was fetched");
    return held;
  }

 private:
  Ref size_;
  Ref ask_;
  Ref read_;
};

PyObject* fetched_new(PyTypeObject* type, PyObject* args, PyObject*) {
  const char* name = nullptr;
  PyObject* size = nullptr;
  PyObject* ask = nullptr;
  PyObject* read = nullptr;
  if (PyArg_ParseTuple(args, "sOOO:Fetched", &name, &size, &ask, &read) == 0) return nullptr;
  auto* const self = allocate<FetchedObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->storage) std::shared_ptr<FetchedStorage>();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool made = with_gil(state_of_type(type), nullptr, [&] {
    self->storage = std::make_shared<FetchedStorage>(name, std::make_unique<Callables>(size, ask, read));
  });
  return made ? owner.release() : nullptr;
}

void fetched_dealloc(PyObject* self) {
  cast(self)->storage.~shared_ptr();
  free_object(self);
}

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(fetched_new)},
    {Py_tp_dealloc, as_slot(fetched_dealloc)},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Fetched", sizeof(FetchedObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

FetchedObject* as_fetched(const ModuleState& state, PyObject* object) noexcept {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(state.fetched_type)) ? cast(object)
                                                                                         : nullptr;
}

bool add_fetched_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.fetched_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.fetched_type && PyModule_AddObjectRef(module, "Fetched", state.fetched_type) == 0;
}

}  // namespace cdd::ext
