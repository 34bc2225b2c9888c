// Conversions that both handles share: names of options, row layouts, byte strings.
#pragma once

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/row_layout.h"
#include "ext/errors.h"

namespace cdd::ext {

template <class T>
struct Choice {
  const char* name;
  T value;
};

// The value of an option that is one of a few names. Throws InvalidArgument that lists them.
template <class T, std::size_t N>
T choose(const char* option, const char* given, const Choice<T> (&choices)[N]) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (std::strcmp(choice.name, given) == 0) return choice.value;
    names.append(names.empty() ? "\"" : ", \"").append(choice.name).append("\"");
  }
  fail(ErrorCode::InvalidArgument, "%s is one of %s, not \"%s\"", option, names.c_str(), given);
}

// A str as the path the operating system takes. Empty with a Python exception set.
inline std::string path_of(PyObject* text) {
  PyObject* encoded = nullptr;
  if (PyUnicode_FSConverter(text, &encoded) == 0) return {};
  const Ref owner(encoded);
  return PyBytes_AsString(encoded);
}

inline PyObject* bytes_object(const std::vector<std::byte>& bytes) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                   static_cast<Py_ssize_t>(bytes.size()));
}

// A store's id: the 32 hex digits of its salt.
inline PyObject* id_object(const std::array<std::byte, 16>& salt) {
  return PyUnicode_FromString(hex(salt).c_str());
}

// (dtype code, (dim, ...)), or None when it is not known yet.
inline PyObject* layout_object(const RowLayout& layout) {
  if (!layout.is_set()) Py_RETURN_NONE;
  Ref dims(PyTuple_New(static_cast<Py_ssize_t>(layout.dims().size())));
  if (!dims) return nullptr;
  for (std::size_t i = 0; i < layout.dims().size(); ++i) {
    PyObject* const dim = PyLong_FromUnsignedLong(layout.dims()[i]);
    if (dim == nullptr || PyTuple_SetItem(dims.get(), static_cast<Py_ssize_t>(i), dim) < 0) return nullptr;
  }
  return Py_BuildValue("(iN)", int{layout.dtype().code()}, dims.release());
}

// The layout of rows with these dimensions. Throws InvalidArgument.
inline RowLayout layout_of(int dtype_code, const Py_ssize_t* dims, std::size_t count) {
  std::array<std::uint32_t, kMaxRowDims> sizes{};
  if (count > sizes.size()) {
    fail(ErrorCode::InvalidArgument, "a row has at most %zu dimensions, got %zu", sizes.size(), count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (dims[i] < 0 || static_cast<std::uint64_t>(dims[i]) > kMaxChunkRawBytes) {
      fail(ErrorCode::InvalidArgument, "dimension %zu of a row is %lld, 1 to 2^31 are allowed", i + 1,
           static_cast<long long>(dims[i]));
    }
    sizes[i] = static_cast<std::uint32_t>(dims[i]);
  }
  return {DType(static_cast<std::uint16_t>(dtype_code)), {sizes.data(), count}};
}

// The layout of (dtype code, dims). Throws InvalidArgument and PythonError.
inline RowLayout parse_layout(PyObject* object) {
  int code = 0;
  PyObject* dims = nullptr;
  if (PyArg_ParseTuple(object, "iO!", &code, &PyTuple_Type, &dims) == 0) throw PythonError();
  std::array<Py_ssize_t, kMaxRowDims + 1> sizes{};
  const auto count = static_cast<std::size_t>(PyTuple_Size(dims));
  for (std::size_t i = 0; i < count && i < sizes.size(); ++i) {
    sizes[i] = PyLong_AsSsize_t(PyTuple_GetItem(dims, static_cast<Py_ssize_t>(i)));
    if (sizes[i] == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  }
  return layout_of(code, sizes.data(), count);
}

}  // namespace cdd::ext
