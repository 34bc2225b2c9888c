// Reads prefix codes: no vectors, but what each target has for moving bits.
#if defined(CDD_SIMD_LEVELS_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_CODES_INL_H_
#undef CDD_SIMD_LEVELS_CODES_INL_H_
#else
#define CDD_SIMD_LEVELS_CODES_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/simd/levels/levels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

// Bits that are read next, the first one lowest, from a byte on. A bit is set above them all: as the others
// go, it says how many went.
struct CodeWord {
  const std::byte* from;
  std::uint64_t word;

  static constexpr std::uint64_t kAbove = std::uint64_t{1} << 63;
  // So many bits are there at least.
  static constexpr unsigned kBits = 56;

  HWY_INLINE CodeWord(const std::byte* bytes, std::size_t bit) : from(bytes + bit / 8) { Load(bit % 8); }
  HWY_INLINE void Load(unsigned gone) {
    std::memcpy(&word, from, sizeof word);
    word = (word | kAbove) >> gone;
  }
  HWY_INLINE unsigned gone() const {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2 && !HWY_COMPILER_MSVC
    // Whatever has AVX2 has this instruction, but compilers are not told so, and the older one takes longer.
    std::uint64_t n;
    asm("lzcntq %1, %0" : "=r"(n) : "r"(word) : "cc");
    return static_cast<unsigned>(n);
#else
    return static_cast<unsigned>(std::countl_zero(word));
#endif
  }
  HWY_INLINE void Refill() {
    const unsigned n = gone();
    from += n / 8;
    Load(n % 8);
  }
  // The value of the next code.
  HWY_INLINE std::uint32_t Take(const CodeEntry* entries, std::uint64_t index_mask) {
    // Field by field: what comes next waits for `bits`, and for nothing else.
    const CodeEntry& e = entries[word & index_mask];
    const auto behind = static_cast<std::uint32_t>(word >> e.length);
    word >>= e.bits;
    return e.base + (behind & ((1u << e.width) - 1));
  }
};

// kAtOnce values of each lane are in one word.
template <unsigned kAtOnce>
HWY_NOINLINE void ReadCodesOf(const CodeTable& table, CodeLanes& lanes, std::size_t n, std::uint32_t* out) {
  static_assert(kCodeLanes == 4);
  const CodeEntry* const entries = table.entries;
  const std::uint64_t index_mask = (std::uint64_t{1} << table.index_bits) - 1;
  constexpr std::size_t kStep = kAtOnce * kCodeLanes;
  // A step goes on by 7 bytes at most, and reads 8.
  const std::byte* const last = lanes.bytes + lanes.all_bytes + 48;
  std::size_t i = 0;
  {
    CodeWord a(lanes.bytes, lanes.bit[0]), b(lanes.bytes, lanes.bit[1]), c(lanes.bytes, lanes.bit[2]),
        d(lanes.bytes, lanes.bit[3]);
    while (n - i >= kStep) {
      const std::byte* const furthest = std::max(std::max(a.from, b.from), std::max(c.from, d.from));
      if (furthest > last) break;
      const std::size_t steps = std::min((n - i) / kStep, static_cast<std::size_t>(last - furthest) / 8 + 1);
      for (const std::size_t end = i + steps * kStep; i < end; i += kStep) {
        a.Refill();
        b.Refill();
        c.Refill();
        d.Refill();
        for (unsigned k = 0; k < kStep; k += kCodeLanes) {
          out[i + k] = a.Take(entries, index_mask);
          out[i + k + 1] = b.Take(entries, index_mask);
          out[i + k + 2] = c.Take(entries, index_mask);
          out[i + k + 3] = d.Take(entries, index_mask);
        }
      }
    }
    const auto bit_of = [&](const CodeWord& w) HWY_ATTR {
      return static_cast<std::size_t>(w.from - lanes.bytes) * 8 + w.gone();
    };
    lanes.bit[0] = bit_of(a);
    lanes.bit[1] = bit_of(b);
    lanes.bit[2] = bit_of(c);
    lanes.bit[3] = bit_of(d);
  }
  for (; i < n; ++i) {
    std::size_t& bit = lanes.bit[i % kCodeLanes];
    CodeWord w(lanes.bytes, HWY_MIN(bit, lanes.all_bytes * 8));
    const unsigned before = w.gone();
    out[i] = w.Take(entries, index_mask);
    bit += w.gone() - before;
  }
}

inline void ReadCodes(const CodeTable& table, CodeLanes& lanes, std::size_t n, std::uint32_t* out) {
  if (table.most_bits * 4 <= CodeWord::kBits) return ReadCodesOf<4>(table, lanes, n, out);
  if (table.most_bits * 3 <= CodeWord::kBits) return ReadCodesOf<3>(table, lanes, n, out);
  if (table.most_bits * 2 <= CodeWord::kBits) return ReadCodesOf<2>(table, lanes, n, out);
  return ReadCodesOf<1>(table, lanes, n, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_CODES_INL_H_
