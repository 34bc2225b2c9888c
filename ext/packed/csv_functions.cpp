#include "ext/packed/csv_functions.h"

#include <optional>

#include "core/packed/pack.h"
#include "ext/arguments.h"

namespace cdd::ext {
namespace {

using packed::Blank;
using packed::Ragged;

constexpr Choice<Ragged> kRagged[] = {{"error", Ragged::Error}, {"pad", Ragged::Pad}, {"skip", Ragged::Skip}};
constexpr Choice<Blank> kBlank[] = {{"skip", Blank::Skip}, {"field", Blank::Field}, {"error", Blank::Error}};

// Memory for a result: the caller's, or new.
class Target {
 public:
  // False with a Python exception set.
  bool take(PyObject* out) { return out == Py_None || (given_ = buffer_.acquire(out, PyBUF_WRITABLE)); }

  MutableBytes give(std::uint64_t bytes) {
    if (given_) {
      const MutableBytes all = buffer_.mutable_bytes();
      if (bytes > all.size()) {
        fail(ErrorCode::InvalidArgument, "out has %zu bytes, %llu are needed", all.size(),
             static_cast<unsigned long long>(bytes));
      }
      return all.first(static_cast<std::size_t>(bytes));
    }
    if (bytes > std::size_t(-1) / 2) throw std::bad_alloc();
    pages_ = Pages(static_cast<std::size_t>(bytes));
    return {pages_.data(), pages_.size()};
  }

  PyObject* result(const ModuleState& state, packed::Packed1 packed) {
    const Ref pages(given_ ? Ref::borrow(Py_None).release()
                           : pages_object(state, std::move(pages_), static_cast<std::size_t>(packed.bytes)));
    if (!pages) return nullptr;
    return Py_BuildValue("(OKIKK)", pages.get(), static_cast<unsigned long long>(packed.rows), packed.columns,
                         static_cast<unsigned long long>(packed.bytes),
                         static_cast<unsigned long long>(packed.skipped));
  }

 private:
  Buffer buffer_;
  bool given_ = false;
  Pages pages_;
};

}  // namespace

bool field_bytes(PyObject* field, unsigned long long row, Bytes* bytes) {
  Py_ssize_t count = 0;
  if (PyUnicode_Check(field) != 0) {
    const char* const text = PyUnicode_AsUTF8AndSize(field, &count);
    if (text != nullptr) *bytes = {as_bytes(static_cast<const void*>(text)), static_cast<std::size_t>(count)};
    return text != nullptr;
  }
  char* data = nullptr;
  if (PyBytes_Check(field) == 0) {
    PyErr_Format(PyExc_TypeError, "row %llu: a field is a str or bytes, not %R", row,
                 reinterpret_cast<PyObject*>(Py_TYPE(field)));
    return false;
  }
  if (PyBytes_AsStringAndSize(field, &data, &count) < 0) return false;
  *bytes = {as_bytes(static_cast<const void*>(data)), static_cast<std::size_t>(count)};
  return true;
}

namespace {

void add_python_field(packed::RowPacker& packer, PyObject* field) {
  Bytes bytes;
  if (!field_bytes(field, packer.rows(), &bytes)) throw PythonError();
  packer.add_field(bytes);
}

void add_python_row(packed::RowPacker& packer, PyObject* row) {
  if (PyUnicode_Check(row) != 0) {
    PyErr_SetString(PyExc_TypeError, "a row is a sequence of fields, not a str");
    throw PythonError();
  }
  const Ref fields(PySequence_Tuple(row));
  if (!fields) throw PythonError();
  for (Py_ssize_t j = 0; j < PyTuple_Size(fields.get()); ++j)
    add_python_field(packer, PyTuple_GetItem(fields.get(), j));
  packer.end_row();
}

}  // namespace

bool take_csv_options(const ModuleState& state, PyObject* tuple, packed::CsvOptions* options) {
  int delimiter = 0, quote = 0, strict = 0, utf8 = 0, comment = 0;
  const char* ragged = nullptr;
  const char* blank = nullptr;
  unsigned long long skip = 0, row_bytes = 0;
  unsigned max_columns = 0;
  PyObject* columns = nullptr;
  if (PyArg_ParseTuple(tuple, "iippissKOKI", &delimiter, &quote, &strict, &utf8, &comment, &ragged, &blank,
                       &skip, &columns, &row_bytes, &max_columns) == 0) {
    return false;
  }
  return with_gil(state, nullptr, [&] {
    options->dialect.delimiter = static_cast<std::uint8_t>(delimiter);
    options->dialect.quotes = quote >= 0;
    options->dialect.quote = static_cast<std::uint8_t>(quote);
    options->strict = strict != 0;
    options->utf8 = utf8 != 0;
    options->has_comment = comment >= 0;
    options->comment = static_cast<std::uint8_t>(comment);
    options->ragged = choose("ragged", ragged, kRagged);
    options->blank = choose("blank", blank, kBlank);
    options->skip_lines = skip;
    options->max_row_bytes = row_bytes;
    options->max_columns = max_columns;
    for (Py_ssize_t i = 0; i < PyTuple_Size(columns); ++i) {
      const unsigned long column = PyLong_AsUnsignedLong(PyTuple_GetItem(columns, i));
      if (PyErr_Occurred() != nullptr) throw PythonError();
      options->columns.push_back(static_cast<std::uint32_t>(column));
    }
    check_options(*options);
  });
}

PyObject* csv_pack(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* source = nullptr;
  PyObject* tuple = nullptr;
  PyObject* out = nullptr;
  packed::CsvOptions options;
  Buffer text;
  Target target;
  if (PyArg_ParseTuple(args, "OO!O", &source, &PyTuple_Type, &tuple, &out) == 0 ||
      !take_csv_options(state, tuple, &options) || !text.acquire(source, PyBUF_SIMPLE) || !target.take(out)) {
    return nullptr;
  }
  packed::Packed1 made{};
  const bool done = without_gil(state, nullptr, [&] {
    made = packed::pack_csv(options, text.bytes(), [&](std::uint64_t bytes) { return target.give(bytes); });
  });
  return done ? target.result(state, made) : nullptr;
}

PyObject* csv_first_row(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* source = nullptr;
  PyObject* tuple = nullptr;
  int last = 0;
  packed::CsvOptions options;
  Buffer text;
  if (PyArg_ParseTuple(args, "OO!p", &source, &PyTuple_Type, &tuple, &last) == 0 ||
      !take_csv_options(state, tuple, &options) || !text.acquire(source, PyBUF_SIMPLE)) {
    return nullptr;
  }
  std::vector<std::string> fields;
  std::size_t begin = 0;
  const bool done = without_gil(state, nullptr, [&] {
    packed::ColumnsState at;
    begin = packed::begin_csv(options, text.bytes(), last != 0, at, &fields);
  });
  if (!done) return nullptr;
  if (begin == simd::kCsvNone) Py_RETURN_NONE;
  Ref row(PyTuple_New(static_cast<Py_ssize_t>(fields.size())));
  for (std::size_t j = 0; row && j < fields.size(); ++j) {
    const std::string& field = fields[j];
    PyObject* const made =
        str_of(state, {as_bytes(static_cast<const void*>(field.data())), field.size()}, 0, j);
    if (made == nullptr) return nullptr;
    PyTuple_SetItem(row.get(), static_cast<Py_ssize_t>(j), made);
  }
  return row.release();
}

PyObject* csv_count(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* source = nullptr;
  PyObject* tuple = nullptr;
  packed::CsvOptions options;
  Buffer text;
  if (PyArg_ParseTuple(args, "OO!", &source, &PyTuple_Type, &tuple) == 0 ||
      !take_csv_options(state, tuple, &options) || !text.acquire(source, PyBUF_SIMPLE)) {
    return nullptr;
  }
  std::uint64_t rows = 0;
  const bool done =
      without_gil(state, nullptr, [&] { rows = packed::count_csv_rows(options, text.bytes()); });
  return done ? PyLong_FromUnsignedLongLong(rows) : nullptr;
}

PyObject* packed_pack(PyObject* module, PyObject* args) {
  const ModuleState& state = state_of_module(module);
  PyObject* rows = nullptr;
  PyObject* out = nullptr;
  Target target;
  if (PyArg_ParseTuple(args, "OO", &rows, &out) == 0 || !target.take(out)) return nullptr;
  const Ref iterator(PyObject_GetIter(rows));
  if (!iterator) return nullptr;
  packed::RowPacker packer;
  packed::Packed1 made{};
  const bool done = with_gil(state, nullptr, [&] {
    while (const Ref row{PyIter_Next(iterator.get())}) add_python_row(packer, row.get());
    if (PyErr_Occurred() != nullptr) throw PythonError();
    packer.write(target.give(packer.bytes()));
    made = {packer.rows(), 0, packer.columns(), packer.bytes()};
  });
  return done ? target.result(state, made) : nullptr;
}

}  // namespace cdd::ext
