// The writer's half of the index: records and their slots to disk in the order that survives a crash,
// commits, clean close, and recovery of what a dead writer left. Protocol: docs/formats/cdd.md, "Writing" and
// "Recovery".
//
// One thread at a time. After an exception from append() the file is as before it, or is_poisoned().
#pragma once

#include <cstdint>
#include <vector>

#include "core/format/cdd/metadata.h"
#include "core/storage/storage.h"
#include "core/store/index/index_layout.h"

namespace cdd {

class BlockWalk;

// One encoded chunk of an append, its record at `record_offset` of the bytes handed over with it.
struct PendingChunk {
  std::uint64_t record_offset = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t record_check = 0;
  std::uint32_t n_rows = 0;
};

class IndexWriter {
 public:
  // Starts an empty index: writes the first block at `first_block` and a clean-close slot, unsynced.
  static IndexWriter create(WritableStorage& storage, const Metadata& metadata, std::uint64_t first_block);

  // Takes over an existing file whose lock is held: keeps every committed chunk and whatever whole appends
  // survived, proves them by a clean-close slot, removes the rest, syncs. Idempotent. Throws Truncated,
  // Unsupported or Io. Truncated, too, where fewer than `least_rows` rows would be left: then the file is as
  // it was.
  static IndexWriter recover(WritableStorage& storage, const Metadata& metadata, std::uint64_t first_block,
                             std::uint64_t least_rows = 0);

  // Writes the records, then their slots. `last` marks the end of one append: only then do readers see it.
  // `records` holds each chunk's record at its record_offset, which are multiples of kRecordAlignment.
  void append(Bytes records, const std::vector<PendingChunk>& chunks, bool last);

  // Takes back what append() wrote, or tried to, since the last one with `last`. Poisons the writer if that
  // fails.
  void roll_back() noexcept;

  // Makes everything appended durable, seals full blocks, and writes the clean-close slot that proves it,
  // which the next append overwrites. A failure poisons: what reached the disk is then unknown.
  void commit();

  // The same, and the clean-close slot is durable, too.
  void close();

  bool is_poisoned() const noexcept { return poisoned_; }
  std::uint64_t chunks() const noexcept { return at_.chunks; }
  std::uint64_t rows() const noexcept { return at_.rows; }
  std::uint64_t end() const noexcept { return at_.end; }  // bytes of the file in use
  std::uint64_t uncommitted_chunks() const noexcept { return at_.chunks - committed_chunks_; }

 private:
  // Where the next chunk goes.
  struct Position {
    std::uint64_t chunks = 0;
    std::uint64_t rows = 0;
    std::uint64_t end = 0;   // of the data
    std::size_t blocks = 0;  // how many blocks are in use
    bool synced = true;      // nothing was written since the last sync
  };

  IndexWriter(WritableStorage& storage, const Metadata& metadata)
      : storage_(&storage), salt_(metadata.check_salt()), geometry_(metadata.geometry()) {}

  std::uint64_t last_block() const noexcept { return blocks_.size() - 1; }
  std::uint64_t slot_offset(std::uint64_t block, std::uint64_t position) const noexcept {
    return cdd::slot_offset(blocks_[static_cast<std::size_t>(block)], position);
  }
  bool is_block_full() const noexcept { return at_.chunks == geometry_.first_chunk(blocks_.size()); }
  void add_block();
  std::size_t append_run(Bytes records, const PendingChunk* chunks, std::size_t count, bool last);
  void make_durable();
  void put_close_slot();
  bool put_proof();
  void seal_full_blocks();
  void undo();
  void clear_slots(std::uint64_t block, std::uint64_t from_position);
  void restore_headers(const BlockWalk& walk, bool clean);

  WritableStorage* storage_;
  std::uint64_t salt_;
  BlockGeometry geometry_;
  std::vector<std::uint64_t> blocks_;    // offsets
  std::vector<std::uint64_t> unsealed_;  // full blocks whose hash is still to be written
  Position at_;
  Position whole_;  // at_ after the last whole append
  std::uint64_t committed_chunks_ = 0;
  bool in_append_ = false;  // something was written behind whole_
  bool poisoned_ = false;
};

}  // namespace cdd
