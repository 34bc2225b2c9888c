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
// A search may cost this part of all streams more than the best: of those that skip noise, of others. Codes
// alone may cost the first for both, since they take so much less time.
constexpr std::size_t kPartOfFast = 100, kPartOfSmall = 400;

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

std::size_t size_of_codes(LiteralEncoder& literals, Bytes sample) {
  literals.forget();
  const std::size_t size = literals.encode(sample, sample_bytes().get(literals_bound(sample.size())));
  return size == 0 ? sample.size() : size;
}

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
                        LiteralEncoder& literals) {
  const std::size_t stream = block.size() / streams, sample = std::min(stream, short_bytes);
  std::size_t sizes[kMaxStreams][std::size(kSearches)], codes[kMaxStreams], best[kMaxStreams], total = 0;
  for (std::size_t s = 0; s < streams; ++s) {
    const Bytes middle = block.subspan(s * stream + (stream - sample) / 2, sample);
    for (std::size_t k = 0; k < std::size(kSearches); ++k) sizes[s][k] = sample_size(kSearches[k], middle);
    codes[s] = size_of_codes(literals, middle);
    best[s] = *std::min_element(std::begin(sizes[s]), std::end(sizes[s]));
    total += best[s];
  }
  StreamPlan plan;
  plan.is_made = true;
  const std::size_t most_more = total / streams / kPartOfFast;
  const std::size_t more = skips_noise ? most_more : total / streams / kPartOfSmall;
  std::size_t most = streams;  // the stream that has the most bytes of those that are compressed
  for (std::size_t s = 0; s < streams; ++s) {
    StreamPlan::OfStream& of = plan.of[s];
    for (std::size_t k = 0; k < std::size(kSearches); ++k) {
      if (sizes[s][k] <= best[s] + more) of.search = kSearches[k];
    }
    of.has_codes_alone = codes[s] <= best[s] + most_more;
    of.is_stored = skips_noise && saves_little(best[s], sample);
    if (!of.is_stored && (most == streams || best[s] > best[most])) most = s;
  }
  // Codes that follow frequencies are better off with short streams.
  const bool searches =
      most != streams && plan.of[most].search != Search::Literals && !plan.of[most].has_codes_alone;
  if (searches && stream > short_bytes) {
    plan.has_long_streams =
        gains_by_length(plan.of[most].search, block.subspan(most * stream, stream), short_bytes);
  }
  return plan;
}

bool is_noise(Bytes stream) {
  if (stream.size() < 2 * kSampleBytes) return false;
  const Bytes sample = stream.subspan((stream.size() - kSampleBytes) / 2, kSampleBytes);
  return saves_little(sample_size(Search::Level1, sample), kSampleBytes);
}

std::size_t plan_scratch_bytes(std::size_t stream) { return compress_bound(Compressor::Zstd, stream); }

}  // namespace cdd::blosc
