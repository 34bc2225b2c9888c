// The index as it stands on disk: which blocks there are and where the committed chunks end.
//
// Shared by readers, which open without reading more than they must, and by recovery. Nothing here writes.
// The rules are those of docs/formats/cdd.md, "What is committed": a slot that fails its check is damage when
// something after it proves it was durable, and otherwise not there yet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/format/cdd/metadata.h"
#include "core/storage/storage.h"
#include "core/store/index/plain_block.h"

namespace cdd {

struct Block {
  std::uint64_t offset = 0;
  std::uint64_t row_begin = 0;      // rows before this block
  std::optional<PlainBlock> plain;  // set for blocks of types 0 and 1
};

// Where the chunks that a reader may show end.
struct CommittedEnd {
  std::uint64_t chunks = 0;
  std::uint64_t rows = 0;
  std::uint64_t durable_chunks =
      0;  // of these, known to have been on disk: what is wrong with them is damage
};

class BlockWalk {
 public:
  // Follows the links from the first block, and finds the next where damage took a link and the slot before
  // it. Throws Truncated when the first is not all there, or a sealed block links past the end.
  BlockWalk(const Storage& storage, const Metadata& metadata, std::uint64_t first_block);

  const std::vector<Block>& blocks() const noexcept { return blocks_; }
  const BlockGeometry& geometry() const noexcept { return geometry_; }

  // Slots of chunks [first, first + count) as they are on disk now; nothing where a check does not hold.
  // The chunks lie in blocks walked so far.
  std::vector<std::optional<Slot>> read_slots(std::uint64_t first, std::size_t count) const;

  // Where the index ends: found from behind, since the last proof decides. A proof is a slot that says that
  // all before it was durable: the clean-close slot, or a SYNCED one.
  struct Tail {
    std::uint64_t durable_chunks = 0;   // before the last proof: what is wrong with them is damage
    std::uint64_t unbroken_chunks = 0;  // and those whose slots hold behind it
    std::uint64_t whole_chunks = 0;     // and of those up to the last END, so many a reader may show
    bool clean = false;                 // the proof is a clean-close slot: nothing behind it counts
    std::uint64_t end = 0;              // clean: where the file ends
  };
  // Costs a binary search when nothing follows a clean-close slot, else a scan of the last block, or of more
  // when that has no proof.
  Tail find_tail() const;

  // What a reader may show.
  CommittedEnd find_end() const;

  // How many rows the first `chunks` chunks have and where their records end. When the last of them has no
  // slot that holds, what stands behind it tells.
  struct Extent {
    std::uint64_t rows = 0;
    std::uint64_t end = 0;
  };
  Extent extent_of(std::uint64_t chunks) const;

  // The record of a chunk, empty unless it is there and its check holds.
  Bytes record_of(std::uint64_t chunk, const Slot& slot) const;

  // The slots, with END but without SYNCED, of as many whole records as stand where those of chunks
  // [first, first + most) must, from `from` on.
  std::vector<Slot> slots_of_records(std::uint64_t first, std::uint64_t most, Extent from) const;

  // Whether the index seems to go on at or behind the place of this chunk of the last block: something stands
  // there that is neither zeros nor the clean-close slot.
  bool goes_on_at(std::uint64_t chunk) const;

  // Forgets the blocks in which none of the first `chunks` chunks is: a writer that takes back an append
  // gives its successor's blocks other places.
  void forget_blocks_after(std::uint64_t chunks);

  // Whether block k's hash holds. Reads and hashes all of it.
  bool is_sealed(std::uint64_t k) const;

  // Looks whether block `blocks().size() - 1`, full by now, got a successor, and adds it.
  bool follow_link();

 private:
  struct Successor {
    std::uint64_t offset = 0;
    std::uint64_t row_begin = 0;
  };
  std::optional<Successor> successor_of(std::uint64_t k) const;
  bool has_header(std::uint64_t offset, std::uint64_t k) const;
  bool has_first_slot(std::uint64_t offset, std::uint64_t k) const;
  void add_block(std::uint64_t offset, std::uint64_t row_begin);
  void find_lost_blocks();
  std::optional<std::uint64_t> find_header_behind(std::uint64_t k) const;
  std::uint64_t end_of_last_record(std::uint64_t k) const;
  const Block& block(std::uint64_t k) const noexcept { return blocks_[static_cast<std::size_t>(k)]; }
  std::optional<Slot> slot_at(std::uint64_t k, std::uint64_t position) const;
  std::optional<Tail> find_clean_tail() const;
  bool look_back(std::uint64_t k, std::uint64_t position, const std::byte* slot, Tail& tail) const;
  bool look_back_through(std::uint64_t k, Tail& tail) const;

  const Storage& storage_;
  const std::uint64_t salt_;
  const BlockGeometry geometry_;
  const bool is_plain_;  // all blocks are of types 0 and 1
  std::vector<Block> blocks_;
};

}  // namespace cdd
