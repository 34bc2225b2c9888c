#include "core/os/pages.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

namespace cdd {
namespace {

constexpr std::size_t kHugePage = 2 << 20;  // from here on a result is worth pages of its own

// Maps that nobody uses at the moment. Each slot is taken and given back whole, so no lock is needed, and a
// child that is forked meanwhile loses a slot's map at worst.
struct Kept {
  std::byte* data;
  std::size_t bytes;
};
constexpr std::size_t kMostKept = sizeof(void*) == 8 ? 512u << 20 : 64u << 20;
std::array<std::atomic<Kept*>, 16> slots;
std::atomic<std::size_t> kept_bytes{0};

bool put(Kept* kept) noexcept {
  for (std::atomic<Kept*>& slot : slots) {
    Kept* none = nullptr;
    if (slot.compare_exchange_strong(none, kept)) return true;
  }
  return false;
}

}  // namespace

// A kept map of at least `bytes`, not much larger; null where there is none. *bytes is then its size.
std::byte* Pages::take_kept(std::size_t* bytes) noexcept {
  const std::size_t most = *bytes + *bytes / 4;
  for (std::atomic<Kept*>& slot : slots) {
    Kept* const kept = slot.exchange(nullptr);
    if (kept == nullptr) continue;
    std::byte* const data = kept->data;
    const bool fits = kept->bytes >= *bytes && kept->bytes <= most;
    if (!fits && put(kept)) continue;
    const std::size_t found = kept->bytes;
    kept_bytes -= found;
    delete kept;
    if (fits) {
      *bytes = found;
      return data;
    }
    unmap(data, found);
  }
  return nullptr;
}

bool Pages::keep(std::byte* data, std::size_t bytes) noexcept {
  if (bytes > kMostKept / 2 || kept_bytes.fetch_add(bytes) + bytes > kMostKept) {
    if (bytes <= kMostKept / 2) kept_bytes -= bytes;
    return false;
  }
  Kept* const kept = spare(data, bytes) ? new (std::nothrow) Kept{data, bytes} : nullptr;
  if (kept != nullptr && put(kept)) return true;
  delete kept;
  kept_bytes -= bytes;
  return false;
}

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  if (bytes < kHugePage) {
    data_ = static_cast<std::byte*>(std::malloc(bytes));
  } else {
    mapped_ = bytes > ~std::size_t{0} - kHugePage ? bytes : align_up(bytes, kHugePage);
    data_ = take_kept(&mapped_);
    if (data_ == nullptr) data_ = map(mapped_);
  }
  if (data_ == nullptr) throw std::bad_alloc();
}

void Pages::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (bytes <= mapped_) {
    bytes_ = bytes;
    return;
  }
  if (mapped_ != 0 && bytes <= ~std::size_t{0} - kHugePage) {
    const std::size_t wanted = align_up(bytes, kHugePage);
    if (std::byte* const moved = remap(data_, mapped_, wanted)) {
      data_ = moved;
      bytes_ = bytes;
      mapped_ = wanted;
      return;
    }
  }
  Pages larger(bytes);
  if (bytes_ != 0) std::memcpy(larger.data_, data_, bytes_);
  *this = std::move(larger);
}

Pages::~Pages() {
  if (data_ == nullptr) return;
  if (mapped_ == 0) {
    std::free(data_);
  } else if (!keep(data_, mapped_)) {
    unmap(data_, mapped_);
  }
}

}  // namespace cdd
