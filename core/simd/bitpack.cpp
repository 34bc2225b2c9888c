#include "core/simd/bitpack.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/bitpack.cpp"
#include <hwy/foreach_target.h>

#include "core/simd/bitpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

void Unpack32(const std::byte* in, size_t n, unsigned width, uint32_t base, uint32_t* out) {
  Unpack(reinterpret_cast<const uint8_t*>(in), n, width, base, out);
}
void Unpack64(const std::byte* in, size_t n, unsigned width, uint64_t base, uint64_t* out) {
  Unpack(reinterpret_cast<const uint8_t*>(in), n, width, base, out);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace cdd::simd {

HWY_EXPORT(Unpack32);
HWY_EXPORT(Unpack64);

void unpack32(const std::byte* in, std::size_t n, unsigned width, std::uint32_t base,
              std::uint32_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(Unpack32)(in, n, width, base, out);
}
void unpack64(const std::byte* in, std::size_t n, unsigned width, std::uint64_t base,
              std::uint64_t* out) noexcept {
  HWY_DYNAMIC_DISPATCH(Unpack64)(in, n, width, base, out);
}

namespace {

template <class T>
void pack(const T* in, std::size_t n, unsigned width, T base, std::byte* out) noexcept {
  if (width == 0) return;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - width);
  std::uint64_t word = 0;
  unsigned filled = 0;  // bits of `word` in use, below 64
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t v = static_cast<T>(in[i] - base) & mask;
    word |= v << filled;
    if (filled + width >= 64) {
      std::memcpy(out, &word, sizeof word);
      out += sizeof word;
      word = filled == 0 ? 0 : v >> (64 - filled);  // width 64 leaves nothing over when filled is 0
    }
    filled = (filled + width) % 64;
  }
  std::memcpy(out, &word, (filled + 7) / 8);
}

}  // namespace

void pack32(const std::uint32_t* in, std::size_t n, unsigned width, std::uint32_t base,
            std::byte* out) noexcept {
  pack(in, n, width, base, out);
}
void pack64(const std::uint64_t* in, std::size_t n, unsigned width, std::uint64_t base,
            std::byte* out) noexcept {
  pack(in, n, width, base, out);
}

namespace reference {

std::uint64_t unpack_one(const std::byte* in, std::size_t i, unsigned width) noexcept {
  std::uint64_t v = 0;
  std::size_t bit = i * width;
  for (unsigned have = 0; have < width;) {
    const unsigned shift = static_cast<unsigned>(bit % 8);
    const unsigned take = std::min(8 - shift, width - have);
    const auto byte = std::to_integer<std::uint64_t>(in[bit / 8]);
    v |= (byte >> shift & ((1u << take) - 1)) << have;
    have += take;
    bit += take;
  }
  return v;
}

namespace {

template <class T>
void unpack(const std::byte* in, std::size_t n, unsigned width, T base, T* out) noexcept {
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(base + unpack_one(in, i, width));
}

}  // namespace

void unpack32(const std::byte* in, std::size_t n, unsigned width, std::uint32_t base,
              std::uint32_t* out) noexcept {
  unpack(in, n, width, base, out);
}
void unpack64(const std::byte* in, std::size_t n, unsigned width, std::uint64_t base,
              std::uint64_t* out) noexcept {
  unpack(in, n, width, base, out);
}

}  // namespace reference
}  // namespace cdd::simd

#endif  // HWY_ONCE
