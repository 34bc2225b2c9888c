// Two codecs that the table of toy_codec_test has beside the library's: chunks whose rows are all the same,
// stored as that row.
#pragma once

#include <functional>

#include "core/codec/codec.h"

namespace cdd {

extern const Codec kToyCodec;
extern const Codec kLightToyCodec;  // as one whose records are not copied before they are decoded

// Called when a toy codec begins to decode, if there is one.
extern std::function<void()> while_decoding;
// What toy codecs add to the first byte that they store: a mistake in their code.
extern unsigned char mistake;

}  // namespace cdd
