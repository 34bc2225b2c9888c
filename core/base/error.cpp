#include "core/base/error.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace cdd {
namespace {

std::string format_text(const char* format, std::va_list args) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, args);
  return text;
}

// `what` with the name where it says "%s", and what the system says.
std::string failure_text(const char* what, std::string_view name, int os_errno) {
  std::string text(what);
  if (const std::size_t at = text.find("%s"); at != text.npos) text.replace(at, 2, name);
  return text + ": " + std::generic_category().message(os_errno);
}

// "chunk 17 at 0x4a10: ", "row 5, field 2: "
std::string place_text(const Place& place) {
  if (place.kind == Place::Kind::Nowhere || place.number == Place::kNone) return {};
  std::string text(to_string(place.kind));
  const auto add = [&](const char* format, std::uint64_t number) {
    if (number == Place::kNone) return;
    char part[48];
    std::snprintf(part, sizeof part, format, number);
    text += part;
  };
  if (place.kind == Place::Kind::Index) text += " block";
  add(" %" PRIu64, place.number);
  add(", field %" PRIu64, place.field);
  add(" at 0x%" PRIx64, place.offset);
  return text + ": ";
}

}  // namespace

const char* to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid argument";
    case ErrorCode::OutOfRange:
      return "out of range";
    case ErrorCode::Closed:
      return "closed";
    case ErrorCode::Io:
      return "io";
    case ErrorCode::Corrupt:
      return "corrupt";
    case ErrorCode::Truncated:
      return "truncated";
    case ErrorCode::Checksum:
      return "checksum";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::Limit:
      return "limit";
    case ErrorCode::Cancelled:
      return "cancelled";
  }
  return "unknown";
}

const char* to_string(Place::Kind kind) noexcept {
  switch (kind) {
    case Place::Kind::Nowhere:
      break;
    case Place::Kind::Header:
      return "header";
    case Place::Kind::Index:
      return "index";
    case Place::Kind::Chunk:
      return "chunk";
    case Place::Kind::Row:
      return "row";
    case Place::Kind::Tile:
      return "tile";
  }
  return nullptr;
}

Error::Error(int os_errno, const std::string& path, const char* what)
    : code_(ErrorCode::Io),
      os_errno_(os_errno),
      text_(failure_text(what, path, os_errno)),
      text_without_path_(failure_text(what, "the file", os_errno)),
      path_(path) {}

void Error::at(const Place& place, const std::string& file) {
  if (place_.kind != Place::Kind::Nowhere) return;
  place_ = place;
  const std::string before = place_text(place);
  text_without_path_.insert(0, before);
  const std::string name = file.empty() || code_ == ErrorCode::Io ? "" : file + ": ";
  place_bytes_ = name.size() + before.size();
  text_.insert(0, name + before);
}

void fail(ErrorCode code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  throw Error(code, std::move(text));
}

void fail_at(const Place& place, ErrorCode code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  throw Error(code, std::move(text), place);
}

void fail_io(int os_errno, const std::string& path, const char* what) { throw Error(os_errno, path, what); }

}  // namespace cdd
