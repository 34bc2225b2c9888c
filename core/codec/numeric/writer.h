// A bounded cursor for payload bytes. Running out of room is not an error but an answer: the encoder asks at
// the end whether everything fitted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/codec/numeric/format.h"
#include "core/simd/bitpack.h"

namespace cdd::numeric {

class Writer {
 public:
  explicit Writer(MutableBytes out) noexcept : begin_(out.data()), next_(begin_), end_(begin_ + out.size()) {}

  bool fitted() const noexcept { return fitted_; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(next_ - begin_); }

  // Room for n bytes, which the caller fills; null if there is none.
  std::byte* claim(std::size_t n) noexcept {
    if (n > static_cast<std::size_t>(end_ - next_)) {
      fitted_ = false;
      return nullptr;
    }
    std::byte* const p = next_;
    next_ += n;
    return p;
  }
  template <class T>
  void put(T v) noexcept {
    if (std::byte* p = claim(sizeof v)) store<T>(p, v);
  }
  void byte(unsigned v) noexcept { put(static_cast<std::uint8_t>(v)); }
  void varint(std::uint64_t v) noexcept {
    for (; v >= 0x80; v >>= 7) byte(static_cast<unsigned>(v) | 0x80u);
    byte(static_cast<unsigned>(v));
  }
  void signed_varint(std::uint64_t v) noexcept { varint(zigzag(v)); }

  // PackedArray's counterpart; the smallest value as a signed number becomes the base.
  void packed(std::span<const std::uint64_t> values) noexcept {
    if (values.empty()) return;
    const auto as_signed = [](std::uint64_t a, std::uint64_t b) {
      return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
    };
    const auto [low, high] = std::minmax_element(values.begin(), values.end(), as_signed);
    const auto width = static_cast<unsigned>(std::bit_width(*high - *low));
    if (values.size() > 1) byte(width);
    signed_varint(*low);
    bits64(values, width, *low);
  }
  void bits64(std::span<const std::uint64_t> values, unsigned width, std::uint64_t base) noexcept {
    if (std::byte* p = claim(simd::packed_bytes(values.size(), width))) {
      simd::pack64(values.data(), values.size(), width, base, p);
    }
  }

 private:
  std::byte* begin_;
  std::byte* next_;
  std::byte* end_;
  bool fitted_ = true;
};

}  // namespace cdd::numeric
