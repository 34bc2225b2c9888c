// What every function of the C interface does at its border: structs that may be older or newer than this
// library, and exceptions made a status, a place and a text.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>

#include "capi/cdd.h"
#include "core/base/error.h"
#include "core/base/row_layout.h"

namespace cdd::capi {

// The status of an exception; `error` gets what it says, as far as it is there and long enough.
cdd_status report(const std::exception_ptr& what, cdd_error* error) noexcept;

cdd_status status_of(ErrorCode code) noexcept;

// Does `work` and reports what it throws. An `error` of CDD_OK says that nothing was thrown.
template <class Work>
cdd_status guarded(cdd_error* error, Work&& work) noexcept {
  try {
    work();
  } catch (...) {
    return report(std::current_exception(), error);
  }
  if (error != nullptr && error->struct_size >= sizeof(cdd_error)) error->status = CDD_OK;
  return CDD_OK;
}

// Throws InvalidArgument that names the argument.
inline void need(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(ErrorCode::InvalidArgument, "%s is NULL", name);
}

// A struct of the caller's as this library knows it. NULL is all defaults. One that is longer must hold zeros
// where this library knows no fields. `least` is its size in the first version that had it.
template <class Struct>
Struct taken(const Struct* given, const char* name, std::size_t least = sizeof(Struct)) {
  Struct known{};
  known.struct_size = sizeof known;
  if (given == nullptr) return known;
  const std::size_t size = given->struct_size;
  if (size < least) {
    fail(ErrorCode::InvalidArgument, "%s.struct_size is %zu, at least %zu: set it to sizeof(%s)", name, size,
         least, name);
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (size > sizeof known && std::any_of(bytes + sizeof known, bytes + size, [](auto b) { return b != 0; })) {
    fail(ErrorCode::Unsupported, "%s has fields that this library (version %u) does not know", name, CDD_ABI);
  }
  std::memcpy(&known, given, std::min(size, sizeof known));
  known.struct_size = sizeof known;
  return known;
}

// Fills a struct of the caller's as far as he knows it.
template <class Struct>
void give(const Struct& known, Struct* out, const char* name, std::size_t least = sizeof(Struct)) {
  need(out, name);
  const std::uint32_t size = out->struct_size;
  if (size < least) {
    fail(ErrorCode::InvalidArgument, "%s.struct_size is %u, at least %zu: set it to sizeof(%s)", name, size,
         least, name);
  }
  std::memcpy(out, &known, std::min<std::size_t>(size, sizeof known));
  out->struct_size = size;
}

// A text in a field of fixed size, cut between characters and filled up with 0. No memory is taken: that may
// be what is missing.
void give_text(std::string_view text, char* out, std::size_t out_bytes) noexcept;

RowLayout layout_of(const cdd_layout& given);
cdd_layout layout_of(const RowLayout& layout) noexcept;

// A field that no version gave a meaning.
inline void need_zero(std::uint32_t value, const char* name) {
  if (value != 0)
    fail(ErrorCode::Unsupported, "%s is %u, which this library (version %u) does not know: 0 is wanted", name,
         value, CDD_ABI);
}

// One of so many values from 0 on. Throws InvalidArgument that names the field.
inline std::uint32_t one_of(std::uint32_t value, std::uint32_t count, const char* name) {
  if (value >= count)
    fail(ErrorCode::InvalidArgument, "%s is %u, 0 to %u are allowed", name, value, count - 1);
  return value;
}

}  // namespace cdd::capi
