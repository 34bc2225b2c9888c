// Memory that a thread keeps between calls, so that reading allocates nothing once warm.
//
// A buffer is 64-byte aligned, uninitialised, and followed by kScratchPadding bytes that may be read and
// written, so kernels may use whole vectors at the end of their data. Not shared between threads.
#pragma once

#include <cstddef>

#include "core/base/bytes.h"
#include "core/base/of_thread.h"

namespace cdd {

inline constexpr std::size_t kScratchPadding = 64;

class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least `bytes` bytes, valid until the next get(); earlier contents are gone. Throws std::bad_alloc.
  MutableBytes get(std::size_t bytes);

  // Whether `bytes` are what the last get() gave.
  bool owns(Bytes bytes) const noexcept { return bytes.data() == data_; }
  // `bytes`, copied here if they are somewhere else.
  Bytes own(Bytes bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// The calling thread's buffer of this name. A tag is an empty struct that stands where its bytes are used;
// two that are in use at once have two tags, as get() ends what the last one gave.
template <class Tag>
Scratch& scratch() {
  thread_local OfThread<Scratch> buffer;
  return buffer.value;
}

}  // namespace cdd
