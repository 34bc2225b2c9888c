#include "core/tiles/tile_writer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/simd/crc32c.h"
#include "core/threads/for_each.h"
#include "core/tiles/failures.h"

namespace cdd::tiles {
namespace {

using U64 = std::uint64_t;

std::vector<std::byte> fill_plane(const Tiling& tiling, Bytes item) {
  std::vector<std::byte> plane(static_cast<std::size_t>(tiling.plane_stride()));
  for (std::size_t i = 0; !item.empty() && i + item.size() <= plane.size(); i += item.size()) {
    std::copy(item.begin(), item.end(), plane.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return plane;
}

}  // namespace

TileWriter::TileWriter(std::unique_ptr<ArrayFiles> files, const TileOptions& options,
                       std::unique_ptr<Journal> journal)
    : files_(std::move(files)),
      options_(options),
      tiling_(Tiling::make(options.dimensions, options.dtype.item_bytes())),
      codec_(TileCodec::named(options.codec, tiling_.item_bytes(), tiling_.tile_bytes())),
      fill_(fill_plane(tiling_, options.fill)),
      planes_(
          MemoryPlan::make(tiling_, codec_, options.memory_bytes, threads(), options.memory_elsewhere).planes,
          static_cast<std::size_t>(tiling_.plane_stride()),
          static_cast<std::size_t>(tiling_.layer_tiles() * tiling_.layer_slabs())),
      shards_(*files_, tiling_, options.index_at_end, codec_.coding().has_check),
      journal_(std::move(journal)),
      encoder_(std::make_unique<CpuEncoder>(codec_)),
      pump_job_(*this),
      commit_job_(*this),
      warm_job_(*this),
      bound_(options.dimensions[0].size) {
  const MemoryPlan plan =
      MemoryPlan::make(tiling_, codec_, options.memory_bytes, threads(), options.memory_elsewhere);
  layers_.reserve(plan.layers);
  for (std::size_t i = 0; i < plan.layers; ++i) layers_.emplace_back(tiling_, planes_, fill_.data());
}

std::unique_ptr<TileWriter> TileWriter::create(std::unique_ptr<ArrayFiles> files,
                                               const TileOptions& options) {
  auto journal = std::make_unique<Journal>(*files);
  std::unique_ptr<TileWriter> writer(new TileWriter(std::move(files), options, std::move(journal)));
  const zarr::ArrayMetadata metadata = metadata_of(options, writer->tiling_, writer->codec_, 0);
  writer->journal_->begin(writer->bound_, 0, fingerprint_of(metadata));
  writer->publish_metadata(0);
  return writer;
}

TileWriter::~TileWriter() { give_up(); }

// ---------------------------------------------------------------- what the caller does

U64 TileWriter::room_bytes() const noexcept {
  if (bound_ == 0) return ~U64{0};
  return bound_ * tiling_.frame_bytes() - received_bytes_.load(std::memory_order_relaxed);
}

bool TileWriter::begin_slab() noexcept {
  if (slab_ == 0) {
    const std::lock_guard lock(state_);
    if (tail_ - head_ + 1 > layers_.size()) return false;
  }
  Layer& layer = filling();
  if (slab_ == 0) layer.begin(tail_);
  has_slab_ = layer.take_slab(slab_);
  start_warming();
  return has_slab_;
}

void TileWriter::end_slab() noexcept {
  at_ = 0;
  has_slab_ = false;
  if (++slab_ < tiling_.layer_slabs()) return;
  slab_ = 0;
  flushed_frames_ = 0;
  filling().set_frames(tiling_.layer_frames());
  {
    const std::lock_guard lock(state_);
    ++tail_;
  }
  start_pump();
}

// As many of the bytes as there is room for.
std::size_t TileWriter::take(Bytes bytes) noexcept {
  const Stopwatch watch(scatter_ns_);
  bytes = bytes.first(static_cast<std::size_t>(std::min<U64>(bytes.size(), room_bytes())));
  std::size_t done = 0;
  while (done < bytes.size()) {
    if (!has_slab_ && !begin_slab()) {
      ++stalls_;
      break;
    }
    const auto n = static_cast<std::size_t>(std::min<U64>(tiling_.slab_bytes() - at_, bytes.size() - done));
    scatter(tiling_, at_, bytes.subspan(done, n), filling().slab(slab_));
    at_ += n;
    done += n;
    received_bytes_ += n;
    if (at_ == tiling_.slab_bytes()) end_slab();
  }
  return done;
}

WriteResult TileWriter::write(Bytes bytes) noexcept {
  if (is_inherited()) return {bytes, ErrorCode::Closed};
  const std::unique_lock lock(callers_, std::try_to_lock);
  if (!lock) return {bytes, std::nullopt};
  {
    const std::lock_guard state(state_);
    if (is_closed_ || !poison_.empty()) return {bytes, ErrorCode::Closed};
    if (failure_) return {bytes, ErrorCode::Io};
  }
  if (!bytes.empty() && room_bytes() == 0) return {bytes, ErrorCode::OutOfRange};
  bytes = bytes.subspan(take(bytes));
  if (!bytes.empty()) start_pump();  // which a failure may have stopped, that was told since
  return {bytes, std::nullopt};
}

void TileWriter::check_between_frames() const {
  const U64 frame = tiling_.frame_bytes(), part = received_bytes_.load(std::memory_order_relaxed) % frame;
  if (part == 0) return;
  fail(ErrorCode::InvalidArgument,
       "write() has taken %llu bytes of a frame of %llu: its other %llu come first",
       static_cast<unsigned long long>(part), static_cast<unsigned long long>(frame),
       static_cast<unsigned long long>(frame - part));
}

void TileWriter::append(Bytes bytes) {
  check_process();
  const std::lock_guard lock(callers_);
  check_usable();
  append_locked(bytes);
}

void TileWriter::append_frames(Bytes frames) {
  check_process();
  const std::lock_guard lock(callers_);
  check_usable();
  check_between_frames();
  append_locked(frames);
}

void TileWriter::append_locked(Bytes bytes) {
  if (bytes.size() > room_bytes()) {
    const U64 frame = tiling_.frame_bytes(), rest = bytes.size() % frame | room_bytes() % frame;
    const U64 unit = rest == 0 ? frame : 1;
    fail(ErrorCode::InvalidArgument, "%llu %s for an array of %llu frames, which has room for %llu",
         static_cast<unsigned long long>(bytes.size() / unit), rest == 0 ? "frames" : "bytes",
         static_cast<unsigned long long>(bound_), static_cast<unsigned long long>(room_bytes() / unit));
  }
  for (;;) {
    const U64 news = planes_.news();
    bytes = bytes.subspan(take(bytes));
    if (bytes.empty()) return;
    check_usable();
    start_pump();
    const bool has_layer = slab_ != 0 || has_slab_ || [&] {
      const std::lock_guard state(state_);
      return tail_ - head_ + 1 <= layers_.size();
    }();
    // Without a free layer it is the end of one that is awaited, which is news.
    planes_.wait(has_layer ? static_cast<std::size_t>(tiling_.layer_tiles()) : planes_.count() + 1, news);
  }
}

void TileWriter::put_layer(std::span<const Bytes> tiles, U64 frames) {
  check_process();
  const std::lock_guard lock(callers_);
  check_usable();
  if (slab_ != 0 || has_slab_) fail(ErrorCode::InvalidArgument, "a layer was begun by bytes of its frames");
  const U64 most = std::min(tiling_.layer_frames(), room_bytes() / tiling_.frame_bytes());
  if (tiles.size() != tiling_.layer_tiles() || frames == 0 || frames > most) {
    fail(ErrorCode::InvalidArgument,
         "%zu tiles and %llu frames, expected are %llu tiles and 1 to %llu frames", tiles.size(),
         static_cast<unsigned long long>(frames), static_cast<unsigned long long>(tiling_.layer_tiles()),
         static_cast<unsigned long long>(most));
  }
  wait_until_idle();
  try {
    store_layer(tiles, frames);
  } catch (...) {
    commit_soon();  // the layers before it
    throw;
  }
}

void TileWriter::store_layer(std::span<const Bytes> tiles, U64 frames) {
  const bool whole = frames == tiling_.layer_frames();
  shards_.begin_layer(tail_, frames);
  for_each(tiles.size(), [&](std::size_t i) {
    if (tiles[i].empty()) {
      shards_.put_fill(i);
    } else {
      shards_.put(i, std::span<const Bytes>(&tiles[i], 1));
    }
  });
  const bool ends_row = whole && (tail_ + 1) % tiling_.shard_layers() == 0;
  const U64 total = tail_ * tiling_.layer_frames() + frames;
  after_layer(total, ends_row);
  encoded_frames_ = total;
  received_bytes_ += frames * tiling_.frame_bytes();
  if (!whole) {  // that was the last one
    bound_ = total;
    put_frames_ = frames;
  }
  const std::lock_guard state(state_);
  if (whole) head_ = ++tail_;
}

void TileWriter::check() {
  check_process();
  const std::lock_guard lock(callers_);
  check_usable();
}

void TileWriter::check_process() const {
  if (is_inherited()) fail(ErrorCode::Closed, "the writer belongs to another process");
}

void TileWriter::check_usable() {
  std::unique_lock lock(state_);
  if (is_closed_) fail(ErrorCode::Closed, "the writer is closed");
  if (failure_) {
    const std::exception_ptr error = std::exchange(failure_, nullptr);
    lock.unlock();
    std::rethrow_exception(error);
  }
  if (!poison_.empty()) {
    fail(ErrorCode::Closed, "the writer is of no use since this failed: %s", poison_.c_str());
  }
}

void TileWriter::note_failure(const std::exception_ptr& error) noexcept {
  const Failure failure = looked_at(error);
  const std::lock_guard lock(state_);
  failure_ = failure.error;
  if (failure.poisons) poison_ = text_of(failure.error);
}

// Returns when nothing happens in the background, and nothing will before the next call.
void TileWriter::quiesce() noexcept {
  Jobs& jobs = Jobs::shared();
  do {  // one that runs may submit itself again
    jobs.wait_until_idle(strand_);
  } while (is_commit_due_ && !jobs.take_back(commit_job_));
  is_commit_due_ = false;
}

void TileWriter::wait_until_idle() {
  start_pump();
  quiesce();
  check_usable();
}

void TileWriter::flush() {
  check_process();
  const std::lock_guard lock(callers_);
  check_usable();
  flush_locked(false);
}

void TileWriter::flush_locked(bool is_finished) {
  wait_until_idle();
  try {
    const U64 frames = slab_ * tiling_.slab_frames() + at_ / tiling_.frame_bytes();
    if (frames != flushed_frames_) {
      Layer& layer = filling();
      if (has_slab_) fill_rest(tiling_, at_, fill_.data(), layer.slab(slab_));
      layer.set_frames(frames);
      encode_layer(layer, false);
      note_in_journal();
      flushed_frames_ = frames;
    }
    encoded_frames_ = tail_ * tiling_.layer_frames() + std::max(frames, put_frames_);
    commit(encoded_frames_, options_.durability != Durability::None, is_finished);
    if (!is_finished) commit_soon();
  } catch (...) {
    note_failure(std::current_exception());
  }
  check_usable();
}

void TileWriter::close() {
  if (is_inherited()) return;
  const std::lock_guard lock(callers_);
  {
    const std::lock_guard state(state_);
    if (is_closed_) return;
  }
  check_usable();
  flush_locked(true);
  const U64 rest = at_ % tiling_.frame_bytes();
  try {
    journal_->remove(*files_);  // first: where that fails, frames may follow in the row
    shards_.leave_row();
  } catch (...) {
    note_failure(std::current_exception());
  }
  check_usable();
  {
    const std::lock_guard state(state_);
    is_closed_ = true;
  }
  shown_->is_all = true;
  if (rest != 0) {
    fail(ErrorCode::InvalidArgument,
         "%llu bytes are no whole frame of %llu: the %llu frames before them are kept, the bytes are not",
         static_cast<unsigned long long>(rest), static_cast<unsigned long long>(tiling_.frame_bytes()),
         static_cast<unsigned long long>(frames_received()));
  }
}

void TileWriter::give_up() noexcept {
  if (is_inherited()) return;
  const std::lock_guard lock(callers_);
  {
    const std::lock_guard state(state_);
    if (is_closed_) return;
    is_closed_ = true;
  }
  quiesce();
  journal_.reset();
}

bool TileWriter::is_closed() const noexcept {
  if (is_inherited()) return true;
  const std::lock_guard lock(state_);
  return is_closed_;
}

}  // namespace cdd::tiles
