#include "core/codec/blosc/stream_plan.h"

#include <algorithm>
#include <iterator>

#include "core/base/of_thread.h"
#include "core/base/scratch.h"

namespace cdd::blosc {
namespace {

constexpr std::size_t kSampleBytes = 4096;
constexpr std::size_t kSampleGainPercent = 9;
constexpr Search kSearches[] = {Search::Level1, Search::Long, Search::Literals};  // each faster than the last
// What may cost this part of all streams more than the best: searches of those that skip noise, of others;
// ways without a search, since they take so much less time.
constexpr std::size_t kPartOfFast = 100, kPartOfSmall = 400, kPartWithoutSearch = 60;

Scratch& sample_bytes() {
  thread_local OfThread<Scratch> own;
  return own.value;
}

std::size_t sample_size(Search search, Bytes sample) {
  const MutableBytes out = sample_bytes().get(compress_bound(Compressor::Zstd, sample.size()));
  return std::min(compress_zstd(search, sample, out), sample.size());
}

bool saves_little(std::size_t stored, std::size_t bytes) {
  return stored * 100 > bytes * (100 - kSampleGainPercent);
}

// By an encoder that needs no search; as the sample is where there is no such frame.
template <class Encoder>
std::size_t size_by(Encoder& encoder, Bytes sample) {
  const std::size_t size = encoder.encode(sample, sample_bytes().get(literals_bound(sample.size())));
  return size == 0 ? sample.size() : size;
}

// What was tried on the sample of a stream.
struct Tried {
  std::size_t searches[std::size(kSearches)], codes, runs, best;

  void begin(Bytes sample, StreamEncoders& encoders) {
    std::fill(std::begin(searches), std::end(searches), sample.size());
    searches[0] = sample_size(kSearches[0], sample);
    encoders.literals.forget();
    codes = size_by(encoders.literals, sample);
    runs = size_by(encoders.runs, sample);
    best = std::min({searches[0], codes, runs});
  }
  // Other searches find less than the first one, so that they are of no use where none is needed.
  void search_on(Bytes sample) {
    for (std::size_t k = 1; k < std::size(kSearches); ++k) {
      searches[k] = sample_size(kSearches[k], sample);
      best = std::min(best, searches[k]);
    }
  }
  StreamPlan::OfStream planned(std::size_t more, std::size_t more_without_search) const {
    StreamPlan::OfStream of;
    of.way = runs <= best + more_without_search    ? StreamPlan::Way::Runs
             : codes <= best + more_without_search ? StreamPlan::Way::Codes
                                                   : StreamPlan::Way::Searched;
    for (std::size_t k = 0; k < std::size(kSearches); ++k) {
      if (searches[k] <= best + more) of.search = kSearches[k];
    }
    return of;
  }
};

// Whether a stream is smaller as a whole than as short ones.
bool gains_by_length(Search search, Bytes stream, std::size_t short_bytes) {
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < stream.size(); at += short_bytes) {
    pieces += sample_size(search, stream.subspan(at, std::min(short_bytes, stream.size() - at)));
  }
  return sample_size(search, stream) < pieces;
}

}  // namespace

StreamPlan plan_streams(Bytes block, std::size_t streams, std::size_t short_bytes, bool skips_noise,
                        StreamEncoders& encoders) {
  const std::size_t stream = block.size() / streams, sample = std::min(stream, short_bytes);
  const auto middle = [&](std::size_t s) {
    return block.subspan(s * stream + (stream - sample) / 2, sample);
  };
  Tried tried[kMaxStreams];
  std::size_t total = 0;
  for (std::size_t s = 0; s < streams; ++s) {
    tried[s].begin(middle(s), encoders);
    total += tried[s].best;
  }
  const std::size_t more = total / streams / (skips_noise ? kPartOfFast : kPartOfSmall);
  const std::size_t more_without_search = total / streams / kPartWithoutSearch;
  StreamPlan plan;
  plan.is_made = true;
  std::size_t most = streams;  // the stream that has the most bytes of those that are compressed
  for (std::size_t s = 0; s < streams; ++s) {
    const bool searches = std::min(tried[s].codes, tried[s].runs) > tried[s].best + more_without_search;
    if (searches) tried[s].search_on(middle(s));
    plan.of[s] = tried[s].planned(more, more_without_search);
    if (skips_noise && saves_little(tried[s].best, sample)) {
      plan.of[s].way = StreamPlan::Way::Stored;
    } else if (most == streams || tried[s].best > tried[most].best) {
      most = s;
    }
  }
  // Codes that follow frequencies are better off with short streams.
  const bool searches = most != streams && plan.of[most].way == StreamPlan::Way::Searched &&
                        plan.of[most].search != Search::Literals;
  if (searches && stream > short_bytes) {
    plan.has_long_streams =
        gains_by_length(plan.of[most].search, block.subspan(most * stream, stream), short_bytes);
  }
  return plan;
}

bool Lz4Tries::is_due(Bytes stream, std::size_t s) noexcept {
  if (left_[s] == 0) return true;
  --left_[s];
  return !is_spread(stream);
}

bool is_noise(Bytes stream) {
  if (stream.size() < 2 * kSampleBytes) return false;
  const Bytes sample = stream.subspan((stream.size() - kSampleBytes) / 2, kSampleBytes);
  return saves_little(sample_size(Search::Level1, sample), kSampleBytes);
}

std::size_t plan_scratch_bytes(std::size_t stream) { return compress_bound(Compressor::Zstd, stream); }

}  // namespace cdd::blosc
