// What a thread keeps between calls and gives back when it ends: thread_local OfThread<T> x{...}; x.value.
//
// MinGW's runtime frees the variables of a thread before it destroys them. There `value` is never destroyed,
// and what it owns outlives its thread.
#pragma once

#include <utility>

namespace cdd {

template <class T>
union OfThread {
  template <class... Arguments>
  explicit OfThread(Arguments&&... arguments) : value(std::forward<Arguments>(arguments)...) {}
  OfThread(const OfThread&) = delete;
  OfThread& operator=(const OfThread&) = delete;
#if defined(__MINGW32__)
  ~OfThread() {}
#else
  ~OfThread() { value.~T(); }
#endif

  T value;
};

}  // namespace cdd
