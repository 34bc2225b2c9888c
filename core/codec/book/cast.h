// The lossy step of the book codecs: float32 rows <-> float16 rows, optionally normalised by each row's mid.
// Not a payload format: xor.cpp stores what this makes. Arithmetic: docs/formats/codecs/book.md, "float16".
#pragma once

#include <cstdint>
#include <span>

#include "core/codec/codec.h"

namespace cdd {

// What turns float16 rows back into float32: stored beside them.
struct BookScale {
  float size_scale = 1.0f;
  const float* mids = nullptr;  // one for each row; null when prices are not normalised
};

// Casts n_rows of (D, F) float32 rows to `halves`. Mid also fills mids[n_rows]. Throws InvalidArgument for
// options that make no sense and for rows without a usable mid; the text counts rows from first_row.
void cast_rows(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Float16Options& options,
               std::span<float> mids, std::uint16_t* halves, std::uint64_t first_row = 0);

// Rows of float16 to float32 at `out`. Uses scratch<CodecWork2>().
void uncast_rows(const RowLayout& layout, std::uint32_t n_rows, const BookScale& scale,
                 const std::uint16_t* halves, std::byte* out);

// Compares what was given with what decoding returns. Throws InvalidArgument, naming the value and where it
// is, when a finite value became infinite.
CastError cast_error(const RowLayout& layout, Bytes given, Bytes returned, std::uint64_t first_row = 0);

// Throws what casting these rows would, and keeps nothing. Uses scratch<CodecWork>().
void check_castable(const RowLayout& layout, Bytes rows, std::uint64_t n_rows, const Float16Options& options);

}  // namespace cdd
