#include "core/codec/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/scratch.h"
#include "core/codec/book/cast.h"
#include "core/codec/plain/raw.h"

namespace cdd {
namespace {

constexpr std::uint32_t kGroupChunks = 16;
constexpr std::uint32_t kFirstInterval = kGroupChunks;
constexpr std::uint32_t kLastInterval = 1024;
constexpr std::uint32_t kFullInterval = 256;
constexpr double kRivalCost = 1.5;  // times the winner's
constexpr double kDrift = 0.2;
constexpr double kSmoothing = 1.0 / 8;
constexpr double kReadNs = 4.0;  // a stored byte, read at 250 MB/s: a disk in a data centre
// A window, and rows before it that must be decoded too. Of a longer chunk codecs leave the other rows alone,
// while compressors make all of it.
constexpr double kWindowRows = 256;

// Time of one decoding step: ns for each byte it makes and for each byte it takes. benchmarks/calibrate.cpp
// fits them to whole-chunk reads of real arrays; these are a Zen 4 core's. Only their proportions matter.
struct StepCost {
  double made;
  double taken;
};

constexpr StepCost compressor_cost(Compressor compressor) {
  switch (compressor) {
    case Compressor::Lz4:
      return {0.02, 0.47};
    case Compressor::Zstd:
      return {0.037, 2.1};
    case Compressor::None:
      break;
  }
  return {0, 0};
}

constexpr StepCost codec_cost(const ChunkPlan& plan) {
  switch (plan.codec->id) {
    case CodecId::Levels:
      return {0.036, 0.44};
    case CodecId::Numeric:
      return {0.08, 1.3};
    case CodecId::OkxObF16:
    case CodecId::OkxObF32:
    case CodecId::GenericOb:
      return {0.03, 0};
    case CodecId::Raw:
      return {0.02, 0};
    case CodecId::Bytes:
      break;
  }
  return {plan.byte_planes ? 0.03 : 0, 0};  // plain rows decompress straight into place
}

}  // namespace

double reading_cost(Profile profile, const ChunkPlan& plan, const EncodedChunk& chunk, std::size_t raw_bytes,
                    std::uint32_t n_rows) {
  if (profile == Profile::Dense) return chunk.record_bytes;
  const StepCost codec = codec_cost(plan);
  const StepCost compressor = compressor_cost(plan.compressor);
  const double share = std::min(1.0, kWindowRows / n_rows);
  return chunk.record_bytes * (kReadNs + compressor.taken) + chunk.transformed_bytes * compressor.made +
         share * (chunk.transformed_bytes * codec.taken + static_cast<double>(raw_bytes) * codec.made);
}

Chooser::Chooser(const RowLayout& layout, std::vector<ChunkPlan> plans, Profile profile)
    : layout_(layout), profile_(profile), since_full_(kFullInterval) {
  lossless_ = std::ranges::none_of(plans, [](const ChunkPlan& plan) { return plan.float16.enabled; });
  for (const ChunkPlan& plan : plans) {
    candidates_.push_back({plan});
    candidates_.back().plan.smallest = profile == Profile::Dense;
  }
}

void Chooser::check_rows(Bytes rows, std::uint64_t n_rows) const {
  if (!lossless_) check_castable(layout_, rows, n_rows, candidates_.front().plan.float16);
}

EncodedChunk Chooser::encode(const Chunk& chunk, std::vector<std::byte>& out) {
  if (!trial_is_due()) encode_ahead(chunk, best_);
  return take(chunk, best_, out);
}

std::uint32_t Chooser::ahead() const noexcept { return trial_is_due() ? 1 : kGroupChunks - in_group_; }

void Chooser::encode_ahead(const Chunk& chunk, Encoding& into) const {
  encode_as(candidates_[group_winner_].plan, chunk, into);
  if (candidates_.size() == 1 || into.chunk.record_bytes != 0) store_raw_if_smaller(chunk, into);
}

EncodedChunk Chooser::take(const Chunk& chunk, const Encoding& encoded, std::vector<std::byte>& out) {
  const bool due = trial_is_due();
  const bool declined = !due && encoded.chunk.record_bytes == 0;
  if (declined) since_full_ = kFullInterval;
  if (due || declined) {
    try_candidates(chunk);
    store_raw_if_smaller(chunk, best_);
  }
  const Encoding& taken = due || declined ? best_ : encoded;
  const auto record = Bytes(taken.record).first(taken.chunk.record_bytes);
  out.insert(out.end(), record.begin(), record.end());
  note_share(static_cast<double>(record.size()) / static_cast<double>(chunk.rows.size()), due || declined);
  if (due) group_winner_ = winner_;
  in_group_ = (in_group_ + 1) % kGroupChunks;
  if (in_group_ == 0) group_winner_ = winner_;
  return taken.chunk;
}

void Chooser::encode_as(const ChunkPlan& plan, const Chunk& chunk, Encoding& into) const {
  const std::size_t bound = record_bound(layout_, chunk.n_rows, plan);
  if (into.record.size() < bound + kScratchPadding) into.record.resize(bound + kScratchPadding);
  into.chunk = {};
  into.chunk = encode_chunk(layout_, chunk.rows, chunk.n_rows, plan, chunk.place,
                            MutableBytes(into.record).first(bound));
}

void Chooser::store_raw_if_smaller(const Chunk& chunk, Encoding& into) const {
  ChunkPlan raw;
  raw.codec = &kRawCodec;
  const std::size_t bytes = into.chunk.record_bytes;
  if (lossless_ && (bytes == 0 || bytes > record_bound(layout_, chunk.n_rows, raw)))
    encode_as(raw, chunk, into);
}

// Leaves the best in best_; no bytes when all decline.
void Chooser::try_candidates(const Chunk& chunk) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool all = since_full_ >= kFullInterval;
  double best_cost = kNever;
  std::size_t winner = winner_;
  std::vector<double> costs(candidates_.size(), kNever);
  best_.chunk = {};
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const ChunkPlan& plan = candidates_[i].plan;
    if (!all && !candidates_[i].rival) continue;
    encode_as(plan, chunk, rival_);
    if (rival_.chunk.record_bytes == 0) continue;
    costs[i] = reading_cost(profile_, plan, rival_.chunk, chunk.rows.size(), chunk.n_rows);
    if (costs[i] >= best_cost) continue;
    best_cost = costs[i];
    winner = i;
    std::swap(best_, rival_);
  }
  for (std::size_t i = 0; all && i < candidates_.size(); ++i) {
    candidates_[i].rival = costs[i] <= kRivalCost * best_cost;
  }
  const bool stable = winner == winner_ && since_trial_ >= interval_ && interval_ != 0;
  interval_ = stable ? std::min(interval_ * 4, kLastInterval) : kFirstInterval;
  since_trial_ = 0;
  if (all) since_full_ = 0;
  winner_ = winner;
}

bool Chooser::trial_is_due() const noexcept {
  if (in_group_ != 0) return false;
  const bool drifted = std::fabs(recent_share_ - settled_share_) > kDrift * settled_share_;
  return since_trial_ >= (drifted ? std::min(interval_, kFirstInterval) : interval_);
}

void Chooser::note_share(double share, bool after_trial) {
  recent_share_ = recent_share_ == 0 ? share : recent_share_ + kSmoothing * (share - recent_share_);
  if (after_trial) settled_share_ = recent_share_;
  ++since_trial_;
  ++since_full_;
}

}  // namespace cdd
