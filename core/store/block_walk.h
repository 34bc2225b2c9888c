// The index as it stands on disk: which blocks there are and where the committed chunks end.
//
// Shared by readers, which open without reading more than they must, and by recovery. Nothing here writes.
// The rules are those of docs/format.md, "What is committed": a slot that fails its check is damage when
// something after it proves it was durable, and otherwise not there yet.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/format/metadata.h"
#include "core/storage/storage.h"
#include "core/store/plain_block.h"

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
  // Follows the links from the first block. Throws Truncated when that is not all there, or a sealed block
  // links past the end.
  BlockWalk(const Storage& storage, const Metadata& metadata, std::uint64_t first_block);

  const std::vector<Block>& blocks() const noexcept { return blocks_; }
  const BlockGeometry& geometry() const noexcept { return geometry_; }

  // Slots of chunks [first, first + count) as they are on disk now; nothing where a check does not hold.
  // The chunks lie in blocks walked so far.
  std::vector<std::optional<Slot>> read_slots(std::uint64_t first, std::size_t count) const;

  // The committed end, from the tail block. A clean file costs a binary search, another a scan of that block.
  CommittedEnd find_end() const;

  // Every chunk slot of the tail block up to what find_end's rules call its end, damaged ones empty, and
  // before any step back to the last END. What recovery starts from.
  struct Tail {
    std::vector<std::optional<Slot>> slots;
    bool clean = false;      // the last writer closed the file
    std::uint64_t end = 0;   // clean: the offset where the file ends
    std::uint64_t rows = 0;  // clean: of the file
    // Chunks before the last proof, a SYNCED slot or the clean-close slot: they were on disk when it was
    // written.
    std::uint64_t durable_chunks = 0;
    // Chunks until the first slot that does not hold and was not durable. It may be in a block before this
    // one.
    std::uint64_t unbroken_chunks = 0;
  };
  Tail scan_tail() const;

  // Forgets the blocks in which none of the first `chunks` chunks is: a writer that takes back an append
  // gives its successor's blocks other places.
  void forget_blocks_after(std::uint64_t chunks);

  // Whether block k's hash holds. Reads and hashes all of it.
  bool is_sealed(std::size_t k) const;

  // Looks whether block `blocks().size() - 1`, full by now, got a successor, and adds it.
  bool follow_link();

 private:
  struct Successor {
    std::uint64_t offset = 0;
    std::uint64_t row_begin = 0;
  };
  std::optional<Successor> successor_of(std::size_t k) const;
  bool has_header(std::uint64_t offset, std::uint64_t k) const;
  bool has_first_slot(std::uint64_t offset, std::uint64_t k) const;
  void add_block(std::uint64_t offset, std::uint64_t row_begin);
  std::optional<Tail> find_clean_tail() const;
  void find_proof(Tail& tail) const;
  std::uint64_t slot_offset(std::size_t k, std::uint64_t position) const noexcept {
    return blocks_[k].offset + kBlockHeaderBytes + kSlotBytes * position;
  }

  const Storage& storage_;
  const std::uint64_t salt_;
  const BlockGeometry geometry_;
  const bool is_plain_;  // all blocks are of types 0 and 1
  std::vector<Block> blocks_;
};

}  // namespace cdd
