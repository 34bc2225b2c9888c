// LEVELS (type 5): a dictionary of the distinct levels of a chunk, rows as ids into it. Lossless.
//
// For (N, D, F) arrays of 4- or 8-byte items, D <= 4096, F <= 64. Specification:
// docs/formats/codecs/levels.md.
#pragma once

#include "core/codec/codec.h"

namespace cdd {

extern const Codec kLevelsCodec;

}  // namespace cdd
