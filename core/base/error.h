// The one exception the core throws, and the one way to throw it.
//
// Text says what was expected, what was found and where. `chunk` and `offset` are kNowhere unless the error
// belongs to one place of a file; the code that knows the place adds it with at() and rethrows. Nothing else
// catches an Error below a border (the Python extension, the C++ tests).
#pragma once

#include <cstdint>
#include <exception>
#include <string>

namespace cdd {

enum class ErrorCode {
  InvalidArgument,  // the caller's value is wrong
  OutOfRange,       // a row or chunk that does not exist
  Closed,           // the handle was closed, poisoned, or belongs to another process
  Io,               // the operating system said no; os_errno says why
  Corrupt,          // bytes that no writer of this format produces
  Truncated,        // the file ends before something it promises
  Checksum,         // a stored check does not hold
  Unsupported,      // a newer version, an unknown feature, codec or dtype
};

class Error : public std::exception {
 public:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  Error(ErrorCode code, std::string text) : code_(code), text_(std::move(text)) {}
  Error(int os_errno, const std::string& path, const char* what);  // as fail_io() says

  ErrorCode code() const noexcept { return code_; }
  // Io only: the system's number, the file, and the text without its name.
  int os_errno() const noexcept { return os_errno_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& text_without_path() const noexcept { return text_without_path_; }
  std::uint64_t chunk() const noexcept { return chunk_; }
  std::uint64_t offset() const noexcept { return offset_; }
  const char* what() const noexcept override { return text_.c_str(); }

  // Names the chunk (and its byte offset in the file) the error belongs to; the first call wins.
  void at(std::uint64_t chunk, std::uint64_t offset);

 private:
  ErrorCode code_;
  int os_errno_ = 0;
  std::uint64_t chunk_ = kNowhere;
  std::uint64_t offset_ = kNowhere;
  std::string text_, text_without_path_, path_;
};

#if defined(__MINGW32__)
// The C runtime behind libstdc++ here formats as C99 says, which is not what `printf` checks against.
#define CDD_PRINTF(text_index, first) __attribute__((format(gnu_printf, text_index, first)))
#elif defined(__GNUC__)
#define CDD_PRINTF(text_index, first) __attribute__((format(printf, text_index, first)))
#else
#define CDD_PRINTF(text_index, first)
#endif

// Throws Error with printf-style text. Out of line, so that the checks around it stay small.
[[noreturn]] void fail(ErrorCode code, const char* format, ...) CDD_PRINTF(2, 3);

// Throws Error{Io} for a failed system call: "<what>: <strerror>", with the path where `what` has "%s".
[[noreturn]] void fail_io(int os_errno, const std::string& path, const char* what);

}  // namespace cdd
