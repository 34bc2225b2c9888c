#include "core/os/pages.h"

#include <cstdlib>
#include <new>

namespace cdd {
namespace {

constexpr std::size_t kMapped = 2 << 20;  // from here on a result is worth pages of its own

}  // namespace

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = bytes >= kMapped ? map(bytes) : static_cast<std::byte*>(std::malloc(bytes));
  if (data_ == nullptr) throw std::bad_alloc();
}

Pages::~Pages() {
  if (data_ == nullptr) return;
  if (bytes_ >= kMapped) {
    unmap(data_, bytes_);
  } else {
    std::free(data_);
  }
}

}  // namespace cdd
