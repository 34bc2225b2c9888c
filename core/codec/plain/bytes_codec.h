// Codec 1, Bytes: the payload is the rows, or with kBytePlanes their byte planes, for LZ4 or zstd to shrink.
// Specification: docs/formats/codecs/plain.md, type 1.
#pragma once

#include "core/codec/codec.h"

namespace cdd {

extern const Codec kBytesCodec;

}  // namespace cdd
