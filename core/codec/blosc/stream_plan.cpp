#include "core/codec/blosc/stream_plan.h"

#include <algorithm>
#include <cstring>
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

Scratch& plain_bytes() {
  thread_local OfThread<Scratch> own;
  return own.value;
}

Bytes middle_of(Bytes stream, std::size_t bytes) {
  return stream.subspan((stream.size() - bytes) / 2, bytes);
}

std::size_t sample_size(Search search, Bytes sample) {
  const MutableBytes out = sample_bytes().get(compress_bound(Compressor::Zstd, sample.size()));
  return std::min(compress_zstd(search, sample, out), sample.size());
}

std::size_t lz4_size(Bytes sample) {
  const MutableBytes out = sample_bytes().get(compress_bound(Compressor::Lz4, sample.size()));
  return std::min(compress(Compressor::Lz4, sample, out, 1), sample.size());
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

// Bytes of equal parts of streams as c-blosc has them, in blocks of all bytes of the items.
std::size_t plain_size(std::span<const Bytes> parts) {
  const std::size_t part = kPlainZstdBytes / parts.size(), size = parts.front().size();
  std::size_t total = 0;
  for (std::size_t at = 0; at < size; at += part) {
    const std::size_t n = std::min(part, size - at);
    const MutableBytes block = plain_bytes().get(kPlainZstdBytes).first(n * parts.size());
    for (std::size_t s = 0; s < parts.size(); ++s) std::memcpy(block.data() + s * n, parts[s].data() + at, n);
    total += sample_size(Search::Level1, block);
  }
  return total;
}

// The fastest search of a long stream that gives at most `most` bytes; Level1 where there is none. Where
// there are many long matches any search is fast: none of these, for the smallest counts.
Search find_long_search(Bytes stream, std::size_t most) {
  constexpr std::size_t kSmall = 3;           // shrunk to this part
  constexpr std::size_t kPercentOfNext = 90;  // that Every4th takes of Every5th
  for (const Search search : {Search::Every4th, Search::Every3rd, Search::Every2nd}) {
    const std::size_t size = sample_size(search, stream);
    if (size <= stream.size() / kSmall) return Search::Level1;
    if (size > most) continue;
    const bool has_room = search == Search::Every4th && size * 100 <= most * kPercentOfNext;
    return has_room ? Search::Every5th : search;
  }
  return Search::Level1;
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
                        StreamEncoders& encoders) {
  const std::size_t length = block.size() / streams, sample = std::min(length, short_bytes);
  const auto stream = [&](std::size_t s) { return block.subspan(s * length, length); };
  const auto middle = [&](std::size_t s) { return middle_of(stream(s), sample); };
  Tried tried[kMaxStreams];
  std::size_t total = 0;
  for (std::size_t s = 0; s < streams; ++s) {
    tried[s].begin(middle(s), encoders);
    total += tried[s].best;
  }
  const std::size_t more = total / streams / (skips_noise ? kPartOfFast : kPartOfSmall);
  const std::size_t more_without_search = total / streams / kPartWithoutSearch;
  const auto is_stored = [&](const Tried& t) { return skips_noise && saves_little(t.best, sample); };
  std::size_t most = streams;  // the stream that has the most bytes of those that are compressed
  for (std::size_t s = 0; s < streams; ++s) {
    if (!is_stored(tried[s]) && (most == streams || tried[s].best > tried[most].best)) most = s;
  }
  const auto needs_search = [&](const Tried& t) {
    return !is_stored(t) && std::min(t.codes, t.runs) > t.best + more_without_search;
  };
  // Where one has codes and the others repeat a byte or are stored, nothing is gained by other blocks.
  const auto none_but_codes = [&](const Tried& t) {
    return !is_stored(t) && t.runs > t.best + more_without_search;
  };
  const bool is_simple = std::none_of(tried, tried + streams, needs_search) &&
                         std::count_if(tried, tried + streams, none_but_codes) < 2;
  Bytes middles[kMaxStreams];
  for (std::size_t s = 0; s < streams; ++s) middles[s] = middle(s);
  const std::size_t plain = is_simple ? total : plain_size(std::span(middles).first(streams));
  const bool may_be_long = most != streams && needs_search(tried[most]) && length > short_bytes;
  const auto long_search = [&](std::size_t s) {
    // No more than short streams have, or than others do at this level.
    const std::size_t most_of_sample = tried[s].searches[0] * std::max(plain, total) / total;
    return find_long_search(stream(s), most_of_sample * length / sample);
  };
  StreamPlan plan;
  plan.is_made = true;
  plan.streams = streams;
  const Search of_most = may_be_long ? long_search(most) : Search::Level1;
  const bool has_long_search = of_most != Search::Level1;
  for (std::size_t s = 0; s < streams; ++s) {
    Search found = Search::Level1;
    const bool searches = needs_search(tried[s]);
    if (searches && has_long_search) found = s == most ? of_most : long_search(s);
    if (searches && found == Search::Level1) tried[s].search_on(middle(s));
    plan.of[s] = tried[s].planned(more, more_without_search);
    if (found != Search::Level1) plan.of[s] = {StreamPlan::Way::Searched, found};
    if (is_stored(tried[s])) plan.of[s].way = StreamPlan::Way::Stored;
  }
  // Codes that follow frequencies are better off with short streams.
  const bool tries_longer = may_be_long && !has_long_search &&
                            plan.of[most].way == StreamPlan::Way::Searched &&
                            plan.of[most].search != Search::Literals;
  const bool is_long =
      has_long_search || (tries_longer && gains_by_length(plan.of[most].search, stream(most), short_bytes));
  plan.layout = is_long ? Layout::Long : Layout::Short;
  plan.may_be_plain = plain < total;
  return plan;
}

StreamPlan::OfStream plan_stream(Bytes stream, std::size_t short_bytes, bool skips_noise,
                                 StreamEncoders& encoders) {
  const Bytes sample = middle_of(stream, std::min(stream.size(), short_bytes));
  Tried tried;
  tried.begin(sample, encoders);
  const std::size_t more = tried.best / (skips_noise ? kPartOfFast : kPartOfSmall);
  const std::size_t more_without_search = tried.best / kPartWithoutSearch;
  const bool is_stored = skips_noise && saves_little(tried.best, sample.size());
  const bool needs_search = std::min(tried.codes, tried.runs) > tried.best + more_without_search;
  if (!is_stored && needs_search) tried.search_on(sample);
  StreamPlan::OfStream plan = tried.planned(more, more_without_search);
  if (is_stored) plan.way = StreamPlan::Way::Stored;
  return plan;
}

std::size_t lz4_sample_size(Bytes stream) {
  return lz4_size(middle_of(stream, std::min(stream.size(), kLz4SampleBytes)));
}

bool Lz4Tries::is_due(Bytes stream, std::size_t s) noexcept {
  if (left_[s] == 0) return true;
  --left_[s];
  return !is_spread(stream) || lz4_size(middle_of(stream, kSampleBytes)) < kSampleBytes;
}

bool may_be_whole(Bytes block, std::size_t streams, std::size_t part) {
  constexpr std::size_t kPartOfSample = 16, kNoGain = 32;
  const std::size_t length = block.size() / streams;
  const std::size_t sample = std::min(length, std::max(length / kPartOfSample, kSampleBytes / 4));
  std::size_t total = 0;
  for (std::size_t s = 0; s < streams; ++s) {
    const Bytes stream = block.subspan(s * length, length);
    const std::size_t size = lz4_size(middle_of(stream, sample));
    total += size;
    if (size < sample - sample / kNoGain) continue;  // LZ4 is fast where it finds nothing
    if (lz4_size(stream) < length / 2) return true;
  }
  return total * part < sample * streams;
}

bool is_noise(Bytes stream) {
  if (stream.size() < 2 * kSampleBytes) return false;
  return saves_little(sample_size(Search::Level1, middle_of(stream, kSampleBytes)), kSampleBytes);
}

std::size_t plan_scratch_bytes(std::size_t stream) {
  return compress_bound(Compressor::Zstd, stream) + std::min(stream, kPlainZstdBytes);
}

}  // namespace cdd::blosc
