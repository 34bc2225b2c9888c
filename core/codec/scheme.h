// The names users write for codecs, *schemes*: "zstd", "planes+lz4", "okx_ob_f32", "levels+zstd", "auto", ...
//
// "codec+compressor" is one scheme; the rows of the codecs have them. A codec that is never written without a
// compressor may be named alone: then each compressor is a candidate. "auto" is every scheme of the codecs
// that say so and suit the layout. Which candidate a chunk gets is choose.h's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/codec/chunk_codec.h"

namespace cdd {

// The candidates that `name` stands for; at least one, and all accept `layout`. `level` is zstd's. With
// float16.enabled, and for names that mean float16, only schemes that cast; "auto" then takes the codec that
// casts this layout. Throws InvalidArgument: an unknown name, one that does not suit the layout or float16.
std::vector<Scheme> schemes_for(std::string_view name, const RowLayout& layout, int level = 3,
                                const Float16Options& float16 = {});

// Throws InvalidArgument for a name that schemes_for knows for no layout.
void check_scheme_name(std::string_view name);

// Every name schemes_for knows, separated by ", ".
std::string scheme_names();

}  // namespace cdd
