// Memory for large results: whole pages from the system, huge ones where it has them, since making new pages
// can cost more than filling them. For the same reason some of what was freed is kept for the next result,
// and left to the system to take back when it needs memory. Small sizes come from the heap.
#pragma once

#include <cstddef>
#include <utility>

#include "core/base/bytes.h"

namespace cdd {

class Pages {
 public:
  Pages() = default;
  // Uninitialised or zero, 64-byte aligned where it is large. Throws std::bad_alloc.
  explicit Pages(std::size_t bytes);
  ~Pages();
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // As many bytes, at least as before, the old ones kept. Large memory moves without a copy where the system
  // can do that.
  void grow(std::size_t bytes);

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  static std::byte* take_kept(std::size_t* bytes) noexcept;
  static bool keep(std::byte* data, std::size_t bytes) noexcept;
  static std::byte* map(std::size_t bytes) noexcept;  // null where the system has none
  static void unmap(std::byte* data, std::size_t bytes) noexcept;
  // A map made larger; null where that cannot be done without a copy.
  static std::byte* remap(std::byte* data, std::size_t bytes, std::size_t wanted) noexcept;
  // Lets the system take the map's memory until it is written to again; false where that cannot be said.
  static bool spare(std::byte* data, std::size_t bytes) noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_ = 0;  // bytes of the map, 0 for the heap
};

}  // namespace cdd
