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

// What folds 128 bits that stand `bits` bits further on into their remainder there: of their first and of
// their last 64 bits. Powers of x modulo the polynomial, bits reflected as all of it is; the product of two
// reflected numbers is one bit short, hence the shift.
struct Fold {
  std::uint64_t first, last;
};
constexpr std::uint64_t power_of_x(std::size_t exponent) {
  std::uint32_t power = std::uint32_t{1} << 31;
  for (; exponent != 0; --exponent) power = power >> 1 ^ (power & 1 ? kPolynomial : 0);
  return std::uint64_t{power} << 1;
}
constexpr Fold make_fold(std::size_t bits) { return {power_of_x(bits + 32), power_of_x(bits - 32)}; }

// By vectors of 16, 32 and 64 bytes, four of which are folded a step.
inline constexpr Fold kFolds[3] = {make_fold(512), make_fold(1024), make_fold(2048)};

template <class T>
inline T loaded(const std::byte* p) noexcept {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

inline const std::uint64_t* words(const std::byte* p) noexcept {
  return reinterpret_cast<const std::uint64_t*>(p);
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
namespace hn = hwy::HWY_NAMESPACE;

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
// Where vectors are multiplied without carries by an instruction.
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4) || HWY_TARGET == HWY_NEON || HWY_TARGET == HWY_NEON_BF16
#define CDD_FOLDS 1
constexpr std::size_t kLeastFolded = 1024;
#else
#define CDD_FOLDS 0
#endif

#if CDD_HAS_CRC_INSTRUCTION
HWY_INLINE std::uint32_t ByWords(std::uint32_t state, const std::byte* p, std::size_t n) {
  Word word = state;
  for (; n >= sizeof(Word); n -= sizeof(Word), p += sizeof(Word)) word = Step(word, crc::loaded<Word>(p));
  state = static_cast<std::uint32_t>(word);
  for (; n != 0; --n, ++p) state = StepByte(state, static_cast<std::uint8_t>(*p));
  return state;
}
#else
HWY_INLINE std::uint32_t ByWords(std::uint32_t state, const std::byte* p, std::size_t n) {
  return crc::by_tables(state, p, n);
}
#endif

#if CDD_FOLDS
// Of n >= kLeastFolded bytes. Four vectors run through them, each folded into the one four further on: what
// is left has the remainder of all. The loads are one stream in order, as the prefetcher likes them.
constexpr std::size_t kVectors = 4;
// x86 has the product of more than 16 bytes since AVX-512's second set of instructions; elsewhere they would
// be taken apart for it.
constexpr std::size_t kMostLanes = (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL) ? 2 : 8;
using FoldTag = hn::CappedTag<std::uint64_t, kMostLanes>;

HWY_INLINE std::uint32_t ByFolding(std::uint32_t state, const std::byte*& p, std::size_t& n) {
  const FoldTag d;
  const std::size_t step = hn::Lanes(d) * sizeof(std::uint64_t);
  const crc::Fold fold = crc::kFolds[step / 32];
  const auto by = hn::OddEven(hn::Set(d, fold.last), hn::Set(d, fold.first));
  const auto at = [&](std::size_t i) HWY_ATTR { return hn::LoadU(d, crc::words(p + i * step)); };
  const auto folded = [&](auto v, std::size_t i)
                          HWY_ATTR { return hn::Xor3(hn::CLMulLower(v, by), hn::CLMulUpper(v, by), at(i)); };
  auto v0 = hn::Xor(at(0), hn::InsertLane(hn::Zero(d), 0, std::uint64_t{state}));
  auto v1 = at(1), v2 = at(2), v3 = at(3);
  for (p += kVectors * step, n -= kVectors * step; n >= kVectors * step;
       p += kVectors * step, n -= kVectors * step) {
    v0 = folded(v0, 0);
    v1 = folded(v1, 1);
    v2 = folded(v2, 2);
    v3 = folded(v3, 3);
  }
  HWY_ALIGN std::uint64_t rest[kVectors * hn::MaxLanes(d)];
  hn::Store(v0, d, rest);
  hn::Store(v1, d, rest + hn::Lanes(d));
  hn::Store(v2, d, rest + 2 * hn::Lanes(d));
  hn::Store(v3, d, rest + 3 * hn::Lanes(d));
  return ByWords(0, reinterpret_cast<const std::byte*>(rest), kVectors * step);
}
#endif

std::uint32_t Crc32c(const std::byte* p, std::size_t n, std::uint32_t before) {
  std::uint32_t state = ~before;
#if CDD_FOLDS
  if (n >= kLeastFolded) state = ByFolding(state, p, n);
#endif
  return ~ByWords(state, p, n);
}
#undef CDD_HAS_CRC_INSTRUCTION
#undef CDD_FOLDS

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
