// Memory that a thread keeps between calls, so that reading allocates nothing once warm.
//
// A buffer is 64-byte aligned, uninitialised, and followed by kScratchPadding bytes that may be read and
// written, so kernels may use whole vectors at the end of their data. Not shared between threads.
#pragma once

#include <cstddef>

#include "core/base/bytes.h"

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

// The calling thread's buffers, one for each stage of the two walks, so no stage overwrites its input.
// Transform2 is a transform's own working memory beside its output; Rows holds a whole chunk for its hash, or
// rows of which only some cells are wanted; Gather rows that go to several windows; Check what was just
// encoded.
enum class Stage { Record, Compress, Transform, Transform2, Rows, Gather, Check, Count };
Scratch& scratch(Stage stage);

}  // namespace cdd
