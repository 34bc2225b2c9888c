// Numbers from text with Highway. See numbers.h; numbers.cpp dispatches.
#if defined(CDD_SIMD_CSV_NUMBERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_CSV_NUMBERS_INL_H_
#undef CDD_SIMD_CSV_NUMBERS_INL_H_
#else
#define CDD_SIMD_CSV_NUMBERS_INL_H_
#endif

#include "core/simd/csv/masks-inl.h"
#include "core/simd/csv/numbers.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

using Characters = hn::FixedTag<uint8_t, 16>;
using CharactersV = hn::Vec<Characters>;

// 32 bytes, the upper half 0xff: from 32 - n on, 16 bytes of which the last n are 0xff begin at n.
alignas(16) inline constexpr uint8_t kLastBytes[32] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

// The value of 16 digits 0 to 9, the first the highest.
HWY_INLINE uint64_t ValueOf(CharactersV digits) {
  const hn::FixedTag<int8_t, 16> d8;
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<int32_t, 4> d32;
  const auto tens = hn::BitCast(d8, hn::Set(d16, int16_t{0x010a}));
  const auto hundreds = hn::BitCast(d16, hn::Set(d32, int32_t{0x00010064}));
  const auto ten_thousands = hn::BitCast(d16, hn::Set(d32, int32_t{0x00012710}));
  const auto pairs = hn::SatWidenMulPairwiseAdd(d16, digits, tens);
  const auto fours = hn::WidenMulPairwiseAdd(d32, pairs, hundreds);
  const auto eights = hn::WidenMulPairwiseAdd(d32, hn::OrderedDemote2To(d16, fours, fours), ten_thousands);
  const uint64_t both = hn::GetLane(hn::BitCast(hn::FixedTag<uint64_t, 2>(), eights));
  return (both & 0xffffffff) * 100'000'000 + (both >> 32);
}

HWY_INLINE bool AllDigits(CharactersV digits) {
  const Characters d;
  return hn::AllTrue(d, hn::Le(digits, hn::Set(d, uint8_t{9})));
}

// The fields of a column, one after the other.
template <bool kFirst>
struct FieldCursor {
  explicit FieldCursor(const CsvColumn& column)
      : text(reinterpret_cast<const uint8_t*>(column.text)), ends(column.ends), stride(column.stride) {}

  HWY_INLINE void Next() {
    uint32_t at = ends[-1] + 1;
    const uint32_t to = ends[0];
    ends += stride;
    if (kFirst) {
      while (HWY_UNLIKELY(at < to && (text[at] == '\n' || text[at] == '\r'))) ++at;
    }
    begin = text + at;
    end = text + to;
  }

  const uint8_t* text;
  const uint32_t* ends;
  size_t stride;
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
};

template <bool kFirst>
HWY_INLINE size_t Integers(const CsvNumbers& numbers, std::byte* items, uint32_t* left) {
  const Characters d;
  const auto zeros = hn::Set(d, uint8_t{'0'});
  FieldCursor<kFirst> field(numbers.column);
  size_t others = 0;
  for (size_t r = 0; r < numbers.column.rows; ++r) {
    field.Next();
    const auto bytes = static_cast<size_t>(field.end - field.begin);
    const uint8_t first = bytes != 0 ? *field.begin : 0;
    const bool minus = numbers.minus && first == '-';
    const size_t count = bytes - minus;
    const bool fits = count - 1 < 16 && !(numbers.plain && bytes > 1 && field.begin[minus] == '0');
    if (HWY_LIKELY(fits)) {
      const auto digits =
          hn::And(hn::Xor(hn::LoadU(d, field.end - 16), zeros), hn::LoadU(d, kLastBytes + count));
      if (HWY_LIKELY(AllDigits(digits))) {
        const auto value = static_cast<int64_t>(ValueOf(digits));
        const int64_t item = minus ? -value : value;
        memcpy(items + 8 * r, &item, sizeof item);
        continue;
      }
    }
    left[others++] = static_cast<uint32_t>(r);
  }
  return others;
}

// Bytes before a point at p move up by one; 16: there is none.
struct PointTables {
  alignas(16) uint8_t moves[17][16];
  double powers[17];
};
constexpr PointTables MakePointTables() {
  PointTables tables{};
  for (int p = 0; p <= 16; ++p) {
    for (int i = 0; i < 16; ++i) {
      const bool moved = p < 16 && i <= p;
      tables.moves[p][i] = static_cast<uint8_t>(!moved ? i : i == 0 ? 0x80 : i - 1);
    }
    tables.powers[p] = 1;
    for (int k = p; k < 15; ++k) tables.powers[p] *= 10;  // exact, as all below 10^23
  }
  return tables;
}
inline constexpr PointTables kPoints = MakePointTables();

template <bool kFirst>
HWY_INLINE size_t Decimals(const CsvNumbers& numbers, std::byte* items, uint32_t* left) {
  const Characters d;
  const auto zeros = hn::Set(d, uint8_t{'0'});
  const auto point = hn::Set(d, uint8_t{'.'});
  FieldCursor<kFirst> field(numbers.column);
  size_t others = 0;
  for (size_t r = 0; r < numbers.column.rows; ++r) {
    field.Next();
    const auto bytes = static_cast<size_t>(field.end - field.begin);
    const uint8_t first = bytes != 0 ? *field.begin : 0;
    const bool minus = numbers.minus && first == '-';
    const uint8_t* const begin = field.begin + minus;
    const size_t count = bytes - minus;
    const bool fits = count - 1 < 16 && !(numbers.plain && count > 1 && begin[0] == '0' && begin[1] != '.');
    if (HWY_LIKELY(fits)) {
      const auto text = hn::LoadU(d, field.end - 16);
      const uint64_t points = BitsOfMask(d, hn::Eq(text, point)) & (uint64_t{0xffff} << (16 - count));
      const size_t at = hwy::Num0BitsBelowLS1Bit_Nonzero64(points | 0x10000);
      const size_t without = count - (at < 16);
      const auto moved = hn::TableLookupBytesOr0(hn::Xor(text, zeros), hn::Load(d, kPoints.moves[at]));
      const auto digits = hn::And(moved, hn::LoadU(d, kLastBytes + without));
      if (HWY_LIKELY(AllDigits(digits) && without - 1 < 15)) {
        const double value = static_cast<double>(static_cast<int64_t>(ValueOf(digits))) / kPoints.powers[at];
        const double item = minus ? -value : value;
        memcpy(items + 8 * r, &item, sizeof item);
        continue;
      }
    }
    left[others++] = static_cast<uint32_t>(r);
  }
  return others;
}

size_t ParseCsvIntegers(const CsvNumbers& numbers, std::byte* items, uint32_t* left) {
  return numbers.column.first ? Integers<true>(numbers, items, left) : Integers<false>(numbers, items, left);
}

size_t ParseCsvDecimals(const CsvNumbers& numbers, std::byte* items, uint32_t* left) {
  return numbers.column.first ? Decimals<true>(numbers, items, left) : Decimals<false>(numbers, items, left);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
