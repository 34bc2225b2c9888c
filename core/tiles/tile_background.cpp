// What a writer does in the background: full layers are encoded, noted in the journal, shown to readers.
#include <algorithm>
#include <utility>

#include "core/threads/for_each.h"
#include "core/tiles/failures.h"
#include "core/tiles/tile_writer.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;
using namespace std::chrono_literals;

constexpr auto kCommitEvery = 1s;
constexpr auto kCommitIdleEvery = 100ms;  // where no full layer waits

}  // namespace

void TileWriter::start_pump() noexcept {
  {
    const std::lock_guard lock(state_);
    if (is_pumping_ || head_ == tail_ || failure_ || !poison_.empty() || is_closed_) return;
    is_pumping_ = true;
  }
  Jobs::shared().submit(pump_job_, strand_);
}

// A layer at a time, and behind the jobs of others, so that a busy writer keeps nobody waiting.
void TileWriter::pump() noexcept {
  U64 number = 0;
  bool is_over = false;
  {
    const std::lock_guard lock(state_);
    is_over = head_ == tail_ || failure_ || !poison_.empty() || is_closed_;
    if (is_over) is_pumping_ = false;
    number = head_;
  }
  if (is_over) return planes_.wake();
  try {
    encode_layer(layers_[static_cast<std::size_t>(number % layers_.size())], true);
    const bool ends_row = (number + 1) % tiling_.shard_layers() == 0;
    encoded_frames_ = (number + 1) * tiling_.layer_frames();
    after_layer(encoded_frames_, ends_row);
    const std::lock_guard lock(state_);
    ++head_;
  } catch (...) {
    note_failure(std::current_exception());
  }
  planes_.wake();
  Jobs::shared().submit(pump_job_, strand_);
}

// While the first layer comes there is nothing to encode, and the caller waits for its memory most of the
// time.
void TileWriter::start_warming() noexcept {
  if (planes_.can_warm() && threads() > 1 && !is_warming_.exchange(true)) {
    Jobs::shared().submit(warm_job_, strand_);
  }
}

void TileWriter::warm_planes() noexcept {
  while (planes_.warm_some()) {
  }
  is_warming_ = false;
  start_warming();  // for planes that were taken in between
}

void TileWriter::encode_layer(Layer& layer, bool whole) {
  const Stopwatch watch(encode_ns_);
  shards_.begin_layer(layer.number(), layer.frames());
  encoder_->encode(layer, whole, shards_);
}

// What shards have taken since the last call, and what the journal could not take then.
void TileWriter::note_in_journal() {
  const std::vector<JournalRecord> records = shards_.take_records();
  pending_.insert(pending_.end(), records.begin(), records.end());
  journal_->append(pending_);
  pending_.clear();
}

void TileWriter::after_layer(U64 frames, bool ends_row) {
  note_in_journal();
  noted_frames_ = frames;
  const auto since = Clock::now() - last_commit_;
  const bool is_last = [&] {
    const std::lock_guard lock(state_);
    return tail_ - head_ <= 1;
  }();
  const bool always = options_.durability == Durability::Always;
  if (!always && !ends_row && since < kCommitEvery && (!is_last || since < kCommitIdleEvery)) {
    if (is_last) commit_soon();  // nobody else may come by
    return;
  }
  // A row that is finished leaves the journal, so that it must be there whatever comes.
  const bool durable = always || options_.durability == Durability::Batch ||
                       (ends_row && options_.durability != Durability::None);
  commit(frames, durable, ends_row);
  if (is_held_back()) commit_soon();
  if (!ends_row) return;
  if (!is_held_back()) journal_->clear();  // which alone knows of frames that readers are not shown yet
  shards_.leave_row();
}

void TileWriter::commit_soon() noexcept {
  const bool looks_again = is_held_back();
  if ((noted_frames_ <= committed_frames_ && !looks_again) || is_commit_due_.exchange(true)) return;
  const auto since = looks_again ? Clock::now() : last_commit_;
  Jobs::shared().submit_later(commit_job_, strand_, since + kCommitIdleEvery);
}

void TileWriter::commit_late() noexcept {
  is_commit_due_ = false;
  {
    const std::lock_guard lock(state_);
    if (failure_ || !poison_.empty() || is_closed_) return;
  }
  try {
    const bool durable =
        options_.durability == Durability::Always || options_.durability == Durability::Batch;
    if (noted_frames_ > committed_frames_) {
      commit(noted_frames_, durable, false);
    } else if (is_held_back()) {
      show(committed_frames_);
    }
    if (is_held_back()) commit_soon();
  } catch (...) {
    note_failure(std::current_exception());
  }
}

// Order matters: bytes, then the journal that names them, then what readers look at. Where the index stands
// at the end, readers are not told of shards that are not finished.
void TileWriter::commit(U64 frames, bool durable, bool is_finished) {
  const Stopwatch watch(commit_ns_);
  if (durable) {
    synced([&] { shards_.sync(); });
    synced([&] { journal_->sync(); });
    // After the sync: it must never be there without what it vouches for. Without it that is read again.
    const JournalRecord checkpoint{JournalRecord::kCheckpoint, frames, 0, 0, 0};
    journal_->append(std::span<const JournalRecord>(&checkpoint, 1));
    durable_frames_ = frames;
  }
  shards_.write_indexes(is_finished);
  if (durable && is_finished) synced([&] { shards_.sync(); });
  if (is_finished) shards_.show_finished();
  if (!options_.index_at_end || is_finished) {
    show(frames);
  }
  committed_frames_ = frames;
  last_commit_ = Clock::now();
}

// As many as those are shown that they are made of: what is made of more would be dropped after a kill.
void TileWriter::show(U64 frames) {
  if (source_ && !source_->is_all) frames = std::min(frames, source_->frames / source_factor_);
  publish_metadata(frames);
  shown_->frames = frames;
}

void TileWriter::publish_metadata(U64 frames) {
  if (frames == published_frames_) return;
  const std::string text = metadata_of(options_, tiling_, codec_, frames).dump();
  files_->publish(kMetadataKey, {as_bytes(text.data()), text.size()});
  published_frames_ = frames;
}

std::string TileWriter::metadata() const {
  return metadata_of(options_, tiling_, codec_, frames_received()).dump();
}

TileProgress TileWriter::progress() const noexcept {
  TileProgress out;
  out.received_bytes = received_bytes_;
  out.frames_received = out.received_bytes / tiling_.frame_bytes();
  out.frames_encoded = encoded_frames_;
  out.frames_readable = shown_->frames;
  out.frames_durable = durable_frames_;
  const ShardWriter::Totals totals = shards_.totals();
  out.stored_bytes = totals.stored_bytes;
  out.wasted_bytes = totals.wasted_bytes;
  out.planes = planes_.count();
  out.planes_in_use = planes_.in_use();
  out.planes_most_in_use = planes_.most_in_use();
  out.stalls = stalls_;
  out.scatter_seconds = static_cast<double>(scatter_ns_.load()) * 1e-9;
  out.encode_seconds = static_cast<double>(encode_ns_.load()) * 1e-9;
  out.commit_seconds = static_cast<double>(commit_ns_.load()) * 1e-9;
  return out;
}

}  // namespace cdd::tiles
