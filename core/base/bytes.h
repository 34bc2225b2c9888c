// Spans of bytes, little-endian loads and stores, and arithmetic that cannot wrap.
//
// Every integer of the file format is little-endian and goes through load/store, so the core needs no other
// knowledge of byte order. Array items are stored little-endian too and are memcpy'd: a big-endian host is
// refused at compile time rather than supported untested.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/base/error.h"

namespace cdd {

static_assert(std::endian::native == std::endian::little, "cdd supports little-endian hosts only");

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

template <class T>
inline T load(const std::byte* p) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T>
inline void store(std::byte* p, std::type_identity_t<T> v) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(p, &v, sizeof v);
}

inline const std::byte* as_bytes(const void* p) noexcept { return static_cast<const std::byte*>(p); }
inline std::byte* as_bytes(void* p) noexcept { return static_cast<std::byte*>(p); }

// Each returns false, leaving *out alone, when the exact result does not fit.
inline bool checked_add(std::uint64_t a, std::uint64_t b, std::uint64_t* out) noexcept {
  if (a > ~b) return false;
  *out = a + b;
  return true;
}
inline bool checked_mul(std::uint64_t a, std::uint64_t b, std::uint64_t* out) noexcept {
  if (b != 0 && a > ~std::uint64_t{0} / b) return false;
  *out = a * b;
  return true;
}

// `alignment` is a power of two; the caller knows that `v` is far from 2^64.
constexpr std::uint64_t align_up(std::uint64_t v, std::uint64_t alignment) noexcept {
  return (v + alignment - 1) & ~(alignment - 1);
}

// A forward-only cursor over untrusted bytes: every take checks what is left.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) noexcept : rest_(bytes) {}

  std::size_t left() const noexcept { return rest_.size(); }
  Bytes rest() const noexcept { return rest_; }

  // `n` may be anything a file says, and more than this build can address.
  Bytes take(std::uint64_t n) {
    if (n > rest_.size()) {
      fail(ErrorCode::Corrupt, "needs %llu more bytes, only %zu are left", static_cast<unsigned long long>(n),
           rest_.size());
    }
    const Bytes head = rest_.first(static_cast<std::size_t>(n));
    rest_ = rest_.subspan(head.size());
    return head;
  }
  template <class T>
  T take() {
    return load<T>(take(sizeof(T)).data());
  }

 private:
  Bytes rest_;
};

}  // namespace cdd
