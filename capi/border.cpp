#include "capi/border.h"

#include <new>
#include <stdexcept>

#include "capi/followers.h"

namespace cdd::capi {

// No default, so that a new code warns here.
cdd_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return CDD_INVALID_ARGUMENT;
    case ErrorCode::OutOfRange:
      return CDD_OUT_OF_RANGE;
    case ErrorCode::Closed:
      return CDD_CLOSED;
    case ErrorCode::Io:
      return CDD_IO;
    case ErrorCode::Corrupt:
      return CDD_CORRUPT;
    case ErrorCode::Truncated:
      return CDD_TRUNCATED;
    case ErrorCode::Checksum:
      return CDD_CHECKSUM;
    case ErrorCode::Unsupported:
      return CDD_UNSUPPORTED;
    case ErrorCode::Limit:
      return CDD_LIMIT;
    case ErrorCode::Cancelled:
      return CDD_CANCELLED;
  }
  return CDD_INTERNAL;
}

namespace {

std::uint32_t kind_of(Place::Kind kind) noexcept {
  switch (kind) {
    case Place::Kind::Nowhere:
      return CDD_NOWHERE;
    case Place::Kind::Header:
      return CDD_AT_HEADER;
    case Place::Kind::Index:
      return CDD_AT_INDEX;
    case Place::Kind::Chunk:
      return CDD_AT_CHUNK;
    case Place::Kind::Row:
      return CDD_AT_ROW;
    case Place::Kind::Tile:
      return CDD_AT_TILE;
  }
  return CDD_NOWHERE;
}

cdd_status fill(cdd_error* error, cdd_status status, const char* text, const Place& place = {},
                int os_errno = 0) noexcept {
  if (error == nullptr || error->struct_size < sizeof(cdd_error)) return status;
  error->status = status;
  error->os_errno = os_errno;
  error->kind = kind_of(place.kind);
  error->number = place.number;
  error->field = place.field;
  error->offset = place.offset;
  give_text(text, error->text, sizeof error->text);
  return status;
}

}  // namespace

cdd_status report(const std::exception_ptr& what, cdd_error* error) noexcept {
  try {
    std::rethrow_exception(what);
  } catch (const Error& core) {
    return fill(error, status_of(core.code()), core.what(), core.place(), core.os_errno());
  } catch (const TimedOut& late) {
    return fill(error, CDD_TIMED_OUT, late.what());
  } catch (const std::bad_alloc&) {
    return fill(error, CDD_NO_MEMORY, "out of memory");
  } catch (const std::length_error&) {
    return fill(error, CDD_NO_MEMORY, "out of memory");
  } catch (const std::exception& other) {
    return fill(error, CDD_INTERNAL, other.what());
  } catch (...) {
    return fill(error, CDD_INTERNAL, "unknown C++ exception");
  }
}

void give_text(std::string_view text, char* out, std::size_t out_bytes) noexcept {
  std::size_t size = std::min(text.size(), out_bytes - 1);
  if (size < text.size()) {
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  }
  std::memcpy(out, text.data(), size);
  std::memset(out + size, 0, out_bytes - size);
}

RowLayout layout_of(const cdd_layout& given) {
  if (given.dtype > 0xffff) fail(ErrorCode::InvalidArgument, "dtype is %u, no code of a dtype", given.dtype);
  if (given.ndim > kMaxRowDims) {
    fail(ErrorCode::InvalidArgument, "a row has at most %zu dimensions, got %u", kMaxRowDims, given.ndim);
  }
  return {DType(static_cast<std::uint16_t>(given.dtype)), {given.dims, given.ndim}};
}

cdd_layout layout_of(const RowLayout& layout) noexcept {
  cdd_layout out{};
  out.dtype = layout.dtype().code();
  out.ndim = static_cast<std::uint32_t>(layout.dims().size());
  std::ranges::copy(layout.dims(), out.dims);
  out.row_bytes = layout.row_bytes();
  return out;
}

}  // namespace cdd::capi
