// class Watch:
//     """Tells when a file may have changed."""
//     def __init__(self, path: str)
//     def wait(self, most_ms: int) -> bool   sleeps to an event or the timer's next step, without the GIL
//     def fileno(self) -> int                readable when there are events; -1: there are none here
//     def clear(self) -> None
//     def step_ms(self) -> int               how long to sleep without events; grows with each call
#include <new>

#include "core/os/file_watch.h"
#include "ext/arguments.h"

namespace cdd::ext {
namespace {

struct WatchObject {
  PyObject_HEAD std::unique_ptr<FileWatch> core;
};

WatchObject* cast(PyObject* self) { return reinterpret_cast<WatchObject*>(self); }

PyObject* watch_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* name = nullptr;
  if (PyArg_ParseTuple(args, "U:Watch", &name) == 0) return nullptr;
  const std::string path = path_of(name);
  if (PyErr_Occurred() != nullptr) return nullptr;
  auto* const self = allocate<WatchObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::unique_ptr<FileWatch>();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const auto make = [&] { self->core = std::make_unique<FileWatch>(path); };
  return with_gil(state_of_type(type), name, make) ? owner.release() : nullptr;
}

void watch_dealloc(PyObject* self) {
  std::destroy_at(&cast(self)->core);
  free_object(self);
}

PyObject* watch_wait(PyObject* self, PyObject* most) {
  const long long ms = PyLong_AsLongLong(most);
  if (ms == -1 && PyErr_Occurred() != nullptr) return nullptr;
  bool event = false;
  {
    const GilRelease released;
    event = cast(self)->core->wait(ms);
  }
  return PyBool_FromLong(event ? 1 : 0);
}

PyObject* watch_fileno(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(static_cast<long long>(cast(self)->core->handle()));
}

PyObject* watch_clear(PyObject* self, PyObject*) {
  cast(self)->core->clear();
  Py_RETURN_NONE;
}

PyObject* watch_step(PyObject* self, PyObject*) { return PyLong_FromLongLong(cast(self)->core->step_ms()); }

PyMethodDef methods[] = {
    {"wait", watch_wait, METH_O, nullptr},
    {"fileno", watch_fileno, METH_NOARGS, nullptr},
    {"clear", watch_clear, METH_NOARGS, nullptr},
    {"step_ms", watch_step, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(watch_new)},
    {Py_tp_dealloc, as_slot(watch_dealloc)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Watch", sizeof(WatchObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                    slots};

}  // namespace

bool add_watch_type(PyObject* module) {
  const Ref type(PyType_FromModuleAndSpec(module, &spec, nullptr));
  return type && PyModule_AddObjectRef(module, "Watch", type.get()) == 0;
}

}  // namespace cdd::ext
