// Memory for large results: whole pages from the system, huge ones where it has them, since making new pages
// can cost as much as filling them. Small sizes come from the heap.
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
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  static std::byte* map(std::size_t bytes) noexcept;  // null where the system has none
  static void unmap(std::byte* data, std::size_t bytes) noexcept;

  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace cdd
