// Functions over several columns at once: windows of many, and joins by time.
#include <array>
#include <deque>

#include "core/base/hash.h"
#include "core/dataset/asof.h"
#include "core/dataset/column.h"
#include "ext/arguments.h"
#include "ext/dataset/dataset.h"
#include "ext/store/rows_source.h"

namespace cdd::ext {
namespace {

// What one item of read_columns() holds on to while it is read.
struct Request {
  std::shared_ptr<Rows> core;
  Buffer starts;
  Buffer out;
  Cells cells;
};

// False with a Python exception set.
bool add_request(const ModuleState& state, PyObject* item, Request& request,
                 std::vector<ColumnWindows>& windows) {
  PyObject* column = nullptr;
  PyObject* starts = nullptr;
  unsigned long long rows = 0;
  PyObject* out = nullptr;
  PyObject* cells = nullptr;
  if (PyArg_ParseTuple(item, "O!OKOO", reinterpret_cast<PyTypeObject*>(state.column_type), &column, &starts,
                       &rows, &out, &cells) == 0) {
    return false;
  }
  const bool is_part = cells != Py_None;
  if (is_part && !parse_cells(cells, &request.cells)) return false;
  request.core = open_rows(column);
  std::span<const std::uint64_t> numbers;
  if (!request.core || !acquire_numbers(starts, "starts", request.starts, &numbers) ||
      !acquire_out(out, {numbers.size(), rows}, request.core->layout(), is_part, request.out)) {
    return false;
  }
  windows.push_back({static_cast<const Column*>(request.core.get()), is_part ? &request.cells : nullptr,
                     numbers, rows, request.out.mutable_bytes()});
  return true;
}

}  // namespace

PyObject* read_columns_of(PyObject* module, PyObject* columns) {
  const ModuleState& state = state_of_module(module);
  if (PyList_Check(columns) == 0) {
    PyErr_SetString(PyExc_TypeError, "read_columns takes a list");
    return nullptr;
  }
  std::deque<Request> requests;  // stay where they are
  std::vector<ColumnWindows> windows;
  for (Py_ssize_t i = 0; i < PyList_Size(columns); ++i) {
    requests.emplace_back();
    if (!add_request(state, PyList_GetItem(columns, i), requests.back(), windows)) return nullptr;
  }
  if (!without_gil(state, nullptr, [&] { read_columns(windows); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* asof(PyObject* module, PyObject* args) {
  static constexpr Choice<AsOf::Direction> kDirections[] = {{"backward", AsOf::Direction::Backward},
                                                            {"forward", AsOf::Direction::Forward},
                                                            {"nearest", AsOf::Direction::Nearest}};
  PyObject* left = nullptr;
  PyObject* right = nullptr;
  PyObject* out = nullptr;
  PyObject* ranges = nullptr;
  unsigned long long left_factor = 1, right_factor = 1;
  long long tolerance = 0;
  const char* direction = nullptr;
  int exact = 0;
  if (PyArg_ParseTuple(args, "OOOsLpKKO:asof", &left, &ranges, &right, &direction, &tolerance, &exact,
                       &left_factor, &right_factor, &out) == 0) {
    return nullptr;
  }
  const ModuleState& state = state_of_module(module);
  if (!is_source(state, left) || !is_source(state, right)) {
    PyErr_SetString(PyExc_TypeError, "asof takes two Readers or Columns");
    return nullptr;
  }
  const std::shared_ptr<Rows> left_rows = open_rows(left);
  if (!left_rows) return nullptr;
  const std::shared_ptr<Rows> right_rows = open_rows(right);
  Buffer places, given;
  std::span<const std::uint64_t> numbers;
  if (!right_rows || !places.acquire(out, PyBUF_WRITABLE | PyBUF_ND) ||
      !acquire_numbers(ranges, "ranges", given, &numbers)) {
    return nullptr;
  }
  const bool done = without_gil(state, nullptr, [&] {
    AsOf how;
    how.direction = choose("direction", direction, kDirections);
    how.tolerance = tolerance < 0 ? AsOf::kAny : static_cast<std::uint64_t>(tolerance);
    how.exact = exact != 0;
    how.left_factor = left_factor;
    how.right_factor = right_factor;
    const MutableBytes bytes = places.mutable_bytes();
    std::vector<RowRange> parts(numbers.size() / 2);
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = {numbers[2 * i], numbers[2 * i + 1]};
    join_asof(*left_rows, parts, *right_rows, how,
              {reinterpret_cast<std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t)});
  });
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

PyObject* content_hash(PyObject*, PyObject* bytes) {
  Buffer buffer;
  if (!buffer.acquire(bytes, PyBUF_SIMPLE)) return nullptr;
  const Hash128 hash = hash128(buffer.bytes());
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(hash.data()), sizeof hash);
}

}  // namespace cdd::ext
