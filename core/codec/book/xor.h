// Codecs 2, 3 and 4, books as XOR with the row before: OKX_OB_F16 and OKX_OB_F32 for (N, 50, 3) float32,
// GENERIC_OB for (N, D, F) of 2-, 4- or 8-byte items. Every few rows a start row is stored as it is, so a
// range decodes from the start row before it. The payload is byte planes, for LZ4 or zstd to shrink.
//
// OKX_OB_F16 always, GENERIC_OB on request, first casts float32 to float16: the only lossy codecs, never
// chosen unless Float16Options::enabled. Specification: docs/formats/codecs/book.md, types 2 to 4.
#pragma once

#include "core/codec/codec.h"

namespace cdd {

extern const Codec kOkxObF16Codec;
extern const Codec kOkxObF32Codec;
extern const Codec kGenericObCodec;

}  // namespace cdd
