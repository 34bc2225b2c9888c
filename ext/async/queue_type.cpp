// class Queue:
//     """Reads, appends and flushes that threads do, for one event loop."""
//     def __init__(self, most: int = 65536)
//     def fileno(self) -> int                 readable while something has ended; on Windows an event
//     def wait(self, timeout_ms: int) -> bool  for loops that can watch no descriptor; without the GIL
//     def resolve(self) -> int                gives each future that is not done its result or exception
//     def read(self, reader, future, result, first, count, out, cells=None) -> ticket
//     def read_windows(self, reader, future, result, starts, rows, out, cells=None) -> ticket
//     def append(self, writer, future, dtype code, rows, swap bytes) -> ticket
//     def flush(self, writer, future) -> ticket
//     def close_writer(self, writer, future) -> ticket
//     def cancel(self, ticket) -> bool        whether it had not begun; it ends as cancelled, then
//     def again(self, ticket, future) -> bool  another future for one that has not ended
//     wakes, size: int
//
// The threads never take the GIL: a request holds its buffers, its future and its result from submitting to
// resolve(), which runs in the loop's thread.
#include <functional>
#include <new>

#include "core/async/queue.h"
#include "ext/arguments.h"
#include "ext/store/reader_type.h"
#include "ext/store/writer_type.h"

namespace cdd::ext {
namespace {

// What Python gave a request, which only resolve() and the queue's end touch, with the GIL.
class PythonRequest final : public Request {
 public:
  PythonRequest(PyObject* store, PyObject* future, PyObject* result, PyObject* filename)
      : store_(Ref::borrow(store)),
        future_(Ref::borrow(future)),
        result_(Ref::borrow(result)),
        filename_(filename == nullptr ? Ref() : Ref::borrow(filename)) {}

  Buffer& data() noexcept { return data_; }
  Buffer& starts() noexcept { return starts_; }
  void set_work(std::function<void()> work) { work_ = std::move(work); }
  void set_future(PyObject* future) { future_ = Ref::borrow(future); }

  // False with an exception set when the future itself failed.
  bool resolve(const ModuleState& state) {
    const Ref done(PyObject_CallMethod(future_.get(), "done", nullptr));
    if (!done) return false;
    if (PyObject_IsTrue(done.get()) != 0) return true;
    if (!error()) {
      return static_cast<bool>(Ref(PyObject_CallMethod(future_.get(), "set_result", "O", result_.get())));
    }
    set_python_error(state, filename_.get(), error());
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    const Ref owners[] = {Ref(type), Ref(value), Ref(trace)};
    return static_cast<bool>(Ref(PyObject_CallMethod(future_.get(), "set_exception", "O", value)));
  }

 private:
  void work() override { work_(); }

  Ref store_, future_, result_, filename_;
  Buffer data_, starts_;
  std::function<void()> work_;
};

struct QueueObject {
  PyObject_HEAD std::unique_ptr<Queue> core;
  // What is under way, for again(); a request that was taken is no more in it.
  std::unordered_map<std::uint64_t, PythonRequest*> requests;
};

QueueObject* cast(PyObject* self) { return reinterpret_cast<QueueObject*>(self); }

PyObject* queue_new(PyTypeObject* type, PyObject* args, PyObject*) {
  unsigned long long most = Queue::kMostRequests;
  if (PyArg_ParseTuple(args, "|K:Queue", &most) == 0) return nullptr;
  auto* const self = allocate<QueueObject>(type);
  if (self == nullptr) return nullptr;
  new (&self->core) std::unique_ptr<Queue>();
  new (&self->requests) std::unordered_map<std::uint64_t, PythonRequest*>();
  Ref owner(reinterpret_cast<PyObject*>(self));
  const auto make = [&] { self->core = std::make_unique<Queue>(static_cast<std::size_t>(most)); };
  return with_gil(state_of_type(type), nullptr, make) ? owner.release() : nullptr;
}

// What runs must end first, and may take long. Its requests are then let go of with the GIL.
void queue_dealloc(PyObject* self) {
  QueueObject* const queue = cast(self);
  if (queue->core) {
    const GilRelease released;
    queue->core->finish();
  }
  std::destroy_at(&queue->core);
  std::destroy_at(&queue->requests);
  free_object(self);
}

// Submits and remembers the request. Null with an exception set.
PyObject* submit(PyObject* self, std::unique_ptr<PythonRequest> request, Strand* strand) {
  QueueObject* const queue = cast(self);
  PythonRequest* const pointer = request.get();
  std::uint64_t ticket = 0;
  const auto work = [&] {
    ticket = queue->core->submit(std::move(request), strand);
    queue->requests.emplace(ticket, pointer);
  };
  return with_gil(state_of(self), nullptr, work) ? PyLong_FromUnsignedLongLong(ticket) : nullptr;
}

bool cells_of(PyObject* given, Cells* cells) {
  return given == nullptr || given == Py_None || parse_cells(given, cells);
}

// What is to be read: a Reader's rows or a Column's. Null with an exception set.
std::shared_ptr<Rows> rows_of(PyObject* self, PyObject* object) {
  if (is_source(state_of(self), object)) return open_rows(object);
  PyErr_SetString(PyExc_TypeError, "not a _cdd.Reader or _cdd.Column");
  return nullptr;
}

PyObject* queue_read(PyObject* self, PyObject* args) {
  PyObject *object, *future, *result, *out, *given = nullptr;
  unsigned long long first = 0, count = 0;
  if (PyArg_ParseTuple(args, "OOOKKO|O:read", &object, &future, &result, &first, &count, &out, &given) == 0)
    return nullptr;
  const std::shared_ptr<Rows> core = rows_of(self, object);
  if (!core) return nullptr;
  auto request = std::make_unique<PythonRequest>(object, future, result, as_source(object)->filename);
  Cells cells;
  if (!cells_of(given, &cells)) return nullptr;
  if (!request->data().acquire(out, PyBUF_WRITABLE | PyBUF_ND)) return nullptr;
  const bool has_cells = given != nullptr && given != Py_None;
  const RowRange range{first, count};
  PyObject* const filename = as_source(object)->filename;
  std::shared_ptr<Reader> reader;  // of one store: then its chunks are known to be in memory afterwards
  std::shared_ptr<WarmChunks> warm;
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == state_of(self).reader_type) {
    reader = std::static_pointer_cast<Reader>(core);
    warm = reinterpret_cast<ReaderObject*>(object)->warm_chunks();
  }
  request->set_work([core, reader, warm, range, cells, has_cells, bytes = request->data().mutable_bytes()] {
    if (reader) reader->prefetch(range);
    core->read_into(range, bytes, has_cells ? &cells : nullptr);
    if (reader) warm->add(*reader, range);
  });
  const auto ask = [&] {
    if (warm && warm->is_short(*reader, range)) request->set_short();
  };
  if (!with_gil(state_of(self), filename, ask)) return nullptr;
  return submit(self, std::move(request), nullptr);
}

PyObject* queue_read_windows(PyObject* self, PyObject* args) {
  PyObject *object, *future, *result, *starts, *out, *given = nullptr;
  unsigned long long rows = 0;
  if (PyArg_ParseTuple(args, "OOOOKO|O:read_windows", &object, &future, &result, &starts, &rows, &out,
                       &given) == 0) {
    return nullptr;
  }
  const std::shared_ptr<Rows> core = rows_of(self, object);
  if (!core) return nullptr;
  auto request = std::make_unique<PythonRequest>(object, future, result, as_source(object)->filename);
  Cells cells;
  if (!cells_of(given, &cells)) return nullptr;
  if (!request->data().acquire(out, PyBUF_WRITABLE | PyBUF_ND)) return nullptr;
  if (!request->starts().acquire(starts, PyBUF_ND)) return nullptr;
  const bool has_cells = given != nullptr && given != Py_None;
  const Bytes numbers = request->starts().bytes();
  const std::span<const std::uint64_t> first(reinterpret_cast<const std::uint64_t*>(numbers.data()),
                                             numbers.size() / sizeof(std::uint64_t));
  request->set_work([core, first, rows, cells, has_cells, bytes = request->data().mutable_bytes()] {
    core->read_windows(first, rows, bytes, has_cells ? &cells : nullptr);
  });
  return submit(self, std::move(request), nullptr);
}

WriterObject* writer_of(PyObject* self, PyObject* object) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == state_of(self).writer_type)
    return reinterpret_cast<WriterObject*>(object);
  PyErr_SetString(PyExc_TypeError, "not a _cdd.Writer");
  return nullptr;
}

PyObject* queue_append(PyObject* self, PyObject* args) {
  PyObject *object, *future, *rows;
  int code = 0;
  unsigned int swap_bytes = 0;
  if (PyArg_ParseTuple(args, "OOiOI:append", &object, &future, &code, &rows, &swap_bytes) == 0)
    return nullptr;
  WriterObject* const writer = writer_of(self, object);
  if (writer == nullptr) return nullptr;
  auto request = std::make_unique<PythonRequest>(object, future, Py_None, writer->filename);
  if (!request->data().acquire(rows, PyBUF_STRIDES)) return nullptr;
  request->set_work([core = writer->core, code, data = &request->data(), swap_bytes] {
    append_buffer(*core, code, *data, swap_bytes);
  });
  return submit(self, std::move(request), &writer->strand);
}

template <class Work>
PyObject* submit_for_writer(PyObject* self, PyObject* args, Work&& work) {
  PyObject *object, *future;
  if (PyArg_ParseTuple(args, "OO", &object, &future) == 0) return nullptr;
  WriterObject* const writer = writer_of(self, object);
  if (writer == nullptr) return nullptr;
  auto request = std::make_unique<PythonRequest>(object, future, Py_None, writer->filename);
  request->set_work([writer, work] { work(*writer); });  // which the request keeps alive
  return submit(self, std::move(request), &writer->strand);
}

PyObject* queue_flush(PyObject* self, PyObject* args) {
  return submit_for_writer(self, args, [](WriterObject& writer) { writer.core->flush(); });
}

PyObject* queue_close_writer(PyObject* self, PyObject* args) {
  return submit_for_writer(self, args, [](WriterObject& writer) { close_writer(writer); });
}

PyObject* queue_resolve(PyObject* self, PyObject*) {
  QueueObject* const queue = cast(self);
  std::vector<std::unique_ptr<Request>> ended;
  const auto take = [&] { ended = queue->core->take(Queue::kMostRequests, 0); };
  if (!with_gil(state_of(self), nullptr, take)) return nullptr;
  for (const auto& request : ended) {
    queue->requests.erase(request->ticket());
    // One future that fails, as one whose loop is closed does, must not keep others waiting.
    if (!static_cast<PythonRequest&>(*request).resolve(state_of(self))) PyErr_WriteUnraisable(self);
  }
  return PyLong_FromSize_t(ended.size());
}

PyObject* queue_wait(PyObject* self, PyObject* timeout) {
  const long long ms = PyLong_AsLongLong(timeout);
  if (ms == -1 && PyErr_Occurred() != nullptr) return nullptr;
  bool is_there = false;
  {
    const GilRelease released;
    is_there = cast(self)->core->wait(ms);
  }
  return PyBool_FromLong(is_there ? 1 : 0);
}

PyObject* queue_cancel(PyObject* self, PyObject* ticket) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(ticket);
  if (PyErr_Occurred() != nullptr) return nullptr;
  bool cancelled = false;
  const auto work = [&] { cancelled = cast(self)->core->cancel(number); };
  return with_gil(state_of(self), nullptr, work) ? PyBool_FromLong(cancelled ? 1 : 0) : nullptr;
}

PyObject* queue_again(PyObject* self, PyObject* args) {
  unsigned long long ticket = 0;
  PyObject* future = nullptr;
  if (PyArg_ParseTuple(args, "KO:again", &ticket, &future) == 0) return nullptr;
  const auto at = cast(self)->requests.find(ticket);
  if (at == cast(self)->requests.end()) Py_RETURN_FALSE;
  at->second->set_future(future);
  Py_RETURN_TRUE;
}

PyObject* queue_fileno(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(static_cast<long long>(cast(self)->core->handle()));
}

PyObject* queue_size(PyObject* self, void*) { return PyLong_FromSize_t(cast(self)->core->size()); }

PyObject* queue_wakes(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(cast(self)->core->wakes());
}

PyMethodDef methods[] = {
    {"fileno", queue_fileno, METH_NOARGS, nullptr},
    {"wait", queue_wait, METH_O, nullptr},
    {"resolve", queue_resolve, METH_NOARGS, nullptr},
    {"read", queue_read, METH_VARARGS, nullptr},
    {"read_windows", queue_read_windows, METH_VARARGS, nullptr},
    {"append", queue_append, METH_VARARGS, nullptr},
    {"flush", queue_flush, METH_VARARGS, nullptr},
    {"close_writer", queue_close_writer, METH_VARARGS, nullptr},
    {"cancel", queue_cancel, METH_O, nullptr},
    {"again", queue_again, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"size", queue_size, nullptr, nullptr, nullptr},
    {"wakes", queue_wakes, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(queue_new)},
    {Py_tp_dealloc, as_slot(queue_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.Queue", sizeof(QueueObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
                    slots};

}  // namespace

bool add_queue_type(PyObject* module) {
  const Ref type(PyType_FromModuleAndSpec(module, &spec, nullptr));
  return type && PyModule_AddObjectRef(module, "Queue", type.get()) == 0;
}

}  // namespace cdd::ext
