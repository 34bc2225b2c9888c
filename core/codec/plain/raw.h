// Codec 0, RAW: the payload is the rows as they are.
#pragma once

#include "core/codec/codec.h"

namespace cdd {

extern const Codec kRawCodec;

}  // namespace cdd
