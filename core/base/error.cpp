#include "core/base/error.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <system_error>

namespace cdd {
namespace {

std::string format_text(const char* format, std::va_list args) {
  char text[512];
  std::vsnprintf(text, sizeof text, format, args);
  return text;
}

}  // namespace

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
}

void fail(ErrorCode code, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  throw Error(code, 0, std::move(text));
}

void fail_io(int os_errno, const char* format, ...) {
  std::va_list args;
  va_start(args, format);
  std::string text = format_text(format, args);
  va_end(args);
  text += ": ";
  text += std::generic_category().message(os_errno);
  throw Error(ErrorCode::Io, os_errno, std::move(text));
}

}  // namespace cdd
