#include "tests/rig/failing_allocation.h"

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(_WIN32)
#include <malloc.h>
#endif

namespace {

thread_local long left = -1;  // allocations until the one that fails; -1: none does
thread_local bool failed = false;
thread_local int scopes = 0;

bool fails_now() noexcept {
  if (scopes == 0 || left < 0 || left-- > 0) return false;
  failed = true;
  return true;
}

// Windows' C library has no aligned_alloc, and frees what is aligned by a function of its own.
#if defined(_WIN32)
void* allocate_aligned(std::size_t bytes, std::size_t alignment) { return _aligned_malloc(bytes, alignment); }
void free_aligned(void* p) noexcept { _aligned_free(p); }
#else
void* allocate_aligned(std::size_t bytes, std::size_t alignment) {
  return std::aligned_alloc(alignment, bytes);
}
void free_aligned(void* p) noexcept { std::free(p); }
#endif

void* allocate(std::size_t bytes) {
  void* const p = fails_now() ? nullptr : std::malloc(bytes + (bytes == 0));
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void* allocate(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  void* const p = fails_now() ? nullptr : allocate_aligned((bytes + align) / align * align, align);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
// Given here too, since a sanitizer's own would not belong to the operator delete below. MinGW's runtime
// notes thread_local destructors so; without the note they do not run, and nobody is told: there it never
// fails.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
#if !defined(__MINGW32__)
  if (fails_now()) return nullptr;
#endif
  return std::malloc(bytes + (bytes == 0));
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { free_aligned(p); }
void operator delete[](void* p, std::align_val_t) noexcept { free_aligned(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { free_aligned(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { free_aligned(p); }

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
