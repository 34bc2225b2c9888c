// class PackedWriter:
//     """Makes packed rows of version 2; take() gives what there is to write."""
//     def __new__(cls, schema: tuple[(name, type code, nullable), ...], user_meta, compression, level,
//     block_bytes) def add_rows(rows) ; add_text(text, options, last, where) -> (consumed, where) ;
//     add_columns(columns, rows) def flush() ; close() ; take() -> bytes ; rows ; waiting
#include <cstring>
#include <mutex>
#include <new>

#include "core/packed/column_codec.h"
#include "core/packed/csv/rows.h"
#include "core/packed/writer2.h"
#include "ext/arguments.h"
#include "ext/packed/csv_functions.h"

namespace cdd::ext {
namespace {

using packed::Schema;
using packed::Writer2;

constexpr Choice<Compressor> kCompressions[] = {
    {"none", Compressor::None}, {"lz4", Compressor::Lz4}, {"zstd", Compressor::Zstd}};

// One thread at a time; the GIL is let go of before the mutex is taken.
struct WriterState {
  std::mutex mutex;
  std::unique_ptr<Writer2> writer;
};

struct PackedWriterObject {
  PyObject_HEAD WriterState* state;
};

PackedWriterObject* cast(PyObject* self) { return reinterpret_cast<PackedWriterObject*>(self); }

template <class Work>
bool with_writer(PyObject* self, Work&& work) {
  WriterState& state = *cast(self)->state;
  return without_gil(state_of(self), nullptr, [&] {
    const std::lock_guard lock(state.mutex);
    work(*state.writer);
  });
}

bool take_schema(const ModuleState& state, PyObject* columns, PyObject* meta, Schema* schema) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(columns); ++i) {
    const char* name = nullptr;
    const char* type = nullptr;
    Py_ssize_t bytes = 0;
    if (PyArg_ParseTuple(PyTuple_GetItem(columns, i), "s#s", &name, &bytes, &type) == 0) return false;
    packed::Type known = packed::Type::Text;
    if (!with_gil(state, nullptr, [&] { known = column_type(type); })) return false;
    schema->columns.push_back({std::string(name, static_cast<std::size_t>(bytes)), packed::schema_type(known),
                               known != packed::Type::Text});
  }
  Buffer buffer;
  if (!buffer.acquire(meta, PyBUF_SIMPLE)) return false;
  schema->user_meta.assign(buffer.bytes().begin(), buffer.bytes().end());
  return true;
}

PyObject* writer_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* columns = nullptr;
  PyObject* meta = nullptr;
  const char* compression = nullptr;
  int level = 0;
  Py_ssize_t block_bytes = 0;
  if (PyArg_ParseTuple(args, "O!Osin", &PyTuple_Type, &columns, &meta, &compression, &level, &block_bytes) ==
      0) {
    return nullptr;
  }
  const ModuleState& state = state_of_type(type);
  Schema schema;
  if (!take_schema(state, columns, meta, &schema)) return nullptr;
  auto* const self = allocate<PackedWriterObject>(type);
  if (self == nullptr) return nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  const bool made = with_gil(state, nullptr, [&] {
    self->state = new WriterState;
    const packed::Writer2Options options{choose("compression", compression, kCompressions), level,
                                         static_cast<std::size_t>(block_bytes)};
    self->state->writer = std::make_unique<Writer2>(options, schema);
  });
  return made ? owner.release() : nullptr;
}

void writer_dealloc(PyObject* self) {
  delete cast(self)->state;
  free_object(self);
}

// Rows are taken whole before the first is added, so that a wrong one leaves no half of itself.
PyObject* writer_add_rows(PyObject* self, PyObject* rows) {
  const Ref iterator(PyObject_GetIter(rows));
  if (!iterator) return nullptr;
  const ModuleState& state = state_of(self);
  unsigned long long number = 0;
  while (const Ref row{PyIter_Next(iterator.get())}) {
    if (PyUnicode_Check(row.get()) != 0) {
      PyErr_SetString(PyExc_TypeError, "a row is a sequence of fields, not a str");
      return nullptr;
    }
    const Ref fields(PySequence_Tuple(row.get()));
    if (!fields) return nullptr;
    std::vector<Bytes> taken;
    for (Py_ssize_t j = 0; j < PyTuple_Size(fields.get()); ++j) {
      Bytes field;
      if (!field_bytes(PyTuple_GetItem(fields.get(), j), number, &field)) return nullptr;
      taken.push_back(field);
    }
    const bool added = with_gil(state, nullptr, [&] {
      const std::lock_guard lock(cast(self)->state->mutex);
      for (const Bytes field : taken) cast(self)->state->writer->add_field(field);
      cast(self)->state->writer->end_row();
    });
    if (!added) return nullptr;
    ++number;
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  Py_RETURN_NONE;
}

PyObject* writer_add_text(PyObject* self, PyObject* args) {
  const ModuleState& state = state_of(self);
  PyObject* source = nullptr;
  PyObject* tuple = nullptr;
  PyObject* where = nullptr;
  int last = 0;
  packed::CsvOptions options;
  packed::ColumnsState at;
  Buffer text;
  if (PyArg_ParseTuple(args, "OO!pO!", &source, &PyTuple_Type, &tuple, &last, &PyTuple_Type, &where) == 0 ||
      !take_csv_options(state, tuple, &options) || !take_where(where, &at) ||
      !text.acquire(source, PyBUF_SIMPLE)) {
    return nullptr;
  }
  std::size_t consumed = 0;
  const bool done = with_writer(self, [&](Writer2& writer) {
    Bytes rest = text.bytes();
    if (!at.begun) {
      std::vector<std::string> names;
      const std::size_t begin = packed::begin_csv(options, rest, last != 0, at, &names);
      if (begin == simd::kCsvNone) return;
      consumed = begin;
      rest = rest.subspan(begin);
    }
    packed::CsvRows rows(options, rest, last != 0, at.progress);
    for (packed::CsvBlock block; rows.next(&block);) {
      const simd::CsvCell* cell = block.cells;
      for (std::size_t r = 0; r < block.rows; ++r) {
        for (std::uint32_t c = 0; c < block.columns; ++c, ++cell) writer.add_field({cell->data, cell->bytes});
        writer.end_row();
      }
    }
    consumed += rows.consumed();
    at.progress.text_offset += rows.consumed();
  });
  if (!done) return nullptr;
  Ref next(where_object(at));
  return next ? Py_BuildValue("(nN)", static_cast<Py_ssize_t>(consumed), next.release()) : nullptr;
}

PyObject* writer_add_columns(PyObject* self, PyObject* args) {
  PyObject* list = nullptr;
  unsigned long long rows = 0;
  packed::Columns columns;
  if (PyArg_ParseTuple(args, "O!K", &PyTuple_Type, &list, &rows) == 0 ||
      !take_columns(state_of(self), list, rows, &columns) ||
      !with_writer(self, [&](Writer2& writer) { writer.add_columns(columns); })) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* writer_flush(PyObject* self, PyObject*) {
  if (!with_writer(self, [](Writer2& writer) { writer.flush(); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* writer_close(PyObject* self, PyObject*) {
  if (!with_writer(self, [](Writer2& writer) { writer.close(); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* writer_take(PyObject* self, PyObject*) {
  std::vector<std::byte> bytes;
  if (!with_writer(self, [&](Writer2& writer) { bytes = writer.take(); })) return nullptr;
  return bytes_object(bytes);
}

PyObject* get_rows(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(cast(self)->state->writer->rows());
}
PyObject* get_waiting(PyObject* self, void*) {
  return PyLong_FromSize_t(cast(self)->state->writer->waiting_bytes());
}

PyMethodDef methods[] = {
    {"add_rows", writer_add_rows, METH_O, nullptr},
    {"add_text", writer_add_text, METH_VARARGS, nullptr},
    {"add_columns", writer_add_columns, METH_VARARGS, nullptr},
    {"flush", writer_flush, METH_NOARGS, nullptr},
    {"close", writer_close, METH_NOARGS, nullptr},
    {"take", writer_take, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"rows", get_rows, nullptr, nullptr, nullptr},
    {"waiting", get_waiting, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(writer_new)},
    {Py_tp_dealloc, as_slot(writer_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.PackedWriter", sizeof(PackedWriterObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

bool add_packed_writer(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.packed_writer_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.packed_writer_type &&
         PyModule_AddObjectRef(module, "PackedWriter", state.packed_writer_type) == 0;
}

}  // namespace cdd::ext
