// A stream whose batches are Python buffers. A consumer may call from any thread, with the GIL or without.
#include <cerrno>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "ext/arrow/abi.h"
#include "ext/arrow/arrow.h"

namespace cdd::ext {
namespace {

struct Field {
  std::string name, format, values_format;
  bool nullable = false;
  bool has_dictionary = false;
};

struct OwnedSchema {
  std::string name, format;
  std::vector<ArrowSchema*> children;
};

void release_schema(ArrowSchema* schema) {
  auto* const owned = static_cast<OwnedSchema*>(schema->private_data);
  for (ArrowSchema* child : owned->children) {
    if (child->release != nullptr) child->release(child);
    delete child;
  }
  if (schema->dictionary != nullptr) {
    if (schema->dictionary->release != nullptr) schema->dictionary->release(schema->dictionary);
    delete schema->dictionary;
  }
  delete owned;
  schema->release = nullptr;
}

void fill_schema(ArrowSchema* schema, std::string name, std::string format, bool nullable) {
  auto* const owned = new OwnedSchema{std::move(name), std::move(format), {}};
  *schema = {owned->format.c_str(),
             owned->name.c_str(),
             nullptr,
             nullable ? kArrowNullable : 0,
             0,
             nullptr,
             nullptr,
             release_schema,
             owned};
}

// One array with what keeps its buffers. Children are released with their parent.
struct OwnedArray {
  std::vector<std::unique_ptr<Buffer>> kept;
  std::vector<const void*> buffers;
  std::vector<ArrowArray*> children;
};

void release_array(ArrowArray* array) {
  auto* const owned = static_cast<OwnedArray*>(array->private_data);
  for (ArrowArray* child : owned->children) {
    if (child->release != nullptr) child->release(child);
    delete child;
  }
  if (array->dictionary != nullptr) {
    if (array->dictionary->release != nullptr) array->dictionary->release(array->dictionary);
    delete array->dictionary;
  }
  if (Py_IsInitialized() != 0) {
    const Gil gil;
    delete owned;
  }
  array->release = nullptr;
}

ArrowArray* new_array(std::int64_t length, std::int64_t nulls) {
  auto* const array = new ArrowArray{};
  array->length = length;
  array->null_count = nulls;
  array->private_data = new OwnedArray;
  array->release = release_array;
  return array;
}

OwnedArray& owned_by(ArrowArray* array) { return *static_cast<OwnedArray*>(array->private_data); }

void seal(ArrowArray* array) {
  OwnedArray& owned = owned_by(array);
  array->n_buffers = static_cast<std::int64_t>(owned.buffers.size());
  array->buffers = owned.buffers.data();
  array->n_children = static_cast<std::int64_t>(owned.children.size());
  array->children = owned.children.data();
}

// False with a Python exception set; what `array` has then is released by its owner.
bool fill_column(ArrowArray* array, PyObject* buffers, PyObject* dictionary) {
  OwnedArray& owned = owned_by(array);
  for (Py_ssize_t i = 0; i < PyTuple_Size(buffers); ++i) {
    PyObject* const object = PyTuple_GetItem(buffers, i);
    if (object == Py_None) {
      owned.buffers.push_back(nullptr);
      continue;
    }
    auto buffer = std::make_unique<Buffer>();
    if (!buffer->acquire(object, PyBUF_SIMPLE)) return false;
    owned.buffers.push_back(buffer->view().buf);
    owned.kept.push_back(std::move(buffer));
  }
  seal(array);
  if (dictionary == Py_None) return true;
  long long rows = 0, nulls = 0;
  PyObject* values = nullptr;
  PyObject* none = nullptr;
  if (PyArg_ParseTuple(dictionary, "LLO!O", &rows, &nulls, &PyTuple_Type, &values, &none) == 0) return false;
  array->dictionary = new_array(rows, nulls);
  return fill_column(array->dictionary, values, none);
}

bool fill_batch(ArrowArray* batch, PyObject* columns) {
  owned_by(batch).buffers.push_back(nullptr);  // a batch has no nulls of its own
  for (Py_ssize_t i = 0; i < PyTuple_Size(columns); ++i) {
    long long rows = 0, nulls = 0;
    PyObject* buffers = nullptr;
    PyObject* dictionary = nullptr;
    if (PyArg_ParseTuple(PyTuple_GetItem(columns, i), "LLO!O", &rows, &nulls, &PyTuple_Type, &buffers,
                         &dictionary) == 0) {
      return false;
    }
    ArrowArray* const column = new_array(rows, nulls);
    owned_by(batch).children.push_back(column);
    seal(batch);
    if (!fill_column(column, buffers, dictionary)) return false;
  }
  seal(batch);
  return true;
}

struct OwnedStream {
  std::vector<Field> fields;
  PyObject* batches = nullptr;  // an iterator
  std::string error;
};

// The Python exception as a text for get_last_error.
int take_error(OwnedStream& stream) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  const Ref owner_of_type(type), owner(value), owner_of_trace(trace);
  const Ref text(value == nullptr ? nullptr : PyObject_Str(value));
  const char* const utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), nullptr) : nullptr;
  stream.error = utf8 == nullptr ? "an error without a text" : utf8;
  PyErr_Clear();
  return EIO;
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* schema) {
  const auto& owned = *static_cast<OwnedStream*>(stream->private_data);
  try {
    fill_schema(schema, "", "+s", false);
    auto& children = static_cast<OwnedSchema*>(schema->private_data)->children;
    for (const Field& field : owned.fields) {
      auto* const child = new ArrowSchema{};
      children.push_back(child);
      fill_schema(child, field.name, field.format, field.nullable);
      if (field.has_dictionary) {
        child->dictionary = new ArrowSchema{};
        fill_schema(child->dictionary, "", field.values_format, false);
      }
    }
    schema->n_children = static_cast<std::int64_t>(children.size());
    schema->children = children.data();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  auto& owned = *static_cast<OwnedStream*>(stream->private_data);
  out->release = nullptr;
  const Gil gil;
  const Ref item(PyIter_Next(owned.batches));
  if (!item) return PyErr_Occurred() == nullptr ? 0 : take_error(owned);
  long long rows = 0;
  PyObject* columns = nullptr;
  if (PyArg_ParseTuple(item.get(), "LO!", &rows, &PyTuple_Type, &columns) == 0) return take_error(owned);
  ArrowArray* const batch = new_array(rows, 0);
  if (!fill_batch(batch, columns)) {
    batch->release(batch);
    delete batch;
    return take_error(owned);
  }
  *out = *batch;
  delete batch;  // what it owned goes on with its copy
  return 0;
}

const char* get_last_error(ArrowArrayStream* stream) {
  return static_cast<OwnedStream*>(stream->private_data)->error.c_str();
}

void release_stream(ArrowArrayStream* stream) {
  auto* const owned = static_cast<OwnedStream*>(stream->private_data);
  if (Py_IsInitialized() != 0) {
    const Gil gil;
    Py_XDECREF(owned->batches);
  }
  delete owned;
  stream->release = nullptr;
}

void destroy_capsule(PyObject* capsule) {
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kArrowStreamName));
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

bool take_fields(PyObject* tuple, std::vector<Field>* fields) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    const char *name = nullptr, *format = nullptr, *values = nullptr;
    int nullable = 0;
    if (PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "sspz", &name, &format, &nullable, &values) == 0)
      return false;
    fields->push_back({name, format, values == nullptr ? "" : values, nullable != 0, values != nullptr});
  }
  return true;
}

}  // namespace

PyObject* arrow_stream(PyObject*, PyObject* args) {
  PyObject* fields = nullptr;
  PyObject* batches = nullptr;
  if (PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &fields, &batches) == 0) return nullptr;
  auto owned = std::make_unique<OwnedStream>();
  if (!take_fields(fields, &owned->fields)) return nullptr;
  Ref iterator(PyObject_GetIter(batches));
  if (!iterator) return nullptr;
  auto stream = std::make_unique<ArrowArrayStream>(
      ArrowArrayStream{get_schema, get_next, get_last_error, release_stream, owned.get()});
  PyObject* const capsule = PyCapsule_New(stream.get(), kArrowStreamName, destroy_capsule);
  if (capsule == nullptr) return nullptr;
  owned.release()->batches = iterator.release();
  stream.release();
  return capsule;
}

}  // namespace cdd::ext
