// How the streams of one frame are compressed by zstd's first level: found by trying a few of them. What is
// tried is a tile's own, so that equal tiles give equal bytes.
#pragma once

#include <cstddef>

#include "core/base/bytes.h"
#include "core/codec/blosc/literals.h"
#include "core/codec/compressor.h"

namespace cdd::blosc {

inline constexpr std::size_t kMaxStreams = 16;  // of a block: no more bytes an item are split

struct StreamPlan {
  struct OfStream {
    Search search = Search::Level1;
    bool is_stored = false;
    bool has_codes_alone = false;  // LiteralEncoder in place of a search
  };
  bool is_made = false;
  bool has_long_streams = false;  // where what came before comes again
  OfStream of[kMaxStreams];       // by the byte of the items that a stream holds
};

// `block` is a shuffled one of `streams` streams, which say what the others are like. The fastest way wins
// that costs few bytes more than the best. Longer streams than `short_bytes` are planned where they are
// smaller. `skips_noise`: streams that shrink by less than 9 % are stored. `literals` forgets what it knew.
StreamPlan plan_streams(Bytes block, std::size_t streams, std::size_t short_bytes, bool skips_noise,
                        LiteralEncoder& literals);

// Whether a stream is to be stored, by a sample of it, where there is no plan.
bool is_noise(Bytes stream);

// Bytes that a thread keeps for samples of streams of this length.
std::size_t plan_scratch_bytes(std::size_t stream);

}  // namespace cdd::blosc
