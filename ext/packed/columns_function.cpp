// csv_columns: text to typed columns, as cdd/packed/columns.py takes them.
#include <string>

#include "core/packed/columns.h"
#include "core/packed/file2.h"
#include "ext/arguments.h"
#include "ext/packed/csv_functions.h"

namespace cdd::ext {
namespace {

using packed::Column;
using packed::Columns;
using packed::ColumnsState;
using packed::Type;

constexpr Choice<Type> kTypes[] = {
    {"auto", Type::Auto},         {"bool", Type::Bool},         {"int64", Type::Int64},
    {"uint64", Type::UInt64},     {"float64", Type::Float64},   {"datetime64[ns]", Type::Time},
    {"text", Type::Text},         {"epoch[s]", Type::EpochS},   {"epoch[ms]", Type::EpochMs},
    {"epoch[us]", Type::EpochUs}, {"epoch[ns]", Type::EpochNs}, {"float32", Type::Float32},
};

// A name, or one with "=" before it: exact.
bool take_types(const ModuleState& state, PyObject* names, std::vector<packed::WantedType>* types) {
  if (names == Py_None) return true;
  return with_gil(state, nullptr, [&] {
    for (Py_ssize_t i = 0; i < PyTuple_Size(names); ++i) {
      const char* const name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, i), nullptr);
      if (name == nullptr) throw PythonError();
      const bool exact = name[0] == '=';
      types->push_back({choose("a type", name + exact, kTypes), exact});
    }
  });
}

bool take_masks(PyObject* numbers, std::vector<packed::TypeMask>* masks) {
  for (Py_ssize_t i = 0; numbers != Py_None && i < PyTuple_Size(numbers); ++i) {
    const unsigned long mask = PyLong_AsUnsignedLong(PyTuple_GetItem(numbers, i));
    if (PyErr_Occurred() != nullptr) return false;
    masks->push_back(static_cast<packed::TypeMask>(mask));
  }
  return true;
}

PyObject* or_none(Ref object) { return object ? object.release() : Ref::borrow(Py_None).release(); }

// (type, values, text or None, valid or None, nulls, mask)
PyObject* column_object(const ModuleState& state, Column& column, std::uint64_t rows) {
  const bool is_text = column.type == Type::Text;
  const auto n = static_cast<std::size_t>(rows);
  const std::size_t bytes = is_text ? (n + 1) * 8 : n * packed::item_bytes(column.type);
  Ref values(pages_object(state, std::move(column.values), bytes));
  Ref text(is_text ? pages_object(state, std::move(column.text), static_cast<std::size_t>(column.text_bytes))
                   : nullptr);
  const bool has_valid = column.valid.data() != nullptr;
  Ref valid(has_valid ? pages_object(state, std::move(column.valid), n) : nullptr);
  if (!values || PyErr_Occurred() != nullptr) return nullptr;
  return Py_BuildValue("(sNNNKI)", packed::type_name(column.type), values.release(), or_none(std::move(text)),
                       or_none(std::move(valid)), static_cast<unsigned long long>(column.nulls), column.mask);
}

PyObject* list_of(const ModuleState& state, Columns& columns) {
  Ref list(PyList_New(0));
  for (Column& column : columns.columns) {
    const Ref item(list ? column_object(state, column, columns.rows) : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* names_of(const Columns& columns) {
  Ref list(PyList_New(0));
  for (const std::string& name : columns.names) {
    const Ref item(
        list ? PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogateescape")
             : nullptr);
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace

packed::Type column_type(const char* name) { return choose("a type", name, kTypes); }

bool take_where(PyObject* tuple, ColumnsState* state) {
  int begun = 0, header = 0;
  unsigned long long lines = 0, rows = 0, skipped = 0, offset = 0;
  unsigned columns = 0;
  if (PyArg_ParseTuple(tuple, "ppKKKKI", &begun, &header, &lines, &rows, &skipped, &offset, &columns) == 0)
    return false;
  state->begun = begun != 0;
  state->header = header != 0;
  state->progress.lines = lines;
  state->progress.rows = rows;
  state->progress.skipped = skipped;
  state->progress.text_offset = offset;
  state->progress.columns = columns;
  return true;
}

PyObject* where_object(const ColumnsState& state) {
  const packed::CsvProgress& p = state.progress;
  using ull = unsigned long long;
  return Py_BuildValue("(OOKKKKI)", state.begun ? Py_True : Py_False, state.header ? Py_True : Py_False,
                       static_cast<ull>(p.lines), static_cast<ull>(p.rows), static_cast<ull>(p.skipped),
                       static_cast<ull>(p.text_offset), p.columns);
}

PyObject* csv_columns(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* source = nullptr;
  PyObject* tuple = nullptr;
  PyObject* names = nullptr;
  PyObject* numbers = nullptr;
  PyObject* where = nullptr;
  int last = 0;
  packed::CsvOptions options;
  std::vector<packed::WantedType> types;
  std::vector<packed::TypeMask> masks;
  Buffer text;
  ColumnsState at;
  if (PyArg_ParseTuple(args, "OO!OOpO!", &source, &PyTuple_Type, &tuple, &names, &numbers, &last,
                       &PyTuple_Type, &where) == 0) {
    return nullptr;
  }
  if (!take_where(where, &at) || !take_csv_options(state, tuple, &options) ||
      !take_types(state, names, &types) || !take_masks(numbers, &masks) ||
      !text.acquire(source, PyBUF_SIMPLE)) {
    return nullptr;
  }
  Columns made;
  if (!without_gil(state, nullptr,
                   [&] { made = read_columns(options, types, masks, text.bytes(), last != 0, at); })) {
    return nullptr;
  }
  Ref list(list_of(state, made));
  Ref header_names(list ? names_of(made) : nullptr);
  if (!header_names) return nullptr;
  Ref next(where_object(at));
  if (!next) return nullptr;
  return Py_BuildValue("(NNKnN)", header_names.release(), list.release(),
                       static_cast<unsigned long long>(made.rows), static_cast<Py_ssize_t>(made.consumed),
                       next.release());
}

// (packed, first, count) -> columns, of version 2 with blocks of columns
PyObject* packed_table(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* object = nullptr;
  if (PyArg_ParseTuple(args, "O", &object) == 0) return nullptr;
  if (PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(state.packed_type)) == 0) {
    PyErr_SetString(PyExc_TypeError, "packed_table takes PackedRows");
    return nullptr;
  }
  const auto& packed = *reinterpret_cast<PackedObject*>(object);
  Columns made;
  const bool read = without_gil(state, nullptr, [&] {
    const auto* const file = dynamic_cast<const packed::File2*>(packed.shared->file.get());
    if (file == nullptr) fail(ErrorCode::InvalidArgument, "version 1 has no typed columns");
    made = file->read_columns(packed.first, packed.count);
  });
  return read ? list_of(state, made) : nullptr;
}

}  // namespace cdd::ext
