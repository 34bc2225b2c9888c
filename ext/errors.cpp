#include "ext/errors.h"

#include <new>
#include <stdexcept>

#include "core/base/error.h"

namespace cdd::ext {
namespace {

// Texts may hold a path in any bytes.
Ref text_of(const char* text) { return Ref(PyUnicode_DecodeFSDefault(text)); }

void set_os_error(const Error& error, PyObject* filename) {
  const Ref number(PyLong_FromLong(error.os_errno()));
  // OSError itself puts the name behind the text.
  const Ref text = text_of(filename == nullptr ? error.what() : error.text_without_path().c_str());
  if (!number || !text) return;
  // OSError itself picks the subclass: FileNotFoundError, BlockingIOError, ...
  const Ref made(PyObject_CallFunctionObjArgs(PyExc_OSError, number.get(), text.get(), filename, nullptr));
  if (made) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.get())), made.get());
}

bool set_number(PyObject* exception, const char* name, std::uint64_t value) {
  if (value == Place::kNone) return true;
  const Ref number(PyLong_FromUnsignedLongLong(value));
  return number && PyObject_SetAttrString(exception, name, number.get()) == 0;
}

// The attributes of CddError; what does not apply stays None, as the class has it.
bool set_place(PyObject* exception, const Place& place) {
  const char* const part = to_string(place.kind);
  if (part == nullptr) return true;
  const Ref name(PyUnicode_FromString(part));
  if (!name || PyObject_SetAttrString(exception, "part", name.get()) < 0) return false;
  const bool has_number =
      place.kind == Place::Kind::Chunk || place.kind == Place::Kind::Row || place.kind == Place::Kind::Tile;
  return (!has_number || set_number(exception, part, place.number)) &&
         set_number(exception, "field", place.field) && set_number(exception, "offset", place.offset);
}

void set_cdd_error(PyObject* type, const Error& error) {
  const Ref text = text_of(error.what());
  if (!text) return;
  const Ref made(PyObject_CallFunctionObjArgs(type, text.get(), nullptr));
  if (made && set_place(made.get(), error.place())) PyErr_SetObject(type, made.get());
}

// Work was taken back: by a signal's handler that raised, or by whoever no longer wants it.
void set_cancelled(const Error& error) {
  if (PyErr_Occurred() != nullptr) return;
  const Ref futures(PyImport_ImportModule("concurrent.futures"));
  const Ref type(futures ? PyObject_GetAttrString(futures.get(), "CancelledError") : nullptr);
  if (type) PyErr_SetObject(type.get(), text_of(error.what()).get());
}

void set_core_error(const ModuleState& state, PyObject* filename, const Error& error) {
  switch (error.code()) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::Closed:
      return PyErr_SetObject(PyExc_ValueError, text_of(error.what()).get());
    case ErrorCode::OutOfRange:
      return PyErr_SetObject(PyExc_IndexError, text_of(error.what()).get());
    case ErrorCode::Io:
      return set_os_error(error, filename);
    case ErrorCode::Corrupt:
      return set_cdd_error(state.format_error, error);
    case ErrorCode::Truncated:
      return set_cdd_error(state.truncated_error, error);
    case ErrorCode::Checksum:
      return set_cdd_error(state.checksum_error, error);
    case ErrorCode::Unsupported:
      return set_cdd_error(state.unsupported_error, error);
    case ErrorCode::Limit:
      return set_cdd_error(state.limit_error, error);
    case ErrorCode::Cancelled:
      return set_cancelled(error);
  }
}

PyObject* new_error(PyObject* module, const char* name, const char* doc, PyObject* base, PyObject* members) {
  const Ref error(PyErr_NewExceptionWithDoc(name, doc, base, members));
  if (!error || PyModule_AddObjectRef(module, name + sizeof "cdd." - 1, error.get()) < 0) return nullptr;
  return Ref::borrow(error.get()).release();
}

}  // namespace

void throw_python_exception() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr && value != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  throw PythonException(std::shared_ptr<PyObject>(value, [](PyObject* held) {
    if (Py_IsInitialized() == 0) return;
    const Gil gil;
    Py_XDECREF(held);
  }));
}

void set_python_error(const ModuleState& state, PyObject* filename,
                      const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const PythonException& own) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(own.exception())), own.exception());
  } catch (const Error& core) {
    set_core_error(state, filename, core);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::length_error&) {
    PyErr_NoMemory();
  } catch (const std::exception& other) {
    PyErr_SetString(PyExc_RuntimeError, other.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

PyObject* number_or_none(std::uint64_t number) noexcept {
  if (number == Place::kNone) Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(number);
}

bool add_errors(PyObject* module) {
  ModuleState& state = state_of_module(module);
  const Ref places(Py_BuildValue("{sO sO sO sO sO sO}", "part", Py_None, "chunk", Py_None, "row", Py_None,
                                 "field", Py_None, "tile", Py_None, "offset", Py_None));
  if (!places) return false;
  state.cdd_error =
      new_error(module, "cdd.CddError",
                "What is wrong with a file.\n\n"
                "Its attributes say where, those that do not apply are None:\n"
                "  part    \"header\", \"index\", \"chunk\", \"row\" or \"tile\"\n"
                "  chunk   the number of a chunk of a store\n"
                "  row     the number of a row of a CSV file or of packed rows, field its field\n"
                "  tile    the number of a tile\n"
                "  offset  where that begins in the file, in bytes",
                PyExc_Exception, places.get());
  if (!state.cdd_error) return false;
  state.format_error =
      new_error(module, "cdd.FormatError", "Not a cdd file, or bytes that no writer produces.",
                state.cdd_error, nullptr);
  if (!state.format_error) return false;
  state.truncated_error =
      new_error(module, "cdd.TruncatedError", "The file ends before something it promises.",
                state.format_error, nullptr);
  state.checksum_error =
      new_error(module, "cdd.ChecksumError", "A stored check does not hold.", state.format_error, nullptr);
  state.unsupported_error =
      new_error(module, "cdd.UnsupportedError",
                "A newer version, or a feature, codec or dtype that this version does not know.",
                state.cdd_error, nullptr);
  state.limit_error =
      new_error(module, "cdd.LimitError",
                "More than a limit allows that the caller gave; nothing says that it is damaged.",
                state.cdd_error, nullptr);
  return state.truncated_error && state.checksum_error && state.unsupported_error && state.limit_error;
}

}  // namespace cdd::ext
