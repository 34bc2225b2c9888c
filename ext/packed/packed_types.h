// Packed rows and CSV as Python has them: Pages (memory as a buffer), PackedRows, its iterator, functions on
// CSV text.
#pragma once

#include <atomic>
#include <memory>

#include "core/os/pages.h"
#include "core/packed/packed_file.h"
#include "ext/errors.h"

namespace cdd::ext {

// Memory of the core as a read-only buffer of bytes, or null with an exception set.
PyObject* pages_object(const ModuleState& state, Pages pages, std::size_t bytes);
PyObject* pages_of(const ModuleState& state, const void* data, std::size_t bytes);  // a copy

// What slices, rows and iterators of one file share.
struct PackedShared {
  PackedShared() = default;
  Buffer source;  // keeps the bytes; let go of with the GIL
  std::unique_ptr<packed::PackedFile> file;
};

struct PackedObject {
  PyObject_HEAD const ModuleState* state;
  std::shared_ptr<PackedShared> shared;
  std::shared_ptr<const packed::RowBlock> only;  // version 1: the block of all rows
  Handle<const packed::RowBlock> last;           // version 2: the block that was read last
  std::uint64_t first;                           // rows [first, first + count) of the file
  std::uint64_t count;
  bool header;  // row 0 of the file has the names
};

// A block and the row's number within it.
struct RowAt {
  const packed::RowBlock* block = nullptr;
  std::uint32_t row = 0;
  std::shared_ptr<const packed::RowBlock> owner;  // version 2
};

// Throws what the core throws. `row` is within the object.
RowAt row_at(PackedObject* self, std::uint64_t row);

// A field as str; null with an exception set, FormatError where it is no UTF-8.
PyObject* str_of(const ModuleState& state, Bytes field, std::uint64_t row, std::uint64_t column);

// rows(columns) and iteration; `columns` is null or a sequence of numbers.
PyObject* new_packed_iterator(PackedObject* self, PyObject* columns);

bool add_packed_types(PyObject* module);
bool add_packed_iterator(PyObject* module);
bool add_pages_type(PyObject* module);
bool add_packed_writer(PyObject* module);

}  // namespace cdd::ext
