// IndexWriter::recover: what a writer does before its first append to an existing file.
//
// Everything before the last SYNCED slot was durable when that slot was written. Behind it a crash may have
// kept slots without their records, records without their slots, or parts of either: chunks are taken as long
// as slot and record check hold, and whole records that follow get their slots again. These are synced and
// proven first; from there on the file is a clean one, of which everything behind the proof is removed. The
// cleanup is synced before anything new is written, so no later crash can mix two histories.
#include <algorithm>
#include <array>

#include "core/base/hash.h"
#include "core/store/index/block_walk.h"
#include "core/store/index/index_layout.h"
#include "core/store/index/index_writer.h"

namespace cdd {
namespace {

struct BlockBytes {};

bool has_whole_seal(Bytes header) {
  return header.size() == kBlockHeaderBytes && is_whole_seal(seal_of(header.data()));
}

// Of an unclean file: chunks before `unbroken` hold, those before `chunks` are whole appends, too.
struct Survivors {
  std::uint64_t chunks = 0;
  std::uint64_t unbroken = 0;
};

void take_what_holds(const BlockWalk& walk, Survivors& kept) {
  const std::uint64_t end = walk.geometry().first_chunk(walk.blocks().size());
  for (; kept.unbroken < end; ++kept.unbroken) {
    const auto slot = walk.read_slots(kept.unbroken, 1).front();
    if (!slot || walk.record_of(kept.unbroken, *slot).empty()) break;
    if (slot->has(slot_flags::kEnd)) kept.chunks = kept.unbroken + 1;
  }
}

// What stood in the place of a slot that was restored.
struct Replaced {
  std::uint64_t offset = 0;
  std::array<std::byte, kSlotBytes> bytes{};
};

// A crash may have kept whole records without their slots, and damage to the end of the index looks the same:
// those that go on where chunk `first` must be get their slots again, within its block. Slots that hold stay
// as they are: one may be the proof. Returns whether there were any.
bool restore_slots(WritableStorage& storage, const Metadata& metadata, const BlockWalk& walk,
                   std::uint64_t first, std::vector<Replaced>& replaced) {
  const BlockGeometry& geometry = walk.geometry();
  const std::uint64_t k = geometry.block_of(first);
  if (k >= walk.blocks().size()) return false;
  const std::uint64_t block = walk.blocks()[static_cast<std::size_t>(k)].offset;
  const std::uint64_t position = first - geometry.first_chunk(k);
  BlockWalk::Extent before = walk.extent_of(first);
  before.end = std::max(before.end, block + geometry.block_bytes(k));
  const auto slots = walk.slots_of_records(first, geometry.capacity(k) - position, before);
  const auto found = walk.read_slots(first, slots.size());
  bool restored = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (found[i]) continue;
    std::byte bytes[kSlotBytes];
    put_slot(slots[i], metadata.check_salt(), slot_key(geometry, k, position + i), bytes);
    Replaced& one = replaced.emplace_back();
    one.offset = slot_offset(block, position + i);
    const Bytes old = storage.read_at(one.offset, kSlotBytes, scratch<BlockBytes>());
    std::ranges::copy(old, one.bytes.begin());
    storage.write_at(one.offset, bytes);
    restored = true;
  }
  return restored;
}

// Restored slots may make a link heal, and a proof come into sight behind it.
Survivors surviving_chunks(WritableStorage& storage, const Metadata& metadata, BlockWalk& walk,
                           BlockWalk::Tail& tail, std::vector<Replaced>& replaced) {
  Survivors kept;
  for (bool restored = true; restored && !tail.clean;) {
    kept = {std::max(kept.chunks, tail.durable_chunks), std::max(kept.unbroken, tail.durable_chunks)};
    take_what_holds(walk, kept);
    restored = false;
    while (restore_slots(storage, metadata, walk, kept.unbroken, replaced)) {
      restored = true;
      while (walk.follow_link()) {
      }
      take_what_holds(walk, kept);
    }
    if (restored) tail = walk.find_tail();
  }
  if (tail.clean) kept.chunks = tail.durable_chunks;
  return kept;
}

}  // namespace

IndexWriter IndexWriter::recover(WritableStorage& storage, const Metadata& metadata,
                                 std::uint64_t first_block, std::uint64_t least_rows) {
  IndexWriter writer(storage, metadata);
  const BlockGeometry& geometry = writer.geometry_;
  BlockWalk walk(storage, metadata, first_block);
  for (const Block& block : walk.blocks()) {
    if (block.plain) {
      fail_at({Place::Kind::Index}, ErrorCode::Unsupported,
              "%s has sealed index blocks of plain offsets: it can be read, not appended to",
              storage.name().c_str());
    }
  }
  BlockWalk::Tail tail = walk.find_tail();
  Position kept;
  std::vector<Replaced> replaced;
  kept.chunks = surviving_chunks(storage, metadata, walk, tail, replaced).chunks;
  const BlockWalk::Extent extent = walk.extent_of(kept.chunks);
  if (extent.rows < least_rows) {
    for (const Replaced& one : replaced) storage.write_at(one.offset, one.bytes);
    fail_at({Place::Kind::Index}, ErrorCode::Truncated,
            "%s is damaged: a writer would keep %llu rows of it, %llu are needed", storage.name().c_str(),
            static_cast<unsigned long long>(extent.rows), static_cast<unsigned long long>(least_rows));
  }

  // The block that owns the next slot; a block that is exactly full stays the last one, without a link.
  std::uint64_t k = 0;
  while (k + 1 < walk.blocks().size() && geometry.first_chunk(k + 1) < kept.chunks) ++k;
  for (std::uint64_t i = 0; i <= k; ++i)
    writer.blocks_.push_back(walk.blocks()[static_cast<std::size_t>(i)].offset);
  kept.rows = extent.rows;
  kept.end = std::max({extent.end, tail.end, writer.blocks_.back() + geometry.block_bytes(k)});
  kept.blocks = writer.blocks_.size();
  if (kept.end > storage.size()) {
    fail_at({Place::Kind::Index}, ErrorCode::Truncated,
            "%s was cut: its last chunk ends at 0x%llx, the file at 0x%llx", storage.name().c_str(),
            static_cast<unsigned long long>(kept.end), static_cast<unsigned long long>(storage.size()));
  }

  writer.at_ = writer.whole_ = kept;
  writer.committed_chunks_ = kept.chunks;
  writer.restore_headers(walk, tail.clean);
  bool is_proven = tail.clean;
  if (!is_proven) {
    storage.sync();
    is_proven = writer.put_proof();
  }
  // Behind the proof, which stays until the first append overwrites it.
  writer.clear_slots(k, kept.chunks - geometry.first_chunk(k) + (is_proven ? 1 : 0));
  storage.truncate(kept.end);
  storage.sync();
  return writer;
}

// Slots may have survived a crash that took the header of their block, and seals may be torn. Behind a
// clean-close slot all is as it was but for seals that were written after the sync: of the 16 bytes of one
// that was torn, half is zero. The last block is open again, whatever it was.
void IndexWriter::restore_headers(const BlockWalk& walk, bool clean) {
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    const std::uint64_t offset = blocks_[k];
    std::byte open[kBlockHeaderBytes];
    put_block_header(geometry_.block_bytes(k), open);
    const Bytes found = storage_->read_at(offset, kBlockHeaderBytes, scratch<BlockBytes>());
    const bool is_open = std::equal(found.begin(), found.end(), open, open + kBlockHeaderBytes);
    const bool is_whole =
        found.size() == kBlockHeaderBytes && std::equal(open, open + kBlockHashAt, found.data());
    const bool is_sealed = clean ? has_whole_seal(found) : is_whole && walk.is_sealed(k);
    if (k != last_block() && !is_open && is_sealed) continue;
    if (!is_open) storage_->write_at(offset, open);
    if (k != last_block()) unsealed_.push_back(k);
  }
}

}  // namespace cdd
