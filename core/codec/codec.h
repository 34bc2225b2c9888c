// What a chunk codec is: one row of a constexpr table (codec_table.cpp).
//
// A codec turns the raw rows of one chunk into a payload and any range of its rows back. It knows nothing of
// files, records or checks. Adding one = an id here, a row in the table, a section in docs/formats/codecs and
// a golden file. No caller changes: what it is called, what it costs and how careful others are with it
// stands in its row. Payloads are specified in docs/formats/codecs and never change their meaning.
//
// Contracts shared by all codecs:
//  - `rows` holds exactly n_rows * layout.row_bytes() bytes, n_rows >= 1, at most 2 GiB.
//  - decode_rows_into writes exactly range.count rows to `out`, never a byte more, and bit for bit what
//    encode was given (for lossy parameters: bit for bit what `reconstructed` reported).
//  - The payload is untrusted: decoding throws Error{Corrupt}, and never reads outside
//    [payload.begin(), payload.end() + kScratchPadding), writes elsewhere than out and scratch, hangs, or
//    allocates more than a small multiple of the raw chunk. The padding bytes are readable but arbitrary.
//  - decode_cells_into keeps the same promises for a part of each row.
//  - Functions are reentrant; working memory comes from scratch<CodecWork>() and <CodecWork2>.
//    Encode gets `out` from the caller; out.size() >= bound(), followed by kScratchPadding writable bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/base/row_layout.h"
#include "core/codec/compressor.h"
#include "core/format/cdd/constants.h"

namespace cdd {

enum class CodecId : std::uint16_t {
  Raw = 0,        // the rows as they are
  Bytes = 1,      // the rows, or their byte planes, through LZ4 or zstd
  OkxObF16 = 2,   // (N, 50, 3) float32 cast to float16, XOR with the row before, byte planes
  OkxObF32 = 3,   // (N, 50, 3) float32, XOR with the row before, byte planes
  GenericOb = 4,  // the same for any (N, D, F) of 2-, 4- or 8-byte items
  Levels = 5,     // a dictionary of levels, rows as ids
  Numeric = 6,    // per column: representation, predictor, bit-packing
};

enum class Normalise : std::uint8_t { None = 0, Mid = 1 };

// Lossy storage of float32 books, only ever used when the user asks for it.
struct Float16Options {
  bool enabled = false;
  Normalise normalise = Normalise::None;  // Mid: feature 0 is stored as price / mid - 1
  float size_scale = 1.0f;                // features 1.. are divided by this before the cast
};

// The largest errors a lossy cast made so far. Relative error is |stored - given| / |given| over given != 0.
struct CastError {
  double max_absolute = 0;
  double max_relative = 0;
};

// What encode may be told beyond the rows, and what it reports back.
struct EncodeContext {
  Float16Options float16;
  bool byte_planes = false;  // CodecId::Bytes only
  bool smallest = false;     // CodecId::Levels only: fewest bytes, though windows of rows take longer to read
  bool coded = false;        // CodecId::Levels only: streams of codes, smaller and slower than packed ones
  std::uint64_t flags = 0;   // out: flag bits decode needs (kBytePlanes, kDownCast16)
  CastError cast_error;      // out, lossy codecs only: of this chunk
  std::byte* reconstructed =
      nullptr;  // out, lossy codecs only: if not null, gets the rows decode will return
};

// Time of one decoding step: ns for each byte it makes and for each byte it takes. benchmarks/calibrate.cpp
// fits them to whole-chunk reads of real arrays; these are a Zen 4 core's. Only their proportions matter.
struct StepCost {
  double made = 0;
  double taken = 0;
};

// A name that users write for a codec and what follows it: "levels", "planes+zstd".
struct NamedScheme {
  const char* name;
  Compressor compressor = Compressor::None;
  StepCost cost;  // of the codec's step
  bool byte_planes = false;
};

// Whether a codec stores float32 as float16: where it is asked to, or whatever it is asked.
enum class CastsTo16 : std::uint8_t { Never, WhenAsked, Always };

struct Codec {
  CodecId id;
  const char* name;                      // "raw", "levels", ...
  std::span<const NamedScheme> schemes;  // in order of preference where two cost the same
  const char* takes = nullptr;           // for errors, where it does not take rows of every layout

  bool in_auto = false;  // "auto" may choose it
  CastsTo16 casts = CastsTo16::Never;
  bool is_plain = false;    // the payload is the rows, or their byte planes
  bool is_checked = false;  // much code: what it makes is decoded again to see, before it is stored
  bool is_light = false;    // decoding costs little more than copying the record

  // Whether encode can take chunks of this layout at all.
  bool (*accepts)(const RowLayout& layout) noexcept;
  // Most bytes that encode may write for n_rows rows.
  std::size_t (*bound)(const RowLayout& layout, std::uint32_t n_rows) noexcept;
  // Writes the payload and returns its size; 0 when this chunk is better served by another codec (never for
  // Raw). Throws InvalidArgument for values a requested lossy cast cannot hold.
  std::size_t (*encode)(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext& context,
                        MutableBytes out);
  // Decodes rows [range.first, range.first + range.count) of the chunk's n_rows; the range is within it and
  // not empty.
  void (*decode_rows_into)(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                           RowRange range, std::byte* out);
  // The same for `cells` of each of these rows, one after the other without gaps: range.count *
  // cells_bytes() bytes. The cells are within a row, not empty, and not all of it. Null where
  // this saves nothing: then rows are decoded in blocks, and the cells copied from them (chunk_codec.cpp).
  void (*decode_cells_into)(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t flags, Bytes payload,
                            RowRange range, const Cells& cells, std::byte* out) = nullptr;
};

// All codecs, in order of preference where two cost the same.
std::span<const Codec* const> codecs() noexcept;

// Null for an id this version does not know.
const Codec* find_codec(std::uint16_t id) noexcept;

}  // namespace cdd
