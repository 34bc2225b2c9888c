// The one exception the core throws, and the one way to throw it.
//
// Text says what was expected, what was found and where. Whoever decides by an error asks its code and its
// place, never its text. The code that knows the place adds it with at() and rethrows. Nothing else catches
// an Error below a border (the Python extension, the C++ tests).
#pragma once

#include <cstddef>
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
  Limit,            // sound as far as one can tell, and more than the caller allows
  Cancelled,        // taken back before it was done
};

// "corrupt", "checksum", ...: a word for each code, which never changes.
const char* to_string(ErrorCode code) noexcept;

// Where an error lies: a part of a file, with its number where there are several.
struct Place {
  enum class Kind : std::uint8_t { Nowhere, Header, Index, Chunk, Row, Tile };
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Kind kind = Kind::Nowhere;
  std::uint64_t number = kNone;  // of the index block, chunk, row or tile
  std::uint64_t field = kNone;   // of the row
  std::uint64_t offset = kNone;  // of its first byte in the file
};

// "header", "index", "chunk", "row", "tile"; null for Nowhere.
const char* to_string(Place::Kind kind) noexcept;

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string text, const Place& place = {})
      : code_(code), place_(place), text_(std::move(text)) {}
  Error(int os_errno, const std::string& path, const char* what);  // as fail_io() says

  ErrorCode code() const noexcept { return code_; }
  // Io only: the system's number, the file, and the text without its name.
  int os_errno() const noexcept { return os_errno_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& text_without_path() const noexcept { return text_without_path_; }
  const Place& place() const noexcept { return place_; }
  const char* what() const noexcept override { return text_.c_str(); }
  // The text without what at() put before it.
  const char* text_without_place() const noexcept { return text_.c_str() + place_bytes_; }

  // Names the place that the error belongs to, and puts one with a number before the text, behind the file's
  // name where one is given: "book.cdd: chunk 17 at 0x4a10: ". An error that has a place keeps it, and one of
  // Io names its file itself.
  void at(const Place& place, const std::string& file = {});

 private:
  ErrorCode code_;
  int os_errno_ = 0;
  Place place_;
  std::size_t place_bytes_ = 0;  // of text_
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

// The same for an error whose place is known and told by the text.
[[noreturn]] void fail_at(const Place& place, ErrorCode code, const char* format, ...) CDD_PRINTF(3, 4);

// Throws Error{Io} for a failed system call: "<what>: <strerror>", with the path where `what` has "%s".
[[noreturn]] void fail_io(int os_errno, const std::string& path, const char* what);

}  // namespace cdd
