#include "core/codec/choose.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/scratch.h"
#include "core/codec/book/cast.h"
#include "core/codec/plain/raw.h"

namespace cdd {
namespace {

constexpr std::uint32_t kMostAhead = 16;
constexpr std::uint32_t kFirstInterval = 16;
constexpr std::uint32_t kLastInterval = 1024;
// RAW takes whatever comes at the same size, so what it stores tells nothing: trials look for something
// better.
constexpr std::uint32_t kFirstRawInterval = 1;
constexpr std::uint32_t kLastRawInterval = 16;
constexpr std::uint32_t kFullInterval = 256;
constexpr double kRivalCost = 1.5;     // times the winner's
constexpr double kUnlike = 1.5;        // times the share of a trial, or a part of it
constexpr std::uint32_t kFewRows = 4;  // so many times as many rows are another matter
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kReadNs = 2.0;  // a stored byte, read at 500 MB/s: a disk in a data centre
// A window, and rows before it that must be decoded too. Of a longer chunk codecs leave the other rows alone,
// while compressors make all of it.
constexpr double kWindowRows = 256;
// What a compressor makes beyond a core's own cache waits for the next: 0.15 ns a byte in all on Zen 3.
constexpr double kNearBytes = 256 << 10;
constexpr double kFarNs = 0.13;

constexpr StepCost compressor_cost(Compressor compressor) {
  switch (compressor) {
    case Compressor::Lz4:
      return {0.022, 0.73};
    case Compressor::Zstd:
      return {0.046, 3.0};
    case Compressor::None:
      break;
  }
  return {0, 0};
}

StepCost codec_cost(const Scheme& scheme) {
  for (const NamedScheme& named : scheme.codec->schemes) {
    if (named.byte_planes == scheme.byte_planes) return named.cost;
  }
  return {};
}

}  // namespace

double reading_cost(Profile profile, const Scheme& scheme, const EncodedChunk& chunk, std::size_t raw_bytes,
                    std::uint32_t n_rows) {
  if (profile == Profile::Dense) return chunk.record_bytes;
  const StepCost codec = codec_cost(scheme);
  const StepCost compressor = compressor_cost(scheme.compressor);
  const double share = std::min(1.0, kWindowRows / n_rows);
  const double made_far =
      scheme.compressor == Compressor::None ? 0 : std::max(0.0, chunk.transformed_bytes - kNearBytes);
  return chunk.record_bytes * (kReadNs + compressor.taken) + chunk.transformed_bytes * compressor.made +
         made_far * kFarNs +
         share * (chunk.transformed_bytes * codec.taken + static_cast<double>(raw_bytes) * codec.made);
}

Chooser::Chooser(const RowLayout& layout, const std::vector<Scheme>& schemes, Profile profile)
    : layout_(layout), candidates_(schemes), profile_(profile) {
  lossless_ = std::ranges::none_of(schemes, [](const Scheme& scheme) { return scheme.float16.enabled; });
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    Scheme& scheme = candidates_[i];
    scheme.smallest = profile == Profile::Dense;
    // Compressors find nothing in codes.
    scheme.coded =
        scheme.smallest && scheme.codec->id == CodecId::Levels && scheme.compressor == Compressor::None;
    const Scheme* before = i == 0 ? nullptr : &candidates_[i - 1];
    if (before != nullptr && before->codec == scheme.codec && before->byte_planes == scheme.byte_planes &&
        before->coded == scheme.coded) {
      ++families_.back().end;
    } else {
      families_.push_back({i, i + 1, scheme.codec->is_plain});
    }
  }
  for (Decision& decision : decisions_) decision.standings.resize(families_.size());
}

void Chooser::check_rows(Bytes rows, std::uint64_t n_rows) const {
  if (!lossless_) check_castable(layout_, rows, n_rows, candidates_.front().float16);
}

EncodedChunk Chooser::encode(const Chunk& chunk, std::vector<std::byte>& out) {
  if (!trial_is_due(decision(chunk.n_rows))) encode_ahead(chunk, best_);
  return take(chunk, best_, out);
}

std::uint32_t Chooser::ahead(std::uint32_t n_rows) const noexcept {
  if (is_alone()) return kMostAhead;
  const Decision& at = decision(n_rows);
  return trial_is_due(at) ? 1 : std::min(kMostAhead, at.interval - at.since_trial);
}

void Chooser::encode_ahead(const Chunk& chunk, Encoding& into) const {
  encode_by(decision(chunk.n_rows).winner, chunk, into);
  if (is_alone() || into.chunk.record_bytes != 0) store_raw_if_smaller(chunk, into);
}

bool Chooser::stands(const Chunk& chunk, const Encoding& encoded) const noexcept {
  const Decision& at = decision(chunk.n_rows);
  return encoded.asked == at.winner && !trial_is_due(at);
}

EncodedChunk Chooser::take(const Chunk& chunk, const Encoding& encoded, std::vector<std::byte>& out) {
  Decision& at = decision(chunk.n_rows);
  if (at.interval == 0) begin(at, chunk.n_rows);
  const bool due = trial_is_due(at);
  const bool unlike = !due && is_unlike(at, chunk, encoded);
  if (due || unlike) {
    const bool is_raw = candidates_[at.winner].codec == &kRawCodec;
    bool all = unlike || is_raw || at.since_full >= kFullInterval;
    try_candidates(chunk, at, all);
    if (!all && is_worse(at, chunk, best_)) try_candidates(chunk, at, all = true);
    store_raw_if_smaller(chunk, best_);
    note_trial(chunk, at, due);
    if (all) at.since_full = 0;
  }
  const Encoding& taken = due || unlike ? best_ : encoded;
  const auto record = Bytes(taken.record).first(taken.chunk.record_bytes);
  out.insert(out.end(), record.begin(), record.end());
  ++at.since_trial;
  ++at.since_full;
  last_rows_ = chunk.n_rows;
  return taken.chunk;
}

// Chunks of not quite as many rows have told which candidates are far off.
void Chooser::begin(Decision& fresh, std::uint32_t n_rows) noexcept {
  if (n_rows / kFewRows > last_rows_ || last_rows_ / kFewRows > n_rows) return;
  fresh.winner = decision(last_rows_).winner;
  fresh.since_full = decision(last_rows_).since_full;
  std::ranges::copy(decision(last_rows_).standings, fresh.standings.begin());
}

Chooser::Decision& Chooser::decision(std::uint32_t n_rows) noexcept {
  return decisions_[static_cast<std::size_t>(std::bit_width(n_rows))];
}

const Chooser::Decision& Chooser::decision(std::uint32_t n_rows) const noexcept {
  return decisions_[static_cast<std::size_t>(std::bit_width(n_rows))];
}

bool Chooser::trial_is_due(const Decision& decision) const noexcept {
  return !is_alone() && decision.since_trial >= decision.interval;
}

// Whether the chunk is none of those that the winner was chosen for.
bool Chooser::is_unlike(const Decision& decision, const Chunk& chunk,
                        const Encoding& encoded) const noexcept {
  if (is_alone()) return false;
  const double least = decision.standings[family_of(decision.winner)].least_share;
  return is_worse(decision, chunk, encoded) || kUnlike * share_of(chunk, encoded) < least;
}

bool Chooser::is_worse(const Decision& decision, const Chunk& chunk, const Encoding& encoded) const noexcept {
  const double most = decision.standings[family_of(decision.winner)].most_share;
  return encoded.chunk.record_bytes == 0 || share_of(chunk, encoded) > kUnlike * most;
}

double Chooser::share_of(const Chunk& chunk, const Encoding& encoded) noexcept {
  return encoded.chunk.record_bytes / static_cast<double>(chunk.rows.size());
}

std::size_t Chooser::family_of(std::size_t candidate) const noexcept {
  const auto has = [&](const Family& family) { return candidate < family.end; };
  return static_cast<std::size_t>(std::ranges::find_if(families_, has) - families_.begin());
}

// Encodes by the candidates [begin, end) of one family. `into` keeps the cheapest of these and of what it
// has.
Chooser::Tried Chooser::try_schemes(std::size_t begin, std::size_t end, const Chunk& chunk,
                                    std::optional<Hash128>& hash, Encoding& into) const {
  std::size_t bound = 0;
  for (std::size_t i = begin; i < end; ++i) {
    bound = std::max(bound, record_bound(layout_, chunk.n_rows, candidates_[i]));
  }
  const auto room = [&] {
    if (into.other.size() < bound + kScratchPadding) into.other.resize(bound + kScratchPadding);
    return MutableBytes(into.other).first(bound);
  };
  const MutableBytes alone = end - begin == 1 ? room() : MutableBytes();
  const Transformed transformed =
      transform_chunk(layout_, chunk.rows, chunk.n_rows, candidates_[begin], alone);
  Tried least;
  if (transformed.bytes.empty()) return least;
  if (!transformed.hash && !hash) hash = hash128(chunk.rows);
  for (std::size_t i = begin; i < end; ++i) {
    const Scheme& scheme = candidates_[i];
    const EncodedChunk made = make_record(layout_, chunk.n_rows, scheme, transformed,
                                          transformed.hash ? *transformed.hash : *hash, room());
    const double cost = reading_cost(profile_, scheme, made, chunk.rows.size(), chunk.n_rows);
    least = {std::min(least.cost, cost), std::min(least.bytes, made.record_bytes)};
    if (cost >= into.cost) continue;
    into.chunk = made;
    into.encoder = i;
    into.cost = cost;
    std::swap(into.record, into.other);
  }
  return least;
}

// No bytes where the candidate declines.
void Chooser::encode_by(std::size_t candidate, const Chunk& chunk, Encoding& into) const {
  std::optional<Hash128> hash;
  into.chunk = {};
  into.cost = kNever;
  into.asked = candidate;
  Family schemes{candidate, candidate + 1, false};
  if (profile_ == Profile::Dense) schemes = families_[family_of(candidate)];
  try_schemes(schemes.begin, schemes.end, chunk, hash, into);
}

void Chooser::store_raw_if_smaller(const Chunk& chunk, Encoding& into) const {
  Scheme raw;
  raw.codec = &kRawCodec;
  const std::size_t bytes = into.chunk.record_bytes;
  const std::size_t raw_bytes = record_bound(layout_, chunk.n_rows, raw);
  if (!lossless_ || (bytes != 0 && bytes <= raw_bytes)) return;
  into.record.resize(std::max(into.record.size(), raw_bytes + kScratchPadding));
  const MutableBytes room = MutableBytes(into.record).first(raw_bytes);
  const Transformed rows = transform_chunk(layout_, chunk.rows, chunk.n_rows, raw, room);
  into.chunk = make_record(layout_, chunk.n_rows, raw, rows, hash128(chunk.rows), room);
}

// Leaves the best in best_; no bytes where that is RAW, or all decline.
void Chooser::try_candidates(const Chunk& chunk, Decision& decision, bool all) {
  std::optional<Hash128> hash;
  std::vector<Tried> tried(families_.size(), Tried{});
  std::uint32_t bytes = Tried{}.bytes;
  bool plain_may_win = false;
  best_.chunk = {};
  best_.cost = kNever;
  best_.encoder = decision.winner;
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const auto [begin, end, plain] = families_[i];
    if (candidates_[begin].codec == &kRawCodec) continue;
    if (!all && !decision.standings[i].rival) continue;
    if (plain && best_.chunk.record_bytes != 0 && !plain_may_win) {
      plain_may_win = try_schemes(end - 1, end, chunk, hash, best_).bytes < bytes;
      if (!plain_may_win) break;
    }
    tried[i] = try_schemes(begin, end, chunk, hash, best_);
    bytes = std::min(bytes, tried[i].bytes);
  }
  for (std::size_t i = 0; all && i < families_.size(); ++i) {
    decision.standings[i].rival = tried[i].cost <= kRivalCost * best_.cost;
  }
  consider_raw(chunk);
}

// RAW's cost is known without encoding.
void Chooser::consider_raw(const Chunk& chunk) {
  const auto is_raw = [](const Scheme& scheme) { return scheme.codec == &kRawCodec; };
  const auto raw = std::ranges::find_if(candidates_, is_raw);
  if (raw == candidates_.end()) return;
  const auto bytes = static_cast<std::uint32_t>(record_bound(layout_, chunk.n_rows, *raw));
  const EncodedChunk as_raw{bytes, 0, static_cast<std::uint32_t>(chunk.rows.size()), {}};
  if (reading_cost(profile_, *raw, as_raw, chunk.rows.size(), chunk.n_rows) >= best_.cost) return;
  best_.chunk = {};
  best_.encoder = static_cast<std::size_t>(raw - candidates_.begin());
}

// What the trial that left its best in best_ decides.
void Chooser::note_trial(const Chunk& chunk, Decision& decision, bool was_due) const {
  const std::size_t family = family_of(best_.encoder);
  const bool is_raw = candidates_[best_.encoder].codec == &kRawCodec;
  const bool same =
      profile_ == Profile::Dense ? family == family_of(decision.winner) : best_.encoder == decision.winner;
  Standing& standing = decision.standings[family];
  if (decision.interval == 0) standing = {standing.rival};  // shares were those of other numbers of rows
  if (decision.interval == 0 || !same) {
    decision.interval = is_raw ? kFirstRawInterval : kFirstInterval;
  } else if (was_due) {
    decision.interval = std::min(decision.interval * 4, is_raw ? kLastRawInterval : kLastInterval);
  }
  decision.winner = best_.encoder;
  decision.since_trial = 0;
  standing.least_share = std::min(standing.least_share, share_of(chunk, best_));
  standing.most_share = std::max(standing.most_share, share_of(chunk, best_));
}

}  // namespace cdd
