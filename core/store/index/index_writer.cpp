#include "core/store/index/index_writer.h"

#include <algorithm>

#include "core/base/hash.h"

namespace cdd {
namespace {

struct SlotBytes {};

constexpr std::uint64_t kClearSlots = 128;  // looked at together: 4 KiB

}  // namespace

IndexWriter IndexWriter::create(WritableStorage& storage, const Metadata& metadata,
                                std::uint64_t first_block) {
  IndexWriter writer(storage, metadata);
  writer.at_.end = first_block;
  writer.add_block();
  writer.at_.blocks = 1;
  writer.whole_ = writer.at_;
  writer.put_close_slot();
  return writer;
}

// Writes the next block's header behind the data; its slots are zeros. The link in the block before follows
// the header, so a link never leads to bytes that are not a block yet.
void IndexWriter::add_block() {
  const std::uint64_t k = blocks_.size();
  const std::uint64_t offset = align_block(at_.end);
  const std::uint64_t block_end = offset + geometry_.block_bytes(k);
  storage_->truncate(std::max(storage_->size(), block_end));
  std::byte header[kBlockHeaderBytes];
  put_block_header(geometry_.block_bytes(k), header);
  storage_->write_at(offset, header);
  if (k > 0) {
    std::byte link[kSlotBytes];
    const std::uint32_t synced = at_.synced ? slot_flags::kSynced : 0;
    put_slot({offset, at_.rows, 0, 0, slot_flags::kLink | synced}, salt_, kLinkKey | (k - 1), link);
    storage_->write_at(slot_offset(k - 1, geometry_.capacity(k - 1)), link);
    unsealed_.push_back(k - 1);
  }
  blocks_.push_back(offset);
  at_.blocks = blocks_.size();
  at_.end = block_end;
}

void IndexWriter::append(Bytes records, const std::vector<PendingChunk>& chunks, bool last) {
  std::size_t done = 0;
  in_append_ = true;
  while (done < chunks.size()) {
    if (is_block_full()) add_block();
    done += append_run(records, chunks.data() + done, chunks.size() - done, last);
  }
  if (!last) return;
  whole_ = at_;
  in_append_ = false;
}

// As many chunks as the last block has room for: one write of records, one of slots.
std::size_t IndexWriter::append_run(Bytes records, const PendingChunk* chunks, std::size_t count, bool last) {
  const std::uint64_t room = geometry_.first_chunk(blocks_.size()) - at_.chunks;
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(count, room));
  const std::uint64_t base = align_up(at_.end, kRecordAlignment);
  const std::uint64_t first = chunks[0].record_offset;
  const std::uint64_t bytes = chunks[n - 1].record_offset + chunks[n - 1].record_bytes - first;
  storage_->write_at(base, records.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(bytes)));

  std::vector<std::byte> slots(n * kSlotBytes);
  Position next = at_;
  for (std::size_t i = 0; i < n; ++i) {
    const PendingChunk& chunk = chunks[i];
    Slot slot;
    slot.offset = base + chunk.record_offset - first;
    slot.row_end = next.rows + chunk.n_rows;
    slot.size = chunk.record_bytes;
    slot.record_check = chunk.record_check;
    slot.flags = (next.synced ? slot_flags::kSynced : 0) | (last && i + 1 == count ? slot_flags::kEnd : 0);
    put_slot(slot, salt_, next.chunks, slots.data() + i * kSlotBytes);
    next.synced = false;
    next.rows = slot.row_end;
    next.end = slot.offset + slot.size;
    ++next.chunks;
  }
  storage_->write_at(slot_offset(last_block(), at_.chunks - geometry_.first_chunk(last_block())), slots);
  at_ = next;
  return n;
}

void IndexWriter::commit() {
  make_durable();
  put_proof();
}

void IndexWriter::make_durable() {
  try {
    storage_->sync();
    at_.synced = true;
    whole_.synced = true;
    committed_chunks_ = at_.chunks;
    seal_full_blocks();
  } catch (...) {
    poisoned_ = true;
    throw;
  }
}

// The hash says that a block is complete for ever, so it may only follow the sync that made it so.
void IndexWriter::seal_full_blocks() {
  for (const std::uint64_t k : unsealed_) {
    const auto bytes = static_cast<std::size_t>(geometry_.block_bytes(k) - kBlockHeaderBytes);
    const Bytes slots = read_exactly(*storage_, slot_offset(k, 0), bytes, scratch<SlotBytes>());
    const Hash128 hash = hash128(slots);
    std::byte out[16];
    store<std::uint64_t>(out, hash[0]);
    store<std::uint64_t>(out + 8, hash[1]);
    storage_->write_at(blocks_[static_cast<std::size_t>(k)] + kBlockHashAt, out);
  }
  unsealed_.clear();
}

// In the next free position, which in a full block is its link's. It proves that all before it is durable, so
// it may only follow a sync, and is not synced itself: what follows it overwrites it, with a slot that proves
// as much.
void IndexWriter::put_close_slot() {
  const std::uint64_t k = last_block();
  const std::uint64_t position = at_.chunks - geometry_.first_chunk(k);
  const Slot slot{at_.end, at_.rows, 0, static_cast<std::uint32_t>(position),
                  slot_flags::kCommit | slot_flags::kSynced};
  std::byte out[kSlotBytes];
  put_slot(slot, salt_, slot_key(geometry_, k, position), out);
  storage_->write_at(slot_offset(k, position), out);
}

// A disk that is full may refuse it, or take a part. All is durable without it: then only damage cannot be
// told from a crash, as long as nothing follows. Returns whether it is there.
bool IndexWriter::put_proof() {
  try {
    put_close_slot();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void IndexWriter::close() {
  make_durable();
  try {
    put_close_slot();
    storage_->sync();
  } catch (...) {
    poisoned_ = true;
    throw;
  }
}

// Zeros the slots of a block from a position on, its link included. Slots that are zero already are not
// written, so that a full disk does not stand in the way of clearing up after itself.
void IndexWriter::clear_slots(std::uint64_t block, std::uint64_t from_position) {
  static constexpr std::byte kZeros[kClearSlots * kSlotBytes]{};
  const std::uint64_t end = std::uint64_t{geometry_.capacity(block)} + 1;
  for (std::uint64_t at = from_position; at < end; at += kClearSlots) {
    const auto bytes = static_cast<std::size_t>(std::min(kClearSlots, end - at)) * kSlotBytes;
    const Bytes found = storage_->read_at(slot_offset(block, at), bytes, scratch<SlotBytes>());
    if (found.size() == bytes && std::memcmp(found.data(), kZeros, bytes) == 0) continue;
    storage_->write_at(slot_offset(block, at), Bytes(kZeros, bytes));
  }
}

void IndexWriter::roll_back() noexcept {
  if (poisoned_ || !in_append_) return;
  try {
    undo();
  } catch (...) {
    poisoned_ = true;
  }
}

// Readers never saw these slots, for none of them is followed by an END; a later writer must not see them
// either, so their removal is durable before anything new is written. The proof of what is durable, which
// they may have overwritten, is back first.
void IndexWriter::undo() {
  at_ = whole_;
  blocks_.resize(at_.blocks);
  std::erase_if(unsealed_, [&](std::uint64_t k) { return k + 1 >= at_.blocks; });
  const bool is_proven = at_.synced;
  if (is_proven) put_proof();
  clear_slots(last_block(), at_.chunks - geometry_.first_chunk(last_block()) + (is_proven ? 1 : 0));
  storage_->truncate(std::max(at_.end, blocks_.back() + geometry_.block_bytes(last_block())));
  storage_->sync();
  at_.synced = true;
  whole_ = at_;
  in_append_ = false;
  committed_chunks_ = at_.chunks;
  if (!is_proven) put_proof();
}

}  // namespace cdd
