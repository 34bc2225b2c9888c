// Another library's stream as Python buffers, which keep its batches alive.
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "ext/arrow/abi.h"
#include "ext/arrow/arrow.h"
#include "ext/packed/packed_types.h"

namespace cdd::ext {
namespace {

using ull = unsigned long long;

// A batch, released with the last buffer of it.
struct Batch {
  ArrowArray array{};
  ~Batch() {
    if (array.release != nullptr) array.release(&array);
  }
};

struct ArrowBufferObject {
  PyObject_HEAD std::shared_ptr<Batch> batch;
  const void* data;
  std::size_t bytes;
};

void buffer_dealloc(PyObject* self) {
  using Owner = std::shared_ptr<Batch>;
  reinterpret_cast<ArrowBufferObject*>(self)->batch.~Owner();
  free_object(self);
}

int buffer_get(PyObject* self, Py_buffer* view, int flags) {
  static char nothing = 0;
  auto* const buffer = reinterpret_cast<ArrowBufferObject*>(self);
  void* const data = buffer->data == nullptr ? &nothing : const_cast<void*>(buffer->data);
  return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(buffer->bytes), 1, flags);
}

PyType_Slot buffer_slots[] = {
    {Py_tp_dealloc, as_slot(buffer_dealloc)},
    {Py_bf_getbuffer, as_slot(buffer_get)},
    {0, nullptr},
};
PyType_Spec buffer_spec = {"cdd._cdd.ArrowBuffer", sizeof(ArrowBufferObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           buffer_slots};

struct Stream {
  ArrowArrayStream stream{};
  ArrowSchema schema{};
  ~Stream() {
    if (schema.release != nullptr) schema.release(&schema);
    if (stream.release != nullptr) stream.release(&stream);
  }
};

struct ArrowBatchesObject {
  PyObject_HEAD Stream* stream;
};

[[noreturn]] void fail_stream(ArrowArrayStream& stream, const char* what) {
  const char* const text = stream.get_last_error == nullptr ? nullptr : stream.get_last_error(&stream);
  fail(ErrorCode::InvalidArgument, "the Arrow stream gives no %s: %s", what,
       text == nullptr ? "no reason" : text);
}

// Bits of an item; 0 where buffers are of another kind.
unsigned item_bits(const char* format) {
  switch (format[0]) {
    case 'b':
      return 1;
    case 'c':
    case 'C':
      return 8;
    case 's':
    case 'S':
    case 'e':
      return 16;
    case 'i':
    case 'I':
    case 'f':
      return 32;
    case 'l':
    case 'L':
    case 'g':
      return 64;
    case 't':
      if (format[1] == 'd') return format[2] == 'D' ? 32 : 64;
      if (format[1] == 't') return format[2] == 's' || format[2] == 'm' ? 32 : 64;
      return format[1] == 's' || format[1] == 'D' ? 64 : 0;
    default:
      return 0;
  }
}

// Bytes of an offset into text or bytes, 0 for other columns.
unsigned offset_bytes(const char* format) {
  if (format[1] != '\0') return 0;
  if (format[0] == 'u' || format[0] == 'z') return 4;
  return format[0] == 'U' || format[0] == 'Z' ? 8 : 0;
}

PyObject* buffer_object(const ModuleState& state, const std::shared_ptr<Batch>& batch, const void* data,
                        ull bytes) {
  auto* const self = allocate<ArrowBufferObject>(reinterpret_cast<PyTypeObject*>(state.arrow_buffer_type));
  if (self == nullptr) return nullptr;
  new (&self->batch) std::shared_ptr<Batch>(batch);
  self->data = data;
  self->bytes = static_cast<std::size_t>(bytes);
  return reinterpret_cast<PyObject*>(self);
}

std::size_t sizes_of_items(const ArrowArray& array, const char* name) {
  const auto items = static_cast<ull>(array.offset) + static_cast<ull>(array.length);
  if (array.length < 0 || array.offset < 0 || items > (ull{1} << 40)) {
    fail(ErrorCode::InvalidArgument, "column \"%s\" has length %lld and offset %lld", name,
         static_cast<long long>(array.length), static_cast<long long>(array.offset));
  }
  return static_cast<std::size_t>(items);
}

// Sizes of a column's buffers, which the interface leaves to the format.
std::vector<ull> sizes_of(const ArrowArray& array, const char* format, const char* name) {
  const ull items = sizes_of_items(array, name);
  std::vector<ull> sizes{(items + 7) / 8};
  if (const unsigned bits = item_bits(format)) {
    sizes.push_back((items * bits + 7) / 8);
  } else if (const unsigned width = offset_bytes(format)) {
    sizes.push_back((items + 1) * width);
    const auto* const offsets =
        static_cast<const std::byte*>(array.n_buffers == 3 ? array.buffers[1] : nullptr);
    ull end = 0;
    if (offsets != nullptr && items > 0) {
      end = width == 4 ? load<std::uint32_t>(offsets + 4 * items) : load<std::uint64_t>(offsets + 8 * items);
    }
    sizes.push_back(end);
  } else {
    fail(ErrorCode::Unsupported,
         "column \"%s\" is of Arrow's format \"%s\": numbers, bool, times, text and bytes are read", name,
         format);
  }
  if (array.n_buffers != static_cast<std::int64_t>(sizes.size())) {
    fail(ErrorCode::InvalidArgument, "column \"%s\" has %lld buffers, its format \"%s\" says %zu", name,
         static_cast<long long>(array.n_buffers), format, sizes.size());
  }
  return sizes;
}

PyObject* buffers_of(const ModuleState& state, const std::shared_ptr<Batch>& batch, const ArrowArray& array,
                     const char* format, const char* name) {
  const std::vector<ull> sizes = sizes_of(array, format, name);
  Ref buffers(PyTuple_New(static_cast<Py_ssize_t>(sizes.size())));
  if (!buffers) throw PythonError();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const void* const data = array.buffers[i];
    PyObject* const object = data == nullptr && i == 0
                                 ? Ref::borrow(Py_None).release()
                                 : buffer_object(state, batch, data, data == nullptr ? 0 : sizes[i]);
    if (object == nullptr || PyTuple_SetItem(buffers.get(), static_cast<Py_ssize_t>(i), object) < 0) {
      throw PythonError();
    }
  }
  return buffers.release();
}

bool has_views(const char* format) { return format[0] == 'v' && (format[1] == 'u' || format[1] == 'z'); }

// Texts that lie anywhere, made into texts one after the other: offsets and bytes.
PyObject* buffers_of_views(const ModuleState& state, const std::shared_ptr<Batch>& batch,
                           const ArrowArray& array, const char* name) {
  constexpr std::size_t kViewBytes = 16;
  constexpr std::uint32_t kInline = 12;  // bytes that fit beside the length
  const std::size_t items = sizes_of_items(array, name);
  const auto* const views = static_cast<const std::byte*>(array.n_buffers >= 3 ? array.buffers[1] : nullptr);
  if (views == nullptr && items > 0) fail(ErrorCode::InvalidArgument, "column \"%s\" has no views", name);
  Pages offsets((items + 1) * sizeof(std::int64_t));
  store<std::int64_t>(offsets.data(), 0);
  std::int64_t end = 0;
  const auto first = static_cast<std::size_t>(array.offset);
  for (std::size_t i = 0; i < items; ++i) {
    if (i >= first) end += load<std::uint32_t>(views + kViewBytes * i);
    store<std::int64_t>(offsets.data() + 8 * (i + 1), end);
  }
  Pages text(static_cast<std::size_t>(end));
  for (std::size_t i = first; i < items; ++i) {
    const std::byte* const view = views + kViewBytes * i;
    const auto bytes = load<std::uint32_t>(view);
    const std::byte* from = view + 4;
    if (bytes > kInline) {
      const auto number = load<std::uint32_t>(view + 8);
      if (std::int64_t{number} + 3 >= array.n_buffers) {
        fail(ErrorCode::InvalidArgument, "column \"%s\" has no buffer %u", name, number);
      }
      from = static_cast<const std::byte*>(array.buffers[2 + number]) + load<std::uint32_t>(view + 12);
    }
    if (bytes > 0) std::memcpy(text.data() + load<std::int64_t>(offsets.data() + 8 * i), from, bytes);
  }
  Ref valid(array.buffers[0] == nullptr ? Ref::borrow(Py_None).release()
                                        : buffer_object(state, batch, array.buffers[0], (items + 7) / 8));
  const std::size_t offset_bytes = offsets.size();
  Ref ends(pages_object(state, std::move(offsets), offset_bytes));
  Ref data(pages_object(state, std::move(text), static_cast<std::size_t>(end)));
  if (!valid || !ends || !data) throw PythonError();
  PyObject* const made = PyTuple_Pack(3, valid.get(), ends.get(), data.get());
  if (made == nullptr) throw PythonError();
  return made;
}

// (rows, nulls, offset, buffers, dictionary or None)
PyObject* column_object(const ModuleState& state, const std::shared_ptr<Batch>& batch,
                        const ArrowArray& array, const ArrowSchema& schema, const char* name) {
  Ref buffers(has_views(schema.format) ? buffers_of_views(state, batch, array, name)
                                       : buffers_of(state, batch, array, schema.format, name));
  Ref dictionary = Ref::borrow(Py_None);
  if (schema.dictionary != nullptr) {
    if (array.dictionary == nullptr)
      fail(ErrorCode::InvalidArgument, "column \"%s\" lacks its dictionary", name);
    dictionary = Ref(column_object(state, batch, *array.dictionary, *schema.dictionary, name));
  }
  PyObject* const made =
      Py_BuildValue("(LLLNN)", static_cast<long long>(array.length), static_cast<long long>(array.null_count),
                    static_cast<long long>(array.offset), buffers.release(), dictionary.release());
  if (made == nullptr) throw PythonError();
  return made;
}

PyObject* batch_object(const ModuleState& state, const std::shared_ptr<Batch>& batch,
                       const ArrowSchema& schema) {
  const ArrowArray& array = batch->array;
  if (array.n_children != schema.n_children)
    fail(ErrorCode::InvalidArgument, "a batch has other columns than its stream");
  Ref columns(PyTuple_New(array.n_children));
  if (!columns) throw PythonError();
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    const ArrowSchema& field = *schema.children[i];
    PyObject* const column =
        column_object(state, batch, *array.children[i], field, field.name == nullptr ? "" : field.name);
    if (PyTuple_SetItem(columns.get(), i, column) < 0) throw PythonError();
  }
  PyObject* const made = Py_BuildValue("(LLN)", static_cast<long long>(array.length),
                                       static_cast<long long>(array.offset), columns.release());
  if (made == nullptr) throw PythonError();
  return made;
}

PyObject* batches_next(PyObject* self) {
  Stream& stream = *reinterpret_cast<ArrowBatchesObject*>(self)->stream;
  const ModuleState& state = state_of(self);
  const auto batch = std::make_shared<Batch>();
  PyObject* made = nullptr;
  int error = 0;
  {
    const GilRelease released;  // the producer may want it in another thread
    error = stream.stream.get_next(&stream.stream, &batch->array);
  }
  const bool done = with_gil(state, nullptr, [&] {
    if (error != 0) fail_stream(stream.stream, "batch");
    if (batch->array.release != nullptr) made = batch_object(state, batch, stream.schema);
  });
  return done ? made : nullptr;
}

void batches_dealloc(PyObject* self) {
  delete reinterpret_cast<ArrowBatchesObject*>(self)->stream;
  free_object(self);
}

PyType_Slot batches_slots[] = {
    {Py_tp_dealloc, as_slot(batches_dealloc)},
    {Py_tp_iter, as_slot(PyObject_SelfIter)},
    {Py_tp_iternext, as_slot(batches_next)},
    {0, nullptr},
};
PyType_Spec batches_spec = {"cdd._cdd.ArrowBatches", sizeof(ArrowBatchesObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                            batches_slots};

// As Python gets it: views come as large texts.
const char* shown_format(const char* format) {
  if (!has_views(format)) return format;
  return format[1] == 'u' ? "U" : "Z";
}

PyObject* fields_object(const ArrowSchema& schema) {
  if (std::strcmp(schema.format, "+s") != 0) {
    fail(ErrorCode::Unsupported, "the Arrow stream is of format \"%s\", not a table of columns",
         schema.format);
  }
  Ref fields(PyTuple_New(schema.n_children));
  if (!fields) throw PythonError();
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema& field = *schema.children[i];
    PyObject* const one =
        Py_BuildValue("(ssNz)", field.name == nullptr ? "" : field.name, shown_format(field.format),
                      PyBool_FromLong((field.flags & kArrowNullable) != 0),
                      field.dictionary == nullptr ? nullptr : shown_format(field.dictionary->format));
    if (one == nullptr || PyTuple_SetItem(fields.get(), i, one) < 0) throw PythonError();
  }
  return fields.release();
}

}  // namespace

PyObject* arrow_batches(PyObject* module, PyObject* capsule) {
  const ModuleState& state = state_of_module(module);
  auto* const given = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kArrowStreamName));
  if (given == nullptr) return nullptr;
  auto* const self = allocate<ArrowBatchesObject>(reinterpret_cast<PyTypeObject*>(state.arrow_batches_type));
  if (self == nullptr) return nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  PyObject* fields = nullptr;
  const bool done = with_gil(state, nullptr, [&] {
    if (given->release == nullptr) fail(ErrorCode::InvalidArgument, "the Arrow stream was read already");
    self->stream = new Stream;
    self->stream->stream = *given;
    given->release = nullptr;
    if (self->stream->stream.get_schema(&self->stream->stream, &self->stream->schema) != 0) {
      fail_stream(self->stream->stream, "schema");
    }
    fields = fields_object(self->stream->schema);
  });
  return done ? Py_BuildValue("(NN)", fields, owner.release()) : nullptr;
}

bool add_arrow_types(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.arrow_buffer_type = PyType_FromModuleAndSpec(module, &buffer_spec, nullptr);
  state.arrow_batches_type = PyType_FromModuleAndSpec(module, &batches_spec, nullptr);
  return state.arrow_buffer_type != nullptr && state.arrow_batches_type != nullptr;
}

}  // namespace cdd::ext
