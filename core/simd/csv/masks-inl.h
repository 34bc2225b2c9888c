// 64 bytes of CSV text as bit masks: bit i is byte i. See csv.h.
#if defined(CDD_SIMD_CSV_MASKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_CSV_MASKS_INL_H_
#undef CDD_SIMD_CSV_MASKS_INL_H_
#else
#define CDD_SIMD_CSV_MASKS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "core/simd/csv/csv.h"
#include "core/simd/either-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kCsvStep = 64;

struct CsvMasks {
  uint64_t delimiters, ends, quotes;
};

template <class D, class M>
HWY_INLINE uint64_t BitsOfMask(D d, M mask) {
  alignas(8) uint8_t bits[HWY_MAX(8, hn::MaxLanes(d) / 8)];
  hn::StoreMaskBits(d, mask, bits);
  const size_t lanes = hn::Lanes(d);
  // Loads of what was stored, no more, so that it need not reach memory.
  if (lanes >= 64) {
    uint64_t v;
    memcpy(&v, bits, sizeof v);
    return v;
  }
  if (lanes == 32) {
    uint32_t v;
    memcpy(&v, bits, sizeof v);
    return v;
  }
  if (lanes == 16) {
    uint16_t v;
    memcpy(&v, bits, sizeof v);
    return v;
  }
  return bits[0] & ((1u << HWY_MIN(lanes, 8)) - 1);
}

// `high` gathers all bytes, for the question whether one of them is not ASCII.
template <class D, class V>
HWY_INLINE CsvMasks MasksOf(D d, const CsvDialect& dialect, const uint8_t* text, V& high) {
  const auto delimiter = hn::Set(d, dialect.delimiter);
  const auto quote = hn::Set(d, dialect.quote);
  const auto line_feed = hn::Set(d, uint8_t{'\n'});
  const auto carriage_return = hn::Set(d, uint8_t{'\r'});
  CsvMasks masks{0, 0, 0};
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < kCsvStep; i += lanes) {
    const auto v = hn::LoadU(d, text + i);
    high = hn::Or(high, v);
    masks.delimiters |= BitsOfMask(d, hn::Eq(v, delimiter)) << i;
    masks.quotes |= BitsOfMask(d, hn::Eq(v, quote)) << i;
    masks.ends |= BitsOfMask(d, Either(hn::Eq(v, line_feed), hn::Eq(v, carriage_return))) << i;
  }
  if (!dialect.quotes) masks.quotes = 0;
  return masks;
}

// Bit i of the result: an odd number of bits up to i, that included.
HWY_INLINE uint64_t PrefixXor(uint64_t bits) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || \
    HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3_ZEN4 || HWY_TARGET == HWY_AVX3_SPR
  const hn::FixedTag<uint64_t, 2> d;  // a product without carries, where it is one instruction
  return hn::GetLane(hn::CLMulLower(hn::Set(d, bits), hn::Set(d, ~uint64_t{0})));
#else
  for (int shift = 1; shift < 64; shift *= 2) bits ^= bits << shift;
  return bits;
#endif
}

// The same state as CsvState, as masks.
struct CsvCarry {
  uint64_t inside;           // all bits or none
  uint64_t after_separator;  // 0 or 1, as the others
  uint64_t after_end;
  uint64_t after_closing;
};

HWY_INLINE CsvCarry CarryOf(const CsvState& state) {
  return {state.inside ? ~uint64_t{0} : 0, state.after_separator, state.after_end, state.after_closing};
}

struct CsvStep {
  uint64_t separators;  // outside quotes: delimiters and line ends
  uint64_t ends;        // of these, line ends
  uint64_t quoted;      // quotes that open a field
  uint64_t opening;     // these, and the second of each two within a field
  uint64_t closed;      // bytes right after a quote that closes
  uint64_t bad;         // quotes out of place, or the byte after one
};

// `valid` masks the bytes that are text.
HWY_INLINE CsvStep StepOf(const CsvMasks& masks, uint64_t valid, CsvCarry& carry) {
  CsvStep step;
  if (HWY_LIKELY((masks.quotes | carry.inside | carry.after_closing) == 0)) {
    step = {masks.delimiters | masks.ends, masks.ends, 0, 0, 0, 0};
  } else {
    const uint64_t inside = PrefixXor(masks.quotes) ^ carry.inside;
    const uint64_t opening = masks.quotes & inside;
    const uint64_t closing = masks.quotes & ~inside;
    step.separators = (masks.delimiters | masks.ends) & ~inside;
    step.ends = masks.ends & ~inside;
    const uint64_t after_separator = step.separators << 1 | carry.after_separator;
    const uint64_t after_closing = closing << 1 | carry.after_closing;
    step.quoted = opening & after_separator;
    step.opening = opening;
    step.closed = after_closing;
    step.bad = ((opening & ~(after_separator | after_closing)) |
                (after_closing & ~(step.separators | masks.quotes))) &
               valid;
    carry.inside = static_cast<uint64_t>(static_cast<int64_t>(inside) >> 63);
    carry.after_closing = closing >> 63;
  }
  carry.after_separator = step.separators >> 63;
  return step;
}

// The last bytes of a text, filled up to a whole step with a byte that means nothing.
struct CsvTail {
  CsvTail() = default;
  CsvTail(const CsvDialect& dialect, const uint8_t* text, size_t n) { Fill(dialect, text, n); }
  void Fill(const CsvDialect& dialect, const uint8_t* text, size_t n) {
    uint8_t filler = 'a';
    while (filler == dialect.delimiter || filler == dialect.quote) ++filler;
    memset(bytes, filler, sizeof bytes);
    memcpy(bytes, text, n);
  }
  alignas(64) uint8_t bytes[kCsvStep];
};

HWY_INLINE uint64_t LowBits(size_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

HWY_INLINE size_t LowestBit(uint64_t bits) { return hwy::Num0BitsBelowLS1Bit_Nonzero64(bits); }

inline constexpr size_t kQuotedStep = 64;

// Copies n bytes from within quotes; of two quotes one stays. Bytes up to from[readable) may be read, n <=
// readable; `to` has room for n bytes and kQuotedStep more. Returns where what was copied ends.
HWY_INLINE uint8_t* CopyQuoted(const CsvDialect& dialect, const uint8_t* from, size_t n, size_t readable,
                               uint8_t* to) {
  const hn::CappedTag<uint8_t, kQuotedStep> d;
  const size_t lanes = hn::Lanes(d);
  const auto quote = hn::Set(d, dialect.quote);
  const uint8_t* const stop = from + n;
  const uint8_t* const safe = readable >= kQuotedStep ? from + (readable - kQuotedStep) : from - 1;
  while (from < stop && HWY_LIKELY(from <= safe)) {
    uint64_t quotes = 0;
    for (size_t i = 0; i < kQuotedStep; i += lanes) {
      const auto v = hn::LoadU(d, from + i);
      hn::StoreU(v, d, to + i);
      quotes |= BitsOfMask(d, hn::Eq(v, quote)) << i;
    }
    // Up to the first quote, that included; the other one of the two is passed over. No branch: quotes come
    // as they like.
    const auto left = static_cast<size_t>(stop - from);
    quotes &= LowBits(left);
    const size_t upto = quotes == 0 ? kQuotedStep : LowestBit(quotes) + 1;
    const size_t kept = HWY_MIN(upto, left);
    from += kept + (quotes != 0);
    to += kept;
  }
  for (; from < stop; ++from) {
    *to++ = *from;
    from += *from == dialect.quote;
  }
  return to;
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
