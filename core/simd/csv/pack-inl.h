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
inline constexpr size_t kPieceStep = 64;
inline constexpr size_t kMaxField = 0xffff;

struct PackSink {
  const CsvDialect& dialect;
  const uint8_t* text;
  const uint8_t* text_safe;  // a whole copy step may be read from here and before
  const CsvPackTarget& target;
  uint8_t* out;
  uint8_t* out_safe;  // length and a whole copy step may be written here and before
  const uint8_t* piece_safe;
  uint8_t* to_safe;
  uint8_t* row_begin;
  uint8_t* to = nullptr;  // where the next piece of a field with quotes goes; its length goes to `out`
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
  uint8_t* End() const { return reinterpret_cast<uint8_t*>(target.fields_end); }

  // What is rare knows nothing of the sink, so that the compiler keeps it in registers. `to` is at most two
  // bytes over the end.
  HWY_NOINLINE static bool CopyExactly(const uint8_t* from, size_t bytes, uint8_t* to, const uint8_t* end) {
    if (bytes > kMaxField || end - to < static_cast<ptrdiff_t>(bytes)) return false;
    memcpy(to, from, bytes);
    return true;
  }

  // False where the field is too long or there is no room.
  HWY_INLINE bool Plain(size_t end) {
    const uint8_t* const from = text + start;
    const size_t bytes = end - start;
    if (HWY_LIKELY(bytes <= kCopyStep && out <= out_safe && from <= text_safe)) {
      PutLength(out, bytes);
      CopyStep(from, out + 2);
    } else if (CopyExactly(from, bytes, out + 2, End())) {
      PutLength(out, bytes);
    } else {
      return false;
    }
    out += 2 + bytes;
    start = end + 1;
    return true;
  }

  // A piece of a field with quotes, up to what is left out of it.
  HWY_INLINE bool Piece(size_t bytes) {
    const uint8_t* const from = text + start;
    if (HWY_LIKELY(bytes <= kPieceStep && to <= to_safe && from <= piece_safe)) {
      const hn::CappedTag<uint8_t, kPieceStep> d;
      for (size_t i = 0; i < kPieceStep; i += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    } else if (!CopyExactly(from, bytes, to, End())) {
      return false;
    }
    to += bytes;
    return true;
  }
  // A field of pieces ends before `at`, or before the quote that closes it.
  HWY_INLINE bool Field(size_t at, bool is_closed) {
    return HWY_LIKELY(Piece(at - start - is_closed)) && EndField(at);
  }
  // A field whose bytes are all there ends before `at`.
  HWY_INLINE bool EndField(size_t at) {
    const auto bytes = static_cast<size_t>(to - out - 2);
    if (HWY_UNLIKELY(bytes > kMaxField)) return false;
    PutLength(out, bytes);
    out = to;
    to += 2;
    start = at + 1;
    ++fields;
    return true;
  }
  HWY_INLINE bool BlankLine(size_t at) {
    if (HWY_LIKELY(at != row_start)) return false;
    row_start = start = at + 1;
    return true;
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
};

// Of 64 bytes in which no field has a quote.
HWY_INLINE bool PackPlainStep(uint64_t separators, uint64_t ends, size_t at, PackSink& sink) {
  for (uint64_t left = separators; left != 0; left &= left - 1) {
    const size_t bit = LowestBit(left);
    if ((ends >> bit & 1) == 0) {
      ++sink.fields;
      if (HWY_UNLIKELY(!sink.Plain(at + bit))) return false;
    } else if (!sink.BlankLine(at + bit)) {
      ++sink.fields;
      if (HWY_UNLIKELY(!sink.Plain(at + bit) || !sink.EndRow())) return false;
    }
  }
  return true;
}

// Quotes are left out: of two within a field the second ends a piece of it. The one that opens a field is
// passed over with the separator before it, or here, where that lies in the step before.
HWY_INLINE bool PackQuotedStep(const CsvStep& step, size_t at, PackSink& sink) {
  sink.start += step.quoted & 1;
  for (uint64_t left = step.separators | (step.opening & ~step.quoted); left != 0; left &= left - 1) {
    const size_t bit = LowestBit(left);
    if ((step.separators >> bit & 1) == 0) {
      if (HWY_UNLIKELY(!sink.Piece(at + bit - sink.start))) return false;
      sink.start = at + bit + 1;
      continue;
    }
    const bool is_closed = (step.closed >> bit & 1) != 0;
    if ((step.ends >> bit & 1) == 0) {
      if (HWY_UNLIKELY(!sink.Field(at + bit, is_closed))) return false;
    } else if (!sink.BlankLine(at + bit)) {
      if (HWY_UNLIKELY(!sink.Field(at + bit, is_closed) || !sink.EndRow())) return false;
    }
    sink.start += step.quoted >> 1 >> bit & 1;
  }
  return true;
}

#undef CDD_CSV_TOGETHER  // of the target before
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define CDD_CSV_TOGETHER 1
#else
#define CDD_CSV_TOGETHER 0
#endif

#if CDD_CSV_TOGETHER
// Where bytes can be taken together within a vector, what is left out of 64 bytes is: no piece costs anything
// then. The rest goes out at once, cut at the separators, and not with the end of its field.
// `kept`: bytes of fields. May write kTogetherRoom bytes: 64, a length at each separator, a vector over that.
inline constexpr ptrdiff_t kTogetherRoom = 256;

HWY_INLINE bool PackTogether(const uint8_t* bytes, const CsvStep& step, uint64_t kept, size_t at,
                             PackSink& sink) {
  const hn::FixedTag<uint8_t, kCsvStep> d;
  const auto all =
      hn::Compress(hn::LoadU(d, bytes), hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&kept)));
  size_t done = 0;
  hn::StoreU(all, d, sink.to);
  for (uint64_t left = step.separators; left != 0; left &= left - 1) {
    const size_t bit = LowestBit(left);
    const bool is_end = (step.ends >> bit & 1) != 0;
    if (HWY_UNLIKELY(is_end && sink.BlankLine(at + bit))) continue;
    const size_t upto = hwy::PopCount(kept & LowBits(bit));
    sink.to += upto - done;
    done = upto;
    if (HWY_UNLIKELY(!sink.EndField(at + bit))) return false;
    if (is_end && HWY_UNLIKELY(!sink.EndRow())) return false;
    const auto from = hn::Add(hn::Iota(d, 0), hn::Set(d, static_cast<uint8_t>(done)));
    hn::StoreU(hn::TableLookupLanes(all, hn::IndicesFromVec(d, from)), d, sink.to);
  }
  sink.to += hwy::PopCount(kept) - done;
  return true;
}
#endif

HWY_INLINE bool PackText(const CsvDialect& dialect, const uint8_t* text, size_t n, PackSink& sink) {
  const hn::CappedTag<uint8_t, kCsvStep> d;
  CsvCarry carry = CarryOf({});
  auto high = hn::Zero(d);
  bool quotes_before = false;              // since the last separator
  bool by_pieces = CDD_CSV_TOGETHER == 0;  // of fields with quotes, what goes out
  CsvTail tail;
  for (size_t at = 0; at < n; at += kCsvStep) {
    const size_t left = n - at;
    if (HWY_UNLIKELY(left < kCsvStep)) tail.Fill(dialect, text + at, left);
    const uint8_t* const bytes = HWY_LIKELY(left >= kCsvStep) ? text + at : tail.bytes;
    const CsvMasks masks = MasksOf(d, dialect, bytes, high);
    [[maybe_unused]] const uint64_t after_closing = carry.after_closing;
    const CsvStep step = StepOf(masks, LowBits(left), carry);
    if (HWY_LIKELY((masks.quotes | static_cast<uint64_t>(quotes_before)) == 0)) {
      if (HWY_UNLIKELY(!PackPlainStep(step.separators, step.ends, at, sink))) return false;
      continue;
    }
    if (HWY_UNLIKELY(step.bad != 0)) return false;
    if (!quotes_before) sink.to = sink.out + 2;
#if CDD_CSV_TOGETHER
    if (HWY_LIKELY(!by_pieces)) {
      // Of the field at hand all has gone out, or nothing where it has no quotes yet.
      if (!quotes_before && sink.start < at && HWY_UNLIKELY(!sink.Piece(at - sink.start))) return false;
      sink.start = at - after_closing;
      by_pieces = sink.End() - sink.to < kTogetherRoom;
    }
    if (HWY_LIKELY(!by_pieces)) {
      const uint64_t left_out = step.separators | step.quoted | (masks.quotes & ~step.opening);
      if (HWY_UNLIKELY(!PackTogether(bytes, step, LowBits(left) & ~left_out, at, sink))) return false;
    } else if (HWY_UNLIKELY(!PackQuotedStep(step, at, sink))) {
      return false;
    }
#else
    if (HWY_UNLIKELY(!PackQuotedStep(step, at, sink))) return false;
#endif
    quotes_before = step.separators == 0 || masks.quotes > step.separators;
  }
  if (sink.row_start >= n) return true;
  if (!quotes_before) sink.to = sink.out + 2;
  const bool is_closed = dialect.quotes && text[n - 1] == dialect.quote;
  if (quotes_before && !by_pieces) sink.start = n - is_closed;
  return carry.inside == 0 && sink.Field(n, is_closed) && sink.EndRow();
}

void PackCsv(const CsvDialect& dialect, const std::byte* bytes, size_t n, size_t readable,
             const CsvPackTarget& given, CsvPackedRows* packed) {
  packed->whole = true;
  if (n == 0) return;
  CsvPackTarget target = given;
  std::byte nothing[2];
  if (target.fields == nullptr) target.fields = target.fields_end = nothing + 1;  // a byte lies before it
  const uint8_t* const text = reinterpret_cast<const uint8_t*>(bytes);
  uint8_t* const out = reinterpret_cast<uint8_t*>(target.fields);
  const auto room = static_cast<size_t>(target.fields_end - target.fields);
  // Without room for one step, the byte before the text or target: no field begins there.
  const auto safe = [&](size_t step) { return readable >= step ? text + (readable - step) : text - 1; };
  const auto room_for = [&](size_t step) { return room >= step ? out + (room - step) : out - 1; };
  PackSink sink{dialect,
                text,
                safe(kCopyStep),
                target,
                out,
                room_for(kCopyStep + 2),
                safe(kPieceStep),
                room_for(kPieceStep),
                out};
  packed->whole = PackText(dialect, text, n, sink);
  packed->rows = sink.rows;
  packed->bytes = static_cast<size_t>(sink.out - out);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
