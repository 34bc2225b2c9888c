// Memory for small things of which there may be thousands that are looked at in turns, as the readers of a
// dataset's files and the pages of their indexes: they lie close together, and in large pages once they are
// many, so that the processor has their addresses at hand.
#pragma once

#include <cstddef>

namespace cdd {

// At least `bytes` bytes, 64-byte aligned. Throws std::bad_alloc. What is given back is kept for the next of
// that size.
void* take_shared(std::size_t bytes);
void give_shared(void* memory, std::size_t bytes) noexcept;

// What derives from this is made there.
struct InSharedPages {
  static void* operator new(std::size_t bytes) { return take_shared(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { give_shared(memory, bytes); }
};

}  // namespace cdd
