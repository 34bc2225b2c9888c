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

}  // namespace

Error::Error(int os_errno, const std::string& path, const char* what)
    : code_(ErrorCode::Io),
      os_errno_(os_errno),
      text_(failure_text(what, path, os_errno)),
      text_without_path_(failure_text(what, "the file", os_errno)),
      path_(path) {}

void Error::at(std::uint64_t chunk, std::uint64_t offset) {
  if (chunk_ != kNowhere) return;
  chunk_ = chunk;
  offset_ = offset;
  char place[64];
  if (offset == kNowhere) {
    std::snprintf(place, sizeof place, "chunk %" PRIu64 ": ", chunk);
  } else {
    std::snprintf(place, sizeof place, "chunk %" PRIu64 " at 0x%" PRIx64 ": ", chunk, offset);
  }
  text_.insert(0, place);
  text_without_path_.insert(0, place);
}

void fail(ErrorCode code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  throw Error(code, std::move(text));
}

void fail_io(int os_errno, const std::string& path, const char* what) { throw Error(os_errno, path, what); }

}  // namespace cdd
