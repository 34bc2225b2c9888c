// How the streams of one frame are compressed by zstd's first level: found by trying a few of them. What is
// tried is a tile's own, so that equal tiles give equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/codec/blosc/literals.h"
#include "core/codec/blosc/runs.h"
#include "core/codec/compressor.h"

namespace cdd::blosc {

inline constexpr std::size_t kPlainZstdBytes = 32 << 10;  // blocks that c-blosc has for the first level
inline constexpr std::size_t kMaxStreams = 16;            // of a block: no more bytes an item are split

// Those that need no search.
struct StreamEncoders {
  LiteralEncoder literals;
  RunEncoder runs;
};

// How long the streams of zstd's first level are.
enum class Layout : std::uint8_t {
  Short,  // where frequencies change, short streams follow them
  Long,   // where what came before comes again, long ones have it
  Whole,  // blocks are not split: what comes again does so in all bytes of the items, or far behind
  Plain,  // as c-blosc has it
};

struct StreamPlan {
  enum class Way : std::uint8_t { Stored, Codes, Runs, Searched };
  struct OfStream {
    Way way = Way::Searched;
    Search search = Search::Level1;  // also where a stream is none for its encoder
  };
  bool is_made = false;
  bool may_be_plain = false;  // whether samples are smaller in the layout Plain
  Layout layout = Layout::Short;
  std::size_t streams = 0;   // of the block it was made of
  OfStream of[kMaxStreams];  // by the byte of the items that a stream holds
};

// Whether blocks like this shuffled one, of `streams` streams, are worth a try of the layout Whole: LZ4 says
// of samples that they shrink to less than 1 / `part`, or of a stream of many kinds of bytes that what is in
// it comes again.
bool may_be_whole(Bytes block, std::size_t streams, std::size_t part);

// `block` is a shuffled one of `streams` streams, which say what the others are like. The fastest way wins
// that costs few bytes more than the best. Longer streams than `short_bytes` are planned where they are
// smaller, or faster to search and no larger than c-blosc's. `skips_noise`: streams that shrink by less than
// 9 % are stored. The encoders forget what they knew.
StreamPlan plan_streams(Bytes block, std::size_t streams, std::size_t short_bytes, bool skips_noise,
                        StreamEncoders& encoders);

// The same of one stream, whose length stays as it is.
StreamPlan::OfStream plan_stream(Bytes stream, std::size_t short_bytes, bool skips_noise,
                                 StreamEncoders& encoders);

// Bytes that LZ4 gives a sample from the middle of a stream, of so many bytes where it has them.
inline constexpr std::size_t kLz4SampleBytes = 4096;
std::size_t lz4_sample_size(Bytes stream);

// Whether streams are worth a try of LZ4, which takes as long to find nothing as to find much: bytes of many
// kinds are stored as they are where the last try of a stream with the same bytes of the items found nothing
// and a sample of this one shrinks by nothing. A tile's own, and never for long: what came before may come
// again in bytes of any kind.
class Lz4Tries {
 public:
  bool is_due(Bytes stream, std::size_t s) noexcept;
  // Whether bytes of many kinds would be stored without a try.
  bool may_pass(std::size_t s) const noexcept { return left_[s] != 0; }
  void note(std::size_t s, bool was_of_use) noexcept { left_[s] = was_of_use ? 0 : kMostLeft; }

 private:
  static constexpr std::uint8_t kMostLeft = 7;
  std::uint8_t left_[kMaxStreams] = {};  // that may be stored without one of all their bytes
};

// Whether a stream is to be stored, by a sample of it, where there is no plan.
bool is_noise(Bytes stream);

// Bytes that a thread keeps for samples of streams of this length.
std::size_t plan_scratch_bytes(std::size_t stream);

}  // namespace cdd::blosc
