// Writes an array of tiles from a stream of its bytes in row-major order: scatters what comes into planes,
// has full layers encoded by several threads meanwhile, and keeps what is there readable.
//
// Any thread may call, one at a time gets in. In a forked child every call throws Closed, but close(): that
// does nothing there. What failed in the background is thrown once, by the next call; where the disk was full
// nothing is lost, and flush() tries again; after any other failure the writer is poisoned and throws Closed.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/os/process.h"
#include "core/threads/jobs.h"
#include "core/tiles/encoder.h"
#include "core/tiles/files.h"
#include "core/tiles/journal.h"
#include "core/tiles/shard_writer.h"
#include "core/tiles/tile_codec.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {

// What survives a power cut. A killed process loses what `readable` does not count, whichever it is.
enum class Durability : std::uint8_t {
  Batch,   // all but the last second, and what was there at the last flush(); the default
  None,    // nothing is synced
  Flush,   // what was there at the last flush()
  Always,  // every layer of tiles
};

struct TileOptions {
  std::vector<Dimension> dimensions;
  DType dtype;
  std::vector<std::byte> fill;  // one item; empty: zeros
  TileCodecOptions codec;
  bool index_at_end = false;
  Durability durability = Durability::Batch;
  std::uint64_t memory_bytes = 0;      // 0: planes of 1.25 layers
  std::uint64_t memory_elsewhere = 0;  // of memory_bytes, what others take
  Json attributes = Json::object();
  bool allows_extensions = false;  // data types that are no part of zarr's own specification
};

struct TileProgress {
  std::uint64_t frames_received = 0, frames_encoded = 0, frames_readable = 0, frames_durable = 0;
  std::uint64_t received_bytes = 0, stored_bytes = 0, wasted_bytes = 0;
  std::uint64_t planes = 0, planes_in_use = 0, planes_most_in_use = 0;
  std::uint64_t stalls = 0;  // times that no planes were free
  double scatter_seconds = 0, encode_seconds = 0, commit_seconds = 0;
};

struct WriteResult {
  Bytes unconsumed;
  std::optional<ErrorCode> error;
  bool all_consumed() const noexcept { return unconsumed.empty(); }
};

// Bytes that a writer with these options takes for pixels and tables, once, and for encoding with `threads`
// threads. Throws InvalidArgument as create() does.
std::uint64_t bytes_needed(const TileOptions& options, unsigned threads);

class TileWriter {
 public:
  // A new array in `files`, of which there is none.
  static std::unique_ptr<TileWriter> create(std::unique_ptr<ArrayFiles> files, const TileOptions& options);
  // Goes on with the array that is there. Of the options, `memory_bytes`, `durability` and the codec's level
  // count; `bound` is the number of frames it may have, 0 for no other than before. Frames after the first
  // `most` are dropped.
  static std::unique_ptr<TileWriter> open(std::unique_ptr<ArrayFiles> files, const TileOptions& options,
                                          std::uint64_t bound, std::uint64_t most = ~std::uint64_t{0});
  ~TileWriter();
  TileWriter(const TileWriter&) = delete;
  TileWriter& operator=(const TileWriter&) = delete;

  // Copies what fits now. Waits for no disk, no codec and no other caller; allocates nothing, but where a
  // thread of Jobs has to be started. Bytes beyond a bounded array are never consumed: OutOfRange where there
  // is no room for any.
  WriteResult write(Bytes bytes) noexcept;
  // All of it, waiting for planes. InvalidArgument, before any byte is taken, where a bounded array has no
  // room for it.
  void append(Bytes bytes);
  // The same for bytes that begin with a frame: InvalidArgument while part of one is there.
  void append_frames(Bytes frames);
  // A layer that somebody else encoded: tiles as the codec makes them, without check, empty where all of a
  // tile is fill values. `frames` are those that count; only the last layer may have fewer than all. The
  // stream must stand between two layers.
  void put_layer(std::span<const Bytes> tiles, std::uint64_t frames);

  // Throws what failed in the background, or Closed; else nothing.
  void check();
  // Throws Closed in a forked child, before any lock that another thread of the parent may have held.
  void check_process() const;

  // Returns when everything received, but for part of a frame, is readable, and durable by `durability`.
  void flush();
  // flush(), then lets go of the array. Again: nothing. InvalidArgument where part of a frame was left over,
  // after all else was done.
  void close();
  // Lets go of it as a crash would.
  void give_up() noexcept;

  TileProgress progress() const noexcept;
  bool is_closed() const noexcept;
  bool is_inherited() const noexcept { return process_ != process_id(); }
  const Tiling& tiling() const noexcept { return tiling_; }
  const TileOptions& options() const noexcept { return options_; }
  // Bytes that a bounded array has room for.
  std::uint64_t room_bytes() const noexcept;
  // Throws InvalidArgument where part of a frame has been written and its other bytes have not.
  void check_between_frames() const;
  std::uint64_t frames_received() const noexcept { return received_bytes_.load() / tiling_.frame_bytes(); }
  // zarr.json as it would be now, were all received frames readable.
  std::string metadata() const;
  std::string name() const { return files_->name_of("zarr.json"); }
  // Frames here are made of `factor` frames each of `source`: readers are shown none before they are shown
  // those, but the last one once `source` is closed. Before the first byte.
  void follow(const TileWriter& source, unsigned factor) noexcept {
    source_ = source.shown_;
    source_factor_ = factor;
  }
  // Instead of the CPU's; before the first byte.
  void set_encoder(std::unique_ptr<TileEncoder> encoder) noexcept { encoder_ = std::move(encoder); }

 private:
  template <void (TileWriter::*work)() noexcept>
  class Task final : public Job {
   public:
    explicit Task(TileWriter& writer) : writer_(writer) {}

   private:
    void run() noexcept override { (writer_.*work)(); }
    TileWriter& writer_;
  };
  using Clock = std::chrono::steady_clock;
  // What readers are shown.
  struct Shown {
    std::atomic<std::uint64_t> frames{0};
    std::atomic<bool> is_all{false};  // there will be no more: the writer was closed
  };

  TileWriter(std::unique_ptr<ArrayFiles> files, const TileOptions& options, std::unique_ptr<Journal> journal);
  void resume(std::uint64_t readable, std::uint64_t most);  // tile_resume.cpp
  void refill(std::uint64_t layer, std::uint64_t frames);
  void check_whole(std::uint64_t total, std::uint64_t readable, std::uint64_t most) const;

  std::size_t take(Bytes bytes) noexcept;
  void append_locked(Bytes bytes);
  void store_layer(std::span<const Bytes> tiles, std::uint64_t frames);
  bool begin_slab() noexcept;
  void end_slab() noexcept;
  void start_pump() noexcept;
  void start_warming() noexcept;
  void warm_planes() noexcept;
  void pump() noexcept;
  void encode_layer(Layer& layer, bool whole);
  void note_in_journal();
  void after_layer(std::uint64_t frames, bool ends_row);
  void commit(std::uint64_t frames, bool durable, bool is_finished);
  void commit_soon() noexcept;
  void commit_late() noexcept;
  void show(std::uint64_t frames);
  bool is_held_back() const noexcept { return source_ && shown_->frames < committed_frames_; }
  void publish_metadata(std::uint64_t frames);
  void quiesce() noexcept;
  void wait_until_idle();
  void check_usable();
  void note_failure(const std::exception_ptr& error) noexcept;
  void flush_locked(bool is_finished);
  Layer& filling() noexcept { return layers_[static_cast<std::size_t>(tail_ % layers_.size())]; }

  const std::unique_ptr<ArrayFiles> files_;
  TileOptions options_;
  const Tiling tiling_;
  const TileCodec codec_;
  std::vector<std::byte> fill_;  // a plane of fill values
  Planes planes_;
  std::vector<Layer> layers_;  // a ring: [head_, tail_) are full, tail_ is being filled
  ShardWriter shards_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<TileEncoder> encoder_;
  Task<&TileWriter::pump> pump_job_;
  Task<&TileWriter::commit_late> commit_job_;
  Task<&TileWriter::warm_planes> warm_job_;
  Strand strand_;
  const std::uint64_t process_ = process_id();

  mutable std::mutex callers_;  // held by the one caller that is in
  std::uint64_t slab_ = 0, at_ = 0;
  bool has_slab_ = false;
  std::uint64_t flushed_frames_ = 0;  // that the partial layer has been stored with
  std::uint64_t put_frames_ = 0;      // of a last layer that put_layer() stored
  std::uint64_t bound_ = 0;           // frames

  mutable std::mutex state_;
  std::condition_variable changed_;
  std::uint64_t head_ = 0, tail_ = 0;
  bool is_pumping_ = false;
  std::exception_ptr failure_;  // not thrown yet
  std::string poison_;          // why every call throws Closed
  bool is_closed_ = false;

  // Of the pump, or of the caller while it is idle.
  std::vector<JournalRecord> pending_;
  Clock::time_point last_commit_ = Clock::now();
  std::uint64_t noted_frames_ = 0;      // in the journal
  std::uint64_t committed_frames_ = 0;  // for readers, too, but where is_held_back()
  std::uint64_t published_frames_ = ~std::uint64_t{0};

  const std::shared_ptr<Shown> shown_ = std::make_shared<Shown>();
  std::shared_ptr<const Shown> source_;
  unsigned source_factor_ = 1;

  std::atomic<bool> is_warming_{false};
  std::atomic<bool> is_commit_due_{false};  // commit_job_ was submitted
  std::atomic<std::uint64_t> received_bytes_{0}, encoded_frames_{0}, durable_frames_{0};
  std::atomic<std::uint64_t> stalls_{0}, scatter_ns_{0}, encode_ns_{0}, commit_ns_{0};
};

// The metadata that an array with these options has, of `frames` frames.
zarr::ArrayMetadata metadata_of(const TileOptions& options, const Tiling& tiling, const TileCodec& codec,
                                std::uint64_t frames);
// What must be equal for a journal to belong to an array.
std::uint32_t fingerprint_of(zarr::ArrayMetadata metadata);
// The options with which an array was written, but for those that leave no trace.
TileOptions options_of(const zarr::ArrayMetadata& metadata, const TileOptions& given, std::uint64_t bound);

inline constexpr const char* kMetadataKey = "zarr.json";

}  // namespace cdd::tiles
