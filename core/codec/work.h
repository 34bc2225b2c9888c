// The buffers of a thread that the steps of one chunk use: one for each that is in use beside another, so
// that no step overwrites its input.
#pragma once

#include "core/base/scratch.h"

namespace cdd {

struct TransformedBytes {};  // what a codec makes of rows, before the compressor or after it
struct CodecWork {};         // a codec's own, beside its input and its output
struct CodecWork2 {};        // the same, for a second one
struct ChunkRows {};         // a whole chunk for its hash, or rows of which only some cells are wanted
struct RowsAgain {};         // what was just encoded, decoded to be compared

}  // namespace cdd
