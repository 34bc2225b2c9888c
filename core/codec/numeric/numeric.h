// NUMERIC (type 6): each column as small integers, bit-packed. For series, times, prices, and whatever is not
// a book. Any dtype, any row shape. Specification: docs/formats/codecs/numeric.md.
#pragma once

#include "core/codec/codec.h"

namespace cdd {

extern const Codec kNumericCodec;

}  // namespace cdd
