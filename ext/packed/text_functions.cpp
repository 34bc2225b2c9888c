// Columns as Python gives them, and CSV text made of them and of packed rows.
#include <cstring>

#include "core/packed/array_text.h"
#include "core/packed/csv_text.h"
#include "ext/arguments.h"
#include "ext/packed/csv_functions.h"

namespace cdd::ext {
namespace {

using packed::Column;
using packed::Type;

// A copy of a buffer of at least `needed` bytes; nothing of None. False with a Python exception set.
bool copy_buffer(const ModuleState& state, PyObject* object, std::size_t needed, Pages* pages,
                 std::uint64_t* bytes) {
  if (object == Py_None) return true;
  Buffer buffer;
  if (!buffer.acquire(object, PyBUF_SIMPLE)) return false;
  return with_gil(state, nullptr, [&] {
    const Bytes given = buffer.bytes();
    if (given.size() < needed) {
      fail(ErrorCode::InvalidArgument, "a column has %zu bytes, its rows need %zu", given.size(), needed);
    }
    *pages = Pages(given.size());
    if (!given.empty()) std::memcpy(pages->data(), given.data(), given.size());
    if (bytes != nullptr) *bytes = given.size();
  });
}

// Offsets that go up and stay within the text.
void check_offsets(Column& column, std::size_t rows) {
  std::int64_t before = 0;
  for (std::size_t r = 0; r <= rows; ++r) {
    const auto end = load<std::int64_t>(column.values.data() + 8 * r);
    if (end < before || static_cast<std::uint64_t>(end) > column.text_bytes) {
      fail(ErrorCode::InvalidArgument, "text %zu of a column ends at %lld", r, static_cast<long long>(end));
    }
    before = end;
  }
}

bool take_column(const ModuleState& state, PyObject* tuple, std::size_t rows, Column* column) {
  const char* type = nullptr;
  PyObject *values = nullptr, *text = nullptr, *valid = nullptr;
  unsigned long long nulls = 0;
  if (PyArg_ParseTuple(tuple, "sOOOK", &type, &values, &text, &valid, &nulls) == 0) return false;
  column->nulls = nulls;
  if (!with_gil(state, nullptr, [&] { column->type = column_type(type); })) return false;
  const bool is_text = column->type == Type::Text;
  const std::size_t needed = is_text ? 8 * (rows + 1) : rows * packed::item_bytes(column->type);
  if (!copy_buffer(state, values, needed, &column->values, nullptr) ||
      !copy_buffer(state, text, 0, &column->text, &column->text_bytes) ||
      !copy_buffer(state, valid, rows, &column->valid, nullptr)) {
    return false;
  }
  return with_gil(state, nullptr, [&] {
    if (nulls > 0 && column->valid.data() == nullptr) {
      fail(ErrorCode::InvalidArgument, "a column has %llu nulls and no validity", nulls);
    }
    if (is_text) check_offsets(*column, rows);
  });
}

bool take_dialect(PyObject* tuple, simd::CsvDialect* dialect) {
  int delimiter = 0;
  int quote = 0;
  if (PyArg_ParseTuple(tuple, "ii", &delimiter, &quote) == 0) return false;
  dialect->delimiter = static_cast<std::uint8_t>(delimiter);
  dialect->quotes = quote >= 0;
  dialect->quote = static_cast<std::uint8_t>(quote);
  return true;
}

}  // namespace

bool take_columns(const ModuleState& state, PyObject* tuple, std::uint64_t rows, packed::Columns* columns) {
  columns->rows = rows;
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i) {
    Column column;
    if (!take_column(state, PyTuple_GetItem(tuple, i), static_cast<std::size_t>(rows), &column)) return false;
    columns->columns.push_back(std::move(column));
  }
  return true;
}

PyObject* csv_text(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* tuple = nullptr;
  PyObject* how = nullptr;
  unsigned long long rows = 0;
  packed::Columns columns;
  simd::CsvDialect dialect;
  if (PyArg_ParseTuple(args, "O!KO!", &PyTuple_Type, &tuple, &rows, &PyTuple_Type, &how) == 0 ||
      !take_dialect(how, &dialect) || !take_columns(state, tuple, rows, &columns)) {
    return nullptr;
  }
  std::vector<std::byte> text;
  const bool made = without_gil(state, nullptr, [&] { packed::append_csv(dialect, columns, &text); });
  return made ? bytes_object(text) : nullptr;
}

PyObject* packed_text(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* object = nullptr;
  PyObject* how = nullptr;
  simd::CsvDialect dialect;
  if (PyArg_ParseTuple(args, "OO!", &object, &PyTuple_Type, &how) == 0 || !take_dialect(how, &dialect))
    return nullptr;
  if (PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(state.packed_type)) == 0) {
    PyErr_SetString(PyExc_TypeError, "packed_text takes PackedRows");
    return nullptr;
  }
  const auto& packed = *reinterpret_cast<PackedObject*>(object);
  std::vector<std::byte> text;
  const bool made = without_gil(state, nullptr, [&] {
    packed::append_csv(dialect, *packed.shared->file, packed.first, packed.count, &text);
  });
  return made ? bytes_object(text) : nullptr;
}

PyObject* array_text(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  const char* type = nullptr;
  PyObject *object = nullptr, *dims = nullptr, *how = nullptr;
  unsigned long long count = 0;
  long long first = 0;
  long long step = 0;
  packed::ArrayRows rows;
  simd::CsvDialect dialect;
  Buffer items;
  if (PyArg_ParseTuple(args, "sOKO!LLO", &type, &object, &count, &PyTuple_Type, &dims, &first, &step, &how) ==
          0 ||
      (how != Py_None && !take_dialect(how, &dialect)) || !items.acquire(object, PyBUF_SIMPLE)) {
    return nullptr;
  }
  std::size_t row_items = 1;
  for (Py_ssize_t i = 0; i < PyTuple_Size(dims); ++i) {
    rows.dims.push_back(static_cast<std::uint32_t>(PyLong_AsUnsignedLong(PyTuple_GetItem(dims, i))));
    row_items *= rows.dims.back();
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  std::vector<std::byte> text;
  const bool made = without_gil(state, nullptr, [&] {
    rows.type = column_type(type);
    const bool is_number = rows.type <= packed::Type::Time || rows.type == packed::Type::Float32;
    const std::size_t row_bytes = row_items * packed::item_bytes(rows.type);
    const bool are_there = row_bytes == 0 || items.bytes().size() / row_bytes >= count;
    if (!is_number || rows.dims.size() > 16 || !are_there) {
      fail(ErrorCode::InvalidArgument, "%llu rows of %zu bytes are not in a buffer of %zu", count, row_bytes,
           items.bytes().size());
    }
    rows.items = items.bytes().data();
    rows.rows = count;
    rows.number_step = step;
    if (first >= 0) rows.first_number = static_cast<std::uint64_t>(first);
    if (how == Py_None) {
      packed::append_json(rows, &text);
    } else if (packed::is_plain_for_numbers(dialect)) {
      packed::append_csv(dialect, rows, &text);
    } else {
      fail(ErrorCode::InvalidArgument, "the delimiter or the quote stands in numbers");
    }
  });
  return made ? bytes_object(text) : nullptr;
}

}  // namespace cdd::ext
