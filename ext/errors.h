// The border between C++ exceptions and Python's: work runs without the GIL, and what it throws comes out as
// a Python exception.
//
//   InvalidArgument, Closed      ValueError
//   OutOfRange                   IndexError
//   Io                           OSError(errno, text, filename)
//   Corrupt                      FormatError
//   Truncated, Checksum          TruncatedError, ChecksumError
//   Unsupported, Limit           UnsupportedError, LimitError
//   Cancelled                    the exception that is set, as by a signal's handler; else CancelledError of
//                                concurrent.futures
//   PythonException              what Python raised
//   bad_alloc, length_error      MemoryError
#pragma once

#include <exception>
#include <type_traits>

#include "core/base/error.h"
#include "ext/module_state.h"

namespace cdd::ext {

// What Python raised that was called from within the core. It comes out as it is.
class PythonException final : public Error {
 public:
  explicit PythonException(std::shared_ptr<PyObject> exception)
      : Error(ErrorCode::Io, "a function that was called failed"), exception_(std::move(exception)) {}
  PyObject* exception() const noexcept { return exception_.get(); }

 private:
  std::shared_ptr<PyObject> exception_;  // its last owner takes the GIL
};

// Throws the exception that is set, and takes it.
[[noreturn]] void throw_python_exception();

// Sets the Python exception for `error`. `filename` may be null.
void set_python_error(const ModuleState& state, PyObject* filename, const std::exception_ptr& error) noexcept;

// A new reference to None for Place::kNone, else to the number.
PyObject* number_or_none(std::uint64_t number) noexcept;

// Runs `work` without the GIL. False with a Python exception set. `filename` is looked at after the work,
// which may take the GilRelease, to pause it.
template <class Work>
bool without_gil(const ModuleState& state, PyObject* const& filename, Work&& work) noexcept {
  std::exception_ptr error;
  {
    GilRelease released;
    try {
      if constexpr (std::is_invocable_v<Work, GilRelease&>) {
        work(released);
      } else {
        work();
      }
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (!error) return true;
  set_python_error(state, filename, error);
  return false;
}

// The same for short work that keeps the GIL and may itself call Python; it throws PythonError when that
// failed.
struct PythonError {};
template <class Work>
bool with_gil(const ModuleState& state, PyObject* filename, Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const PythonError&) {
  } catch (...) {
    set_python_error(state, filename, std::current_exception());
  }
  return false;
}

}  // namespace cdd::ext
