#include "core/base/scratch.h"

#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define CDD_HAS_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CDD_HAS_ASAN
#endif
#endif
#ifdef CDD_HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace cdd {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kGrain = 4096;
// A buffer larger than this is given back once a call needs much less: one huge chunk must not cost a
// thread its memory for ever.
constexpr std::size_t kKeepBytes = std::size_t{64} << 20;

// What an earlier, larger call left room for is out of bounds: AddressSanitizer is to see who goes there.
void fence([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t usable,
           [[maybe_unused]] std::size_t allocated) noexcept {
#ifdef CDD_HAS_ASAN
  ASAN_UNPOISON_MEMORY_REGION(data, usable);
  ASAN_POISON_MEMORY_REGION(data + usable, allocated - usable);
#endif
}

}  // namespace

Scratch::~Scratch() { ::operator delete(data_, kAlignment); }

MutableBytes Scratch::get(std::size_t bytes) {
  const bool oversized = capacity_ > kKeepBytes && bytes < capacity_ / 4;
  if (bytes > capacity_ || data_ == nullptr || oversized) {
    if (bytes > ~std::size_t{0} / 4) throw std::bad_alloc();
    ::operator delete(data_, kAlignment);
    data_ = nullptr;
    capacity_ = 0;
    const std::size_t wanted = static_cast<std::size_t>(align_up(bytes + bytes / 4 + 1, kGrain));
    data_ = static_cast<std::byte*>(::operator new(wanted + kScratchPadding, kAlignment));
    capacity_ = wanted;
  }
  fence(data_, bytes + kScratchPadding, capacity_ + kScratchPadding);
  return {data_, bytes};
}

Bytes Scratch::own(Bytes bytes) {
  if (owns(bytes)) return bytes;
  const MutableBytes copy = get(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace cdd
