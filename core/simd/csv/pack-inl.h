// Packed rows made of CSV text in one pass with Highway. See csv.h; csv.cpp dispatches.
//
// Fields are copied a vector at a time over their end, where text and target have room for it; the next field
// goes over what was too much.
#if defined(CDD_SIMD_CSV_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_CSV_PACK_INL_H_
#undef CDD_SIMD_CSV_PACK_INL_H_
#else
#define CDD_SIMD_CSV_PACK_INL_H_
#endif

#include "core/simd/csv/masks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

inline constexpr size_t kCopyStep = 32;
inline constexpr size_t kMaxField = 0xffff;

struct PackSink {
  const CsvDialect& dialect;
  const uint8_t* text;
  const uint8_t* text_safe;  // a whole copy step may be read from here and before
  const CsvPackTarget& target;
  uint8_t* out;
  uint8_t* out_safe;  // length and a whole copy step may be written here and before
  uint8_t* row_begin;
  size_t start = 0;
  size_t row_start = 0;
  size_t rows = 0;
  uint32_t fields = 0;

  HWY_INLINE static void PutLength(uint8_t* to, size_t bytes) {
    const auto length = static_cast<uint16_t>(bytes);
    memcpy(to, &length, sizeof length);
  }
  HWY_INLINE static void CopyStep(const uint8_t* from, uint8_t* to) {
    const hn::CappedTag<uint8_t, kCopyStep> d;
    for (size_t i = 0; i < kCopyStep; i += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
  size_t Room() const { return static_cast<size_t>(reinterpret_cast<uint8_t*>(target.fields_end) - out); }

  // False where the field is too long or there is no room.
  HWY_INLINE bool Plain(size_t end) {
    const uint8_t* const from = text + start;
    const size_t bytes = end - start;
    if (HWY_LIKELY(bytes <= kCopyStep && out <= out_safe && from <= text_safe)) {
      PutLength(out, bytes);
      CopyStep(from, out + 2);
    } else if (!Long(from, bytes)) {
      return false;
    }
    out += 2 + bytes;
    start = end + 1;
    return true;
  }
  HWY_NOINLINE bool Long(const uint8_t* from, size_t bytes) {
    if (bytes > kMaxField || Room() < 2 + bytes) return false;
    PutLength(out, bytes);
    memcpy(out + 2, from, bytes);
    return true;
  }

  HWY_INLINE bool Quoted(size_t end) {
    const uint8_t* from = text + start + 1;
    const uint8_t* const stop = text + end - 1;
    uint8_t* to = out + 2;
    if (HWY_LIKELY(stop <= text_safe && Room() >= 2 + kCopyStep + static_cast<size_t>(stop - from))) {
      const hn::CappedTag<uint8_t, kCopyStep> d;
      const size_t lanes = hn::Lanes(d);
      const auto quote = hn::Set(d, dialect.quote);
      while (from < stop) {
        const auto v = hn::LoadU(d, from);
        hn::StoreU(v, d, to);
        const size_t left = HWY_MIN(lanes, static_cast<size_t>(stop - from));
        const uint64_t quotes = BitsOfMask(d, hn::Eq(v, quote)) & LowBits(left);
        if (HWY_LIKELY(quotes == 0)) {
          from += left;
          to += left;
        } else {  // one of the two stays
          const size_t kept = LowestBit(quotes) + 1;
          from += kept + 1;
          to += kept;
        }
      }
    } else if (!ExactQuoted(from, stop, &to)) {
      return false;
    }
    const auto bytes = static_cast<size_t>(to - out - 2);
    if (bytes > kMaxField) return false;
    PutLength(out, bytes);
    out = to;
    start = end + 1;
    return true;
  }
  HWY_NOINLINE bool ExactQuoted(const uint8_t* from, const uint8_t* stop, uint8_t** to) const {
    if (Room() < 2) return false;
    size_t room = Room() - 2;
    for (; from < stop; ++from) {
      if (room-- == 0) return false;
      *(*to)++ = *from;
      from += *from == dialect.quote;
    }
    return true;
  }
  HWY_INLINE bool Field(size_t end) {
    ++fields;
    const bool quoted = dialect.quotes && end - start >= 2 && text[start] == dialect.quote;
    return HWY_UNLIKELY(quoted) ? Quoted(end) : Plain(end);
  }
  HWY_INLINE bool EndRow() {
    if (HWY_UNLIKELY(fields != target.columns || rows == target.max_rows)) return false;
    const uint64_t begin =
        target.first_offset + static_cast<uint64_t>(row_begin - reinterpret_cast<uint8_t*>(target.fields));
    const auto offset = static_cast<uint32_t>(begin);
    if (HWY_UNLIKELY(offset != begin)) return false;
    memcpy(target.offsets + 4 * rows, &offset, sizeof offset);
    ++rows;
    fields = 0;
    row_begin = out;
    row_start = start;
    return true;
  }
  // kPlain: no quote stands in the field at hand.
  template <bool kPlain>
  HWY_INLINE bool Separator(size_t at, bool is_end) {
    if (is_end) {
      if (at == row_start) {  // a blank line
        row_start = start = at + 1;
        return true;
      }
      ++fields;
      const bool done = kPlain ? Plain(at) : (--fields, Field(at));
      return HWY_LIKELY(done) && EndRow();
    }
    if (!kPlain) return Field(at);
    ++fields;
    return Plain(at);
  }
};

template <bool kPlain>
HWY_INLINE bool PackStep(const CsvStep& step, size_t at, PackSink& sink) {
  for (uint64_t left = step.separators; left != 0; left &= left - 1) {
    const size_t bit = LowestBit(left);
    if (HWY_UNLIKELY(!sink.Separator<kPlain>(at + bit, (step.ends >> bit & 1) != 0))) return false;
  }
  return true;
}

HWY_INLINE bool PackText(const CsvDialect& dialect, const uint8_t* text, size_t n, PackSink& sink) {
  const hn::CappedTag<uint8_t, kCsvStep> d;
  CsvCarry carry = CarryOf({});
  auto high = hn::Zero(d);
  bool quotes_before = false;  // since the last separator
  for (size_t at = 0; at < n; at += kCsvStep) {
    CsvMasks masks;
    const size_t left = n - at;
    if (HWY_LIKELY(left >= kCsvStep)) {
      masks = MasksOf(d, dialect, text + at, high);
    } else {
      const CsvTail tail(dialect, text + at, left);
      masks = MasksOf(d, dialect, tail.bytes, high);
    }
    const CsvStep step = StepOf(masks, LowBits(left), carry);
    if (HWY_LIKELY((masks.quotes | static_cast<uint64_t>(quotes_before)) == 0)) {
      if (HWY_UNLIKELY(!PackStep<true>(step, at, sink))) return false;
    } else {
      if (HWY_UNLIKELY(step.bad != 0)) return false;
      if (HWY_UNLIKELY(!PackStep<false>(step, at, sink))) return false;
      quotes_before = step.separators == 0 || masks.quotes > step.separators;
    }
  }
  if (sink.row_start >= n) return true;
  return carry.inside == 0 && sink.Field(n) && sink.EndRow();
}

void PackCsv(const CsvDialect& dialect, const std::byte* bytes, size_t n, size_t readable,
             const CsvPackTarget& target, CsvPackedRows* packed) {
  packed->whole = true;
  if (n == 0) return;
  const uint8_t* const text = reinterpret_cast<const uint8_t*>(bytes);
  uint8_t* const out = reinterpret_cast<uint8_t*>(target.fields);
  const auto room = static_cast<size_t>(target.fields_end - target.fields);
  // Without room for one step, the first byte before the text: no field begins there.
  PackSink sink{dialect, text, readable >= kCopyStep ? text + (readable - kCopyStep) : text - 1,
                target,  out,  room >= kCopyStep + 2 ? out + (room - kCopyStep - 2) : out - 1,
                out};
  packed->whole = PackText(dialect, text, n, sink);
  packed->rows = sink.rows;
  packed->bytes = static_cast<size_t>(sink.out - out);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
