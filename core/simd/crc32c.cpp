#include "core/simd/crc32c.h"

#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/crc32c.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

#ifndef CDD_CORE_SIMD_CRC32C_TABLES_
#define CDD_CORE_SIMD_CRC32C_TABLES_
#if HWY_ARCH_X86
#include <nmmintrin.h>
#elif HWY_ARCH_ARM && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

namespace cdd::simd::crc {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // bits reflected

using Table = std::array<std::uint32_t, 256>;

// tables[k][b]: byte b, followed by k zero bytes.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
    }
  }
  return tables;
}
inline constexpr std::array<Table, 8> kTables = make_tables();

// The bytes of one of the three streams that run side by side: the instruction takes three cycles, and a new
// one may begin in each.
constexpr std::size_t kStreamBytes = 1024;

// What the state becomes by kStreamBytes zero bytes, for each of its four bytes.
constexpr std::array<Table, 4> make_shift() {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    std::uint32_t state = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < kStreamBytes; ++i) state = state >> 8 ^ kTables[0][state & 0xff];
    of_bit[bit] = state;
  }
  std::array<Table, 4> shift{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::size_t value = 0; value < 256; ++value) {
      for (std::size_t bit = 0; bit < 8; ++bit) {
        if (value >> bit & 1) shift[byte][value] ^= of_bit[8 * byte + bit];
      }
    }
  }
  return shift;
}
inline constexpr std::array<Table, 4> kShift = make_shift();

inline std::uint32_t shifted(std::uint32_t state) noexcept {
  return kShift[0][state & 0xff] ^ kShift[1][state >> 8 & 0xff] ^ kShift[2][state >> 16 & 0xff] ^
         kShift[3][state >> 24];
}

template <class T>
inline T loaded(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Eight bytes a step by tables, for machines without the instruction.
inline std::uint32_t by_tables(std::uint32_t state, const std::byte* p, std::size_t n) noexcept {
  for (; n >= 8; n -= 8, p += 8) {
    const std::uint32_t low = loaded<std::uint32_t>(p) ^ state;
    const auto high = loaded<std::uint32_t>(p + 4);
    state = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^
            kTables[4][low >> 24] ^ kTables[3][high & 0xff] ^ kTables[2][high >> 8 & 0xff] ^
            kTables[1][high >> 16 & 0xff] ^ kTables[0][high >> 24];
  }
  for (; n != 0; --n, ++p) {
    state = state >> 8 ^ kTables[0][(state ^ static_cast<std::uint32_t>(*p)) & 0xff];
  }
  return state;
}

}  // namespace cdd::simd::crc
#endif  // tables, once

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
#define CDD_HAS_CRC_INSTRUCTION 1
#if HWY_ARCH_X86_64
using Word = std::uint64_t;
HWY_INLINE Word Step(Word state, Word word) { return _mm_crc32_u64(state, word); }
#else
using Word = std::uint32_t;
HWY_INLINE Word Step(Word state, Word word) { return _mm_crc32_u32(state, word); }
#endif
HWY_INLINE std::uint32_t StepByte(std::uint32_t state, std::uint8_t byte) {
  return _mm_crc32_u8(state, byte);
}
#elif HWY_ARCH_ARM && defined(__ARM_FEATURE_CRC32) && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
#define CDD_HAS_CRC_INSTRUCTION 1
using Word = std::uint64_t;
HWY_INLINE Word Step(Word state, Word word) { return __crc32cd(static_cast<std::uint32_t>(state), word); }
HWY_INLINE std::uint32_t StepByte(std::uint32_t state, std::uint8_t byte) { return __crc32cb(state, byte); }
#else
#define CDD_HAS_CRC_INSTRUCTION 0
#endif

std::uint32_t Crc32c(const std::byte* p, std::size_t n, std::uint32_t before) {
#if CDD_HAS_CRC_INSTRUCTION
  std::uint32_t state = ~before;
  for (; n >= 3 * crc::kStreamBytes; n -= 3 * crc::kStreamBytes, p += 3 * crc::kStreamBytes) {
    Word a = state, b = 0, c = 0;
    for (std::size_t i = 0; i < crc::kStreamBytes; i += sizeof(Word)) {
      a = Step(a, crc::loaded<Word>(p + i));
      b = Step(b, crc::loaded<Word>(p + crc::kStreamBytes + i));
      c = Step(c, crc::loaded<Word>(p + 2 * crc::kStreamBytes + i));
    }
    const std::uint32_t ab = crc::shifted(static_cast<std::uint32_t>(a)) ^ static_cast<std::uint32_t>(b);
    state = crc::shifted(ab) ^ static_cast<std::uint32_t>(c);
  }
  Word word = state;
  for (; n >= sizeof(Word); n -= sizeof(Word), p += sizeof(Word)) word = Step(word, crc::loaded<Word>(p));
  state = static_cast<std::uint32_t>(word);
  for (; n != 0; --n, ++p) state = StepByte(state, static_cast<std::uint8_t>(*p));
  return ~state;
#else
  return ~crc::by_tables(~before, p, n);
#endif
}
#undef CDD_HAS_CRC_INSTRUCTION

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(Crc32c);

std::uint32_t crc32c(const std::byte* bytes, std::size_t n, std::uint32_t before) noexcept {
  return HWY_DYNAMIC_DISPATCH(Crc32c)(bytes, n, before);
}

namespace reference {

std::uint32_t crc32c(const std::byte* bytes, std::size_t n, std::uint32_t before) noexcept {
  std::uint32_t state = ~before;
  for (std::size_t i = 0; i < n; ++i) {
    state = state >> 8 ^ crc::kTables[0][(state ^ static_cast<std::uint32_t>(bytes[i])) & 0xff];
  }
  return ~state;
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
