// How long work tells how far it is, and is ended before it is done.
#pragma once

#include <cstdint>
#include <functional>

namespace cdd {

// progress(done, total), called between two chunks by the thread that called; may be empty. What it throws
// ends the work, which then leaves nothing behind.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

inline void tell(const Progress& progress, std::uint64_t done, std::uint64_t total) {
  if (progress) progress(done, total);
}

}  // namespace cdd
