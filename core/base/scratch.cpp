#include "core/base/scratch.h"

#include <array>
#include <new>

#include "core/base/of_thread.h"

namespace cdd {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kGrain = 4096;
// A buffer larger than this is given back once a call needs much less: one huge chunk must not cost a
// thread its memory for ever.
constexpr std::size_t kKeepBytes = std::size_t{64} << 20;

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
  return {data_, bytes};
}

Scratch& scratch(Stage stage) {
  thread_local OfThread<std::array<Scratch, static_cast<std::size_t>(Stage::Count)>> buffers;
  return buffers.value[static_cast<std::size_t>(stage)];
}

}  // namespace cdd
