#include "core/codec/choose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/scratch.h"
#include "core/codec/book_cast.h"
#include "core/codec/raw.h"

namespace cdd {
namespace {

constexpr std::uint32_t kFirstInterval = 16;
constexpr std::uint32_t kLastInterval = 1024;
constexpr std::uint32_t kFullInterval = 256;
constexpr double kRivalCost = 1.5;  // times the winner's
constexpr double kDrift = 0.2;
constexpr double kSmoothing = 1.0 / 8;
constexpr double kReadNs = 4.0;  // a stored byte, read at 250 MB/s: a disk in a data centre

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

struct Chooser::Chunk {
  Bytes rows;
  std::uint32_t n_rows;
  ChunkPlace place;
};

double reading_cost(Profile profile, const ChunkPlan& plan, const EncodedChunk& chunk,
                    std::size_t raw_bytes) {
  if (profile == Profile::Dense) return chunk.record_bytes;
  const StepCost codec = codec_cost(plan);
  const StepCost compressor = compressor_cost(plan.compressor);
  return chunk.record_bytes * (kReadNs + compressor.taken) +
         chunk.transformed_bytes * (compressor.made + codec.taken) +
         static_cast<double>(raw_bytes) * codec.made;
}

Chooser::Chooser(const RowLayout& layout, std::vector<ChunkPlan> plans, Profile profile)
    : layout_(layout), profile_(profile), since_full_(kFullInterval) {
  lossless_ = std::ranges::none_of(plans, [](const ChunkPlan& plan) { return plan.float16.enabled; });
  for (const ChunkPlan& plan : plans) candidates_.push_back({plan});
}

void Chooser::check_rows(Bytes rows, std::uint64_t n_rows) const {
  if (!lossless_) check_castable(layout_, rows, n_rows, candidates_.front().plan.float16);
}

EncodedChunk Chooser::encode(Bytes rows, std::uint32_t n_rows, const ChunkPlace& place,
                             std::vector<std::byte>& out) {
  const Chunk chunk{rows, n_rows, place};
  bool trial = trial_is_due();
  EncodedChunk best = trial ? try_candidates(chunk) : encode_as(candidates_[winner_].plan, chunk, record_);
  if (!trial && best.record_bytes == 0 && candidates_.size() > 1) {  // the winner declined
    trial = true;
    since_full_ = kFullInterval;
    best = try_candidates(chunk);
  }
  ChunkPlan raw;
  raw.codec = &kRawCodec;
  if (lossless_ && (best.record_bytes == 0 || best.record_bytes > record_bound(layout_, n_rows, raw))) {
    best = encode_as(raw, chunk, record_);
  }
  note_share(static_cast<double>(best.record_bytes) / static_cast<double>(rows.size()), trial);
  const auto record = Bytes(record_).first(best.record_bytes);
  out.insert(out.end(), record.begin(), record.end());
  return best;
}

EncodedChunk Chooser::encode_as(const ChunkPlan& plan, const Chunk& chunk,
                                std::vector<std::byte>& into) const {
  const std::size_t bound = record_bound(layout_, chunk.n_rows, plan);
  if (into.size() < bound + kScratchPadding) into.resize(bound + kScratchPadding);
  return encode_chunk(layout_, chunk.rows, chunk.n_rows, plan, chunk.place, MutableBytes(into).first(bound));
}

EncodedChunk Chooser::try_candidates(const Chunk& chunk) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool all = since_full_ >= kFullInterval;
  EncodedChunk best;
  double best_cost = kNever;
  std::size_t winner = winner_;
  std::vector<double> costs(candidates_.size(), kNever);
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const ChunkPlan& plan = candidates_[i].plan;
    if (!all && !candidates_[i].rival) continue;
    const EncodedChunk tried = encode_as(plan, chunk, rival_);
    if (tried.record_bytes == 0) continue;
    costs[i] = reading_cost(profile_, plan, tried, chunk.rows.size());
    if (costs[i] >= best_cost) continue;
    best = tried;
    best_cost = costs[i];
    winner = i;
    std::swap(record_, rival_);
  }
  for (std::size_t i = 0; all && i < candidates_.size(); ++i) {
    candidates_[i].rival = costs[i] <= kRivalCost * best_cost;
  }
  const bool stable = winner == winner_ && since_trial_ >= interval_ && interval_ != 0;
  interval_ = stable ? std::min(interval_ * 4, kLastInterval) : kFirstInterval;
  since_trial_ = 0;
  if (all) since_full_ = 0;
  winner_ = winner;
  return best;
}

bool Chooser::trial_is_due() const {
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
