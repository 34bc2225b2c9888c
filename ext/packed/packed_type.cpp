// class PackedRows:
//     """The base of cdd.packed.Packed: rows as they lie in a buffer, nothing kept per row."""
//     def __new__(cls, source: Buffer, check: str, header: bool)
//     def __len__, __getitem__, __iter__       tuples of str; slices share the buffer
//     def row(i), field(i, j), bytes(i, j), count(i), rows(columns), _column(j), _check(check)
//     version, columns, names
#include "ext/packed/packed_types.h"

#include <new>
#include <vector>

#include "core/format/packed/rows.h"
#include "core/packed/column_codec.h"
#include "core/packed/file2.h"
#include "core/packed/writer2.h"
#include "ext/arguments.h"

namespace cdd::ext {
namespace {

using packed::Check;

constexpr Choice<Check> kChecks[] = {
    {"header", Check::Header}, {"bounds", Check::Bounds}, {"full", Check::Full}, {"utf8", Check::Utf8}};

PackedObject* cast(PyObject* self) { return reinterpret_cast<PackedObject*>(self); }

// The module's state by the type, which may be a subclass made in Python and has none then.
const ModuleState* find_state(PyTypeObject* type) {
  for (; type != nullptr; type = static_cast<PyTypeObject*>(PyType_GetSlot(type, Py_tp_base))) {
    if (const void* const state = PyType_GetModuleState(type)) return static_cast<const ModuleState*>(state);
    PyErr_Clear();
  }
  return nullptr;
}

PackedObject* new_packed(PyTypeObject* type, const ModuleState* state) {
  auto* const self = allocate<PackedObject>(type);
  if (self == nullptr) return nullptr;
  self->state = state;
  new (&self->shared) std::shared_ptr<PackedShared>();
  new (&self->only) std::shared_ptr<const packed::RowBlock>();
  new (&self->last) Handle<const packed::RowBlock>();
  return self;
}

PyObject* packed_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* source = nullptr;
  const char* check = nullptr;
  int header = 0;
  if (PyArg_ParseTuple(args, "Osp", &source, &check, &header) == 0) return nullptr;
  PackedObject* const self = new_packed(type, find_state(type));
  if (self == nullptr) return nullptr;
  Ref owner(reinterpret_cast<PyObject*>(self));
  const ModuleState& state = *self->state;
  auto shared = std::make_shared<PackedShared>();
  if (!shared->source.acquire(source, PyBUF_SIMPLE)) return nullptr;
  const bool opened = without_gil(state, nullptr, [&] {
    const Check wanted = choose("check", check, kChecks);
    shared->file = packed::PackedFile::open(shared->source.bytes());
    shared->file->check(wanted);
    if (shared->file->version() == 1) self->only = shared->file->block_of(0);
  });
  if (!opened) return nullptr;
  self->shared = std::move(shared);
  self->count = self->shared->file->rows();
  self->header = header != 0 && self->count > 0 && self->shared->file->version() == 1;
  if (self->header) {
    self->first = 1;
    --self->count;
  }
  return owner.release();
}

void packed_dealloc(PyObject* self) {
  PackedObject* const packed = cast(self);
  using Shared = std::shared_ptr<PackedShared>;
  using Block = std::shared_ptr<const packed::RowBlock>;
  packed->shared.~Shared();
  packed->only.~Block();
  packed->last.~Handle<const packed::RowBlock>();
  free_object(self);
}

Py_ssize_t packed_length(PyObject* self) { return static_cast<Py_ssize_t>(cast(self)->count); }

// A row's number in the file; negative numbers count from the end. False with IndexError set.
bool row_number(PackedObject* self, PyObject* object, std::uint64_t* row) {
  const Py_ssize_t given = PyNumber_AsSsize_t(object, PyExc_IndexError);
  if (given == -1 && PyErr_Occurred() != nullptr) return false;
  const Py_ssize_t count = static_cast<Py_ssize_t>(self->count);
  const Py_ssize_t at = given < 0 ? given + count : given;
  if (at < 0 || at >= count) {
    PyErr_Format(PyExc_IndexError, "row %zd of %zd", given, count);
    return false;
  }
  *row = self->first + static_cast<std::uint64_t>(at);
  return true;
}

bool field_number(PackedObject* self, PyObject* object, std::uint32_t* field) {
  const Py_ssize_t given = PyNumber_AsSsize_t(object, PyExc_IndexError);
  if (given == -1 && PyErr_Occurred() != nullptr) return false;
  const auto count = static_cast<Py_ssize_t>(self->shared->file->columns());
  const Py_ssize_t at = given < 0 ? given + count : given;
  if (at < 0 || at >= count) {
    PyErr_Format(PyExc_IndexError, "field %zd of %zd", given, count);
    return false;
  }
  *field = static_cast<std::uint32_t>(at);
  return true;
}

PyObject* row_tuple(PackedObject* self, std::uint64_t row) {
  const ModuleState& state = *self->state;
  Ref tuple;
  const bool made = with_gil(state, nullptr, [&] {
    const RowAt at = row_at(self, row);
    const packed::RowsView& view = at.block->view;
    const std::uint32_t columns = packed::count_fields(view, at.row);
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    // Asks for nothing before it is known that so many fields can be there.
    if (!view.bounds(at.row, &begin, &end) || std::uint64_t{columns} * view.width > end - begin) {
      std::vector<Bytes> none(1);
      if (columns > 0) packed::read_field(view, at.row, columns - 1);
    }
    tuple = Ref(PyTuple_New(columns));
    if (!tuple) throw PythonError();
    packed::RowCursor cursor = view.cursor(begin, end);
    for (std::uint32_t j = 0; j < columns; ++j) {
      Bytes field;
      if (!cursor.next(&field)) packed::read_field(view, at.row, j);  // says what is wrong
      PyObject* const text = str_of(state, field, row, j);
      if (text == nullptr || PyTuple_SetItem(tuple.get(), j, text) < 0) throw PythonError();
    }
  });
  return made ? tuple.release() : nullptr;
}

PyObject* packed_slice(PyObject* self, PyObject* slice) {
  Py_ssize_t begin = 0;
  Py_ssize_t end = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(slice, &begin, &end, &step) < 0) return nullptr;
  if (step != 1) {
    PyErr_Format(PyExc_ValueError, "a slice of packed rows is a view without a step, not one of %zd", step);
    return nullptr;
  }
  const Py_ssize_t count = PySlice_AdjustIndices(packed_length(self), &begin, &end, step);
  PackedObject* const made = new_packed(Py_TYPE(self), cast(self)->state);
  if (made == nullptr) return nullptr;
  const PackedObject* const from = cast(self);
  made->shared = from->shared;
  made->only = from->only;
  made->first = from->first + static_cast<std::uint64_t>(begin);
  made->count = static_cast<std::uint64_t>(count);
  made->header = from->header;
  return reinterpret_cast<PyObject*>(made);
}

PyObject* packed_get(PyObject* self, PyObject* key) {
  if (PySlice_Check(key) != 0) return packed_slice(self, key);
  std::uint64_t row = 0;
  return row_number(cast(self), key, &row) ? row_tuple(cast(self), row) : nullptr;
}

// The bytes of field j of row i, still in the buffer; `at` keeps them.
bool find_field(PyObject* self, PyObject* const* args, Py_ssize_t count, RowAt* at, Bytes* field,
                std::uint64_t* row, std::uint32_t* column) {
  PackedObject* const packed = cast(self);
  if (count != 2) {
    PyErr_Format(PyExc_TypeError, "a row and a field are needed, got %zd arguments", count);
    return false;
  }
  if (!row_number(packed, args[0], row) || !field_number(packed, args[1], column)) return false;
  return with_gil(*cast(self)->state, nullptr, [&] {
    *at = row_at(packed, *row);
    if (!packed::find_field(at->block->view, at->row, *column, field))
      *field = packed::read_field(at->block->view, at->row, *column);
  });
}

PyObject* packed_field(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  RowAt at;
  Bytes field;
  std::uint64_t row = 0;
  std::uint32_t column = 0;
  if (!find_field(self, args, count, &at, &field, &row, &column)) return nullptr;
  return str_of(*cast(self)->state, field, row, column);
}

PyObject* packed_bytes(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  RowAt at;
  Bytes field;
  std::uint64_t row = 0;
  std::uint32_t column = 0;
  if (!find_field(self, args, count, &at, &field, &row, &column)) return nullptr;
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(field.data()),
                                   static_cast<Py_ssize_t>(field.size()));
}

PyObject* packed_count(PyObject* self, PyObject* number) {
  std::uint64_t row = 0;
  std::uint32_t fields = 0;
  if (!row_number(cast(self), number, &row)) return nullptr;
  const bool counted = with_gil(*cast(self)->state, nullptr, [&] {
    const RowAt at = row_at(cast(self), row);
    fields = packed::count_fields(at.block->view, at.row);
  });
  return counted ? PyLong_FromUnsignedLong(fields) : nullptr;
}

PyObject* packed_iterate(PyObject* self) { return new_packed_iterator(cast(self), nullptr); }

PyObject* packed_rows(PyObject* self, PyObject* columns) { return new_packed_iterator(cast(self), columns); }

PyObject* packed_column(PyObject* self, PyObject* number) {
  PackedObject* const packed = cast(self);
  std::uint32_t column = 0;
  if (!field_number(packed, number, &column)) return nullptr;
  packed::TextColumn texts;
  const ModuleState& state = *cast(self)->state;
  const bool read = without_gil(state, nullptr, [&] {
    texts = packed::read_text_column(*packed->shared->file, column, packed->first, packed->count);
  });
  if (!read) return nullptr;
  const Ref ends(pages_of(state, texts.ends.data(), texts.ends.size() * sizeof(std::uint64_t)));
  const Ref bytes(pages_of(state, texts.bytes.data(), texts.bytes.size()));
  return ends && bytes ? PyTuple_Pack(2, ends.get(), bytes.get()) : nullptr;
}

PyObject* packed_check(PyObject* self, PyObject* name) {
  const char* const check = PyUnicode_AsUTF8AndSize(name, nullptr);
  if (check == nullptr) return nullptr;
  const bool good = without_gil(*cast(self)->state, nullptr,
                                [&] { cast(self)->shared->file->check(choose("check", check, kChecks)); });
  if (!good) return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(cast(self)->shared->file->version());
}

PyObject* get_columns(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(cast(self)->shared->file->columns());
}

PyObject* get_names(PyObject* self, void*) {
  PackedObject* const packed = cast(self);
  if (packed->header) return row_tuple(packed, 0);
  const std::vector<std::string>& names = packed->shared->file->names();
  if (names.empty()) Py_RETURN_NONE;
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
  if (!tuple) return nullptr;
  for (std::size_t i = 0; i < names.size(); ++i) {
    PyObject* const name =
        PyUnicode_DecodeUTF8(names[i].data(), static_cast<Py_ssize_t>(names[i].size()), "strict");
    if (name == nullptr || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), name) < 0) return nullptr;
  }
  return tuple.release();
}

const packed::File2* file2_of(PyObject* self) {
  return dynamic_cast<const packed::File2*>(cast(self)->shared->file.get());
}

PyObject* get_torn(PyObject* self, void*) {
  const packed::File2* const file = file2_of(self);
  return PyLong_FromUnsignedLongLong(file == nullptr ? 0 : file->torn_bytes());
}

PyObject* get_finished(PyObject* self, void*) {
  const packed::File2* const file = file2_of(self);
  return PyBool_FromLong(file == nullptr || file->finished());
}

PyObject* get_user_meta(PyObject* self, void*) {
  const packed::File2* const file = file2_of(self);
  return file == nullptr ? PyBytes_FromStringAndSize(nullptr, 0) : bytes_object(file->schema().user_meta);
}

PyObject* get_types(PyObject* self, void*) {
  const packed::File2* const file = file2_of(self);
  Ref list(PyList_New(0));
  if (!list || file == nullptr) return list.release();
  const bool made = with_gil(*cast(self)->state, nullptr, [&] {
    for (const packed::SchemaColumn& column : file->schema().columns) {
      const Ref name(PyUnicode_FromString(packed::type_name(packed::type_of_schema(column.type))));
      if (!name || PyList_Append(list.get(), name.get()) < 0) throw PythonError();
    }
  });
  return made ? list.release() : nullptr;
}

PyObject* get_buffer(PyObject* self, void*) {
  PyObject* const source = cast(self)->shared->source.view().obj;
  return Ref::borrow(source == nullptr ? Py_None : source).release();
}

PyMethodDef methods[] = {
    {"field", as_method(packed_field), METH_FASTCALL,
     "field($self, row, field, /)\n--\n\nOne field as str. Nothing else is decoded."},
    {"bytes", as_method(packed_bytes), METH_FASTCALL,
     "bytes($self, row, field, /)\n--\n\nOne field as bytes, whatever they are."},
    {"_count", packed_count, METH_O, nullptr},
    {"_rows", packed_rows, METH_O, nullptr},
    {"_column", packed_column, METH_O, nullptr},
    {"_check", packed_check, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"version", get_version, nullptr, "1 or 2.", nullptr},
    {"columns", get_columns, nullptr, "Fields of a row; where rows differ, of the longest.", nullptr},
    {"names", get_names, nullptr, "Names of the columns as a tuple of str, or None where there are none.",
     nullptr},
    {"torn_bytes", get_torn, nullptr,
     "Bytes at the end of a stream that was cut, which belong to no whole block; 0 for a whole file.",
     nullptr},
    {"finished", get_finished, nullptr,
     "False for version 2 without its footer: rows may be missing at the end.", nullptr},
    {"user_meta", get_user_meta, nullptr, "The bytes that the writer was given; b\"\" in version 1.",
     nullptr},
    {"_types", get_types, nullptr, nullptr, nullptr},
    {"_buffer", get_buffer, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_new, as_slot(packed_new)},
    {Py_tp_dealloc, as_slot(packed_dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_iter, as_slot(packed_iterate)},
    {Py_mp_subscript, as_slot(packed_get)},
    {Py_mp_length, as_slot(packed_length)},
    {0, nullptr},
};

PyType_Spec spec = {"cdd._cdd.PackedRows", sizeof(PackedObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, slots};

}  // namespace

RowAt row_at(PackedObject* self, std::uint64_t row) {
  if (self->only) return {self->only.get(), static_cast<std::uint32_t>(row), {}};
  std::shared_ptr<const packed::RowBlock> block = self->last.get();
  if (!block || row < block->first_row || row - block->first_row >= block->view.rows) {
    block = self->shared->file->block_of(row);
    self->last.set(block);
  }
  const packed::RowBlock* const found = block.get();
  return {found, static_cast<std::uint32_t>(row - found->first_row), std::move(block)};
}

PyObject* str_of(const ModuleState& state, Bytes field, std::uint64_t row, std::uint64_t column) {
  PyObject* const text = PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(field.data()),
                                              static_cast<Py_ssize_t>(field.size()), nullptr);
  if (text != nullptr || PyErr_ExceptionMatches(PyExc_UnicodeDecodeError) == 0) return text;
  PyErr_Clear();
  with_gil(state, nullptr, [&] {
    fail_at({Place::Kind::Row, row, column, Place::kNone}, ErrorCode::Corrupt,
            "row %llu, field %llu is no UTF-8: bytes() gives it as it is",
            static_cast<unsigned long long>(row), static_cast<unsigned long long>(column));
  });
  return nullptr;
}

bool add_packed_types(PyObject* module) {
  ModuleState& state = state_of_module(module);
  state.packed_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
  return state.packed_type && PyModule_AddObjectRef(module, "PackedRows", state.packed_type) == 0 &&
         add_pages_type(module) && add_packed_iterator(module) && add_packed_writer(module);
}

}  // namespace cdd::ext
