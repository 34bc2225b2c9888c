// def publish(path: str, contents: Buffer, replace: bool) -> None
//     a file of these bytes under a name, durable, whole or not at all; FileExistsError where something has
//     that name and `replace` is False
// class Lock:
//     """A file that is locked for one writer, as long as it is open."""
//     def __init__(self, path: str)      creates the file; BlockingIOError while somebody else has it
//     held: bool                         False once it is closed, and in a forked child
//     def close(self) -> None
//     def __enter__(self) -> Lock;  def __exit__(self, *error) -> None     closes
#include "ext/os.h"

#include <new>

#include "core/os/lock.h"
#include "core/os/publish.h"
#include "ext/arguments.h"

namespace cdd::ext {
namespace {

struct LockObject {
  PyObject_HEAD Handle<OpenFile> file;
  std::uint64_t process;
};

LockObject* cast(PyObject* self) { return reinterpret_cast<LockObject*>(self); }

PyObject* lock_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* path = nullptr;
  if (PyArg_ParseTuple(args, "U:Lock", &path) == 0) return nullptr;
  const std::string name = path_of(path);
  if (PyErr_Occurred() != nullptr) return nullptr;
  auto* const self = allocate<LockObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->file) Handle<OpenFile>();
  self->process = process_id();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool taken = without_gil(state_of_type(type), path,
                                 [&] { self->file.set(std::shared_ptr<OpenFile>(lock_file(name))); });
  return taken ? owner.release() : nullptr;
}

void lock_dealloc(PyObject* self) {
  cast(self)->file.~Handle<OpenFile>();
  free_object(self);
}

PyObject* lock_close(PyObject* self, PyObject*) {
  cast(self)->file.set(nullptr);
  Py_RETURN_NONE;
}

PyObject* lock_enter(PyObject* self, PyObject*) { return Ref::borrow(self).release(); }

PyObject* lock_exit(PyObject* self, PyObject*) { return lock_close(self, nullptr); }

PyObject* lock_held(PyObject* self, void*) {
  return PyBool_FromLong(cast(self)->file.get() != nullptr && cast(self)->process == process_id());
}

PyMethodDef methods[] = {
    {"close", lock_close, METH_NOARGS, "Lets go of the lock; again: nothing."},
    {"__enter__", lock_enter, METH_NOARGS, nullptr},
    {"__exit__", lock_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"held", lock_held, nullptr, "False once it is closed, and in a forked child.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

const char doc[] =
    "Lock(path)\n--\n\n"
    "Creates the file where it is not there, and locks it for one writer until close().\n\n"
    "Raises BlockingIOError while another Lock, of this or another process, has it. The lock\n"
    "ends with the process; a forked child does not have it. The file stays behind, empty.";

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>(doc)},
    {Py_tp_new, as_slot(lock_new)},
    {Py_tp_dealloc, as_slot(lock_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Lock", sizeof(LockObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                    slots};

}  // namespace

PyObject* publish_file(PyObject* module, PyObject* args) {
  PyObject* path = nullptr;
  PyObject* contents = nullptr;
  int replace = 0;
  if (PyArg_ParseTuple(args, "UOp:publish", &path, &contents, &replace) == 0) return nullptr;
  const std::string name = path_of(path);
  if (PyErr_Occurred() != nullptr) return nullptr;
  Buffer bytes;
  if (!bytes.acquire(contents, PyBUF_SIMPLE)) return nullptr;
  const bool done =
      without_gil(state_of_module(module), path, [&] { publish(name, bytes.bytes(), replace != 0); });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

bool add_lock_type(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.lock_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.lock_type && PyModule_AddObjectRef(module, "Lock", state.lock_type) == 0;
}

}  // namespace cdd::ext
