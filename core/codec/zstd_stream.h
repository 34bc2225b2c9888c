// zstd frames that come in pieces, one after the other, decompressed as they come. Memory: the largest window
// that a frame may ask for, 128 MB, and only where it does.
#pragma once

#include <memory>

#include "core/base/bytes.h"

namespace cdd {

// One thread at a time.
class ZstdStream {
 public:
  struct Step {
    std::size_t taken = 0;  // of the input
    std::size_t made = 0;   // of the output
  };

  ZstdStream();  // throws std::bad_alloc
  ~ZstdStream();

  // Decompresses until `in` is used up or `out` is full. Throws Corrupt for bytes that are no zstd frame.
  Step step(Bytes in, MutableBytes out);

  // Whether the input may end here: no frame has begun and is not whole.
  bool between_frames() const noexcept { return between_; }

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  bool between_ = true;
};

}  // namespace cdd
