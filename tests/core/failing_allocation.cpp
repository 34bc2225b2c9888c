#include "tests/core/failing_allocation.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local long left = -1;  // allocations until the one that fails; -1: none does
thread_local bool failed = false;
thread_local int scopes = 0;

bool fails_now() noexcept {
  if (scopes == 0 || left < 0 || left-- > 0) return false;
  failed = true;
  return true;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (!fails_now()) {
    const std::size_t rounded = (bytes + alignment) / alignment * alignment;
    void* const p = alignment <= alignof(std::max_align_t) ? std::malloc(bytes + (bytes == 0))
                                                           : std::aligned_alloc(alignment, rounded);
    if (p != nullptr) return p;
  }
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace cdd {

FailingAllocation::FailingAllocation(long nth) noexcept {
  failed = false;
  left = nth;
}
FailingAllocation::~FailingAllocation() { left = -1; }
bool FailingAllocation::has_failed() const noexcept { return failed; }

FailingAllocation::Scope::Scope() noexcept { ++scopes; }
FailingAllocation::Scope::~Scope() { --scopes; }

}  // namespace cdd
