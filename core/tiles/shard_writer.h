// The shards of one row (an index of shards along dimension 0): tiles are put behind one another in any
// order, and named by the index when it is written. Bytes that an index has named are never written over.
//
// put() runs in any number of threads; everything else while none does.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/format/zarr/shard_index.h"
#include "core/tiles/encoder.h"
#include "core/tiles/files.h"
#include "core/tiles/journal.h"
#include "core/tiles/tiling.h"

namespace cdd::tiles {

class ShardWriter final : public TileSink {
 public:
  struct Totals {
    std::uint64_t stored_bytes = 0;  // of tiles that an index names or will name
    std::uint64_t wasted_bytes = 0;  // of tiles that were stored again
  };

  ShardWriter(ArrayFiles& files, const Tiling& tiling, bool index_at_end, bool has_check);

  // The tiles that follow are of this layer, and hold its first `frames` frames.
  void begin_layer(std::uint64_t layer, std::uint64_t frames);
  void put(std::uint64_t tile, std::span<const Bytes> parts) override;
  void put_fill(std::uint64_t tile) override;

  // Records of what was put since the last call.
  std::vector<JournalRecord> take_records();

  // Makes the bytes of all tiles durable.
  void sync();
  // Writes the indexes of shards that changed: where they stand at the end only if the row is finished, for
  // now or for good.
  void write_indexes(bool is_finished);
  // After the sync that follows: gives shards that went on in copies their names. With the index at the end
  // readers may look at all of them from now on, so that who goes on does it in copies.
  void show_finished();
  // Lets go of the row's files.
  void leave_row() { begin_row(row_ + 1); }

  Totals totals() const noexcept { return {stored_bytes_.load(), wasted_bytes_.load()}; }
  std::uint64_t row() const noexcept { return row_; }

  // For taking up a row that is there. Without a file there is no entry. Copies that another writer went on
  // in count only where a journal names what is in them; else they are removed. `is_shown`: readers see
  // frames of this row.
  void open_row(std::uint64_t row, bool has_journal, bool is_shown);
  std::uint64_t file_bytes(std::uint64_t shard) const;
  std::vector<std::byte> read(std::uint64_t shard, std::uint64_t offset, std::uint64_t bytes) const;
  // What readers find, which is not the copy that a shard goes on in; no entries where its check does not
  // hold.
  struct ShownIndex {
    bool has_file = false;
    std::vector<zarr::ShardEntry> entries;
  };
  ShownIndex shown_index(std::uint64_t shard) const;
  // Names a tile, without a record.
  void adopt(std::uint64_t layer, std::uint64_t tile, const zarr::ShardEntry& entry);
  zarr::ShardEntry entry(std::uint64_t layer, std::uint64_t tile);

 private:
  struct Shard {
    std::mutex opening;
    std::unique_ptr<ArrayFile> file;  // null: not there yet
    std::vector<zarr::ShardEntry> entries;
    std::atomic<std::uint64_t> end{0};
    std::atomic<bool> is_unsynced{false}, index_changed{false};
    // With the index at the end: readers see the file as it is, so that it goes on in a copy; `file` is one,
    // of nothing where no shard was there.
    bool is_shown = false, is_copy = false;
  };

  Shard& opened(std::uint64_t shard);
  void go_on_in_copy(std::uint64_t shard);
  void remove_if_there(const std::string& key);
  std::vector<zarr::ShardEntry> read_index(const ArrayFile& file) const;
  zarr::ShardEntry& entry_of(Shard& shard, std::uint64_t layer, std::uint64_t tile) const;
  void record(std::uint64_t tile, const zarr::ShardEntry& entry, std::uint32_t check);
  std::vector<std::byte> index_of(const Shard& shard) const;
  std::uint64_t index_bytes() const noexcept;
  std::uint64_t first_tile_offset() const noexcept;
  void begin_row(std::uint64_t row);

  ArrayFiles& files_;
  const Tiling& tiling_;
  const bool index_at_end_, has_check_;
  std::vector<Tiling::Place> places_;
  std::vector<Shard> shards_;
  std::uint64_t row_ = 0, layer_ = 0, frames_ = 0;
  bool is_row_shown_ = false;
  std::atomic<std::uint64_t> stored_bytes_{0}, wasted_bytes_{0};
  std::mutex records_mutex_;
  std::vector<JournalRecord> records_;
};

}  // namespace cdd::tiles
