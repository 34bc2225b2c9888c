// IndexWriter::recover: what a writer does before its first append to an existing file.
//
// Everything before the last SYNCED slot was durable when that slot was written. Behind it a crash may have
// kept slots without their records, records without their slots, or parts of either: chunks are taken as long
// as slot and record check hold, then the file is cut after the last whole append. The cleanup is synced
// before anything new is written, so no later crash can mix two histories.
#include <algorithm>

#include "core/base/hash.h"
#include "core/store/block_walk.h"
#include "core/store/index_writer.h"

namespace cdd {
namespace {

bool record_holds(const Storage& storage, std::uint64_t salt, std::uint64_t chunk, const Slot& slot,
                  std::uint64_t file_bytes) {
  if (slot.size < kMinRecordBytes || slot.offset > file_bytes || slot.size > file_bytes - slot.offset)
    return false;
  const Bytes record = storage.read_at(slot.offset, slot.size, scratch(Stage::Record));
  if (record.size() != slot.size) return false;
  const std::size_t checked = slot.size - kRecordCheckBytes;
  const auto stored = load<std::uint32_t>(record.data() + checked);
  return stored == slot.record_check &&
         stored == check32(CheckDomain::Record, salt, chunk, record.first(checked));
}

// How many chunks of an unclean file are kept.
std::uint64_t surviving_chunks(const Storage& storage, std::uint64_t salt, const BlockWalk& walk,
                               const BlockWalk::Tail& tail) {
  const std::uint64_t file_bytes = storage.size();
  std::uint64_t whole = tail.durable_chunks;
  for (std::uint64_t chunk = tail.durable_chunks; chunk < tail.unbroken_chunks; ++chunk) {
    const auto slot = walk.read_slots(chunk, 1).front();
    if (!slot || !record_holds(storage, salt, chunk, *slot, file_bytes)) break;
    if (slot->has(slot_flags::kEnd)) whole = chunk + 1;
  }
  return whole;
}

}  // namespace

IndexWriter IndexWriter::recover(Storage& storage, const Metadata& metadata, std::uint64_t first_block) {
  IndexWriter writer(storage, metadata);
  const BlockGeometry& geometry = writer.geometry_;
  const BlockWalk walk(storage, metadata, first_block);
  for (const Block& block : walk.blocks()) {
    if (block.plain) {
      fail(ErrorCode::Unsupported,
           "%s has sealed index blocks of plain offsets: it can be read, not appended to",
           storage.name().c_str());
    }
  }
  const BlockWalk::Tail tail = walk.scan_tail();
  const std::uint64_t kept =
      tail.clean ? tail.durable_chunks : surviving_chunks(storage, writer.salt_, walk, tail);

  // The block that owns the next slot; a block that is exactly full stays the last one, without a link.
  std::uint64_t k = 0;
  while (k + 1 < walk.blocks().size() && geometry.first_chunk(k + 1) < kept) ++k;
  for (std::uint64_t i = 0; i <= k; ++i)
    writer.blocks_.push_back(walk.blocks()[static_cast<std::size_t>(i)].offset);
  std::uint64_t rows = 0;
  std::uint64_t last_end = 0;
  for (std::uint64_t chunk = kept; chunk > 0; --chunk) {
    const auto slot = walk.read_slots(chunk - 1, 1).front();
    if (!slot) continue;  // damaged but durable: the one before says what it can
    rows = slot->row_end;
    if (!checked_add(slot->offset, slot->size, &last_end)) last_end = slot->offset;
    break;
  }
  if (tail.clean) {
    rows = tail.rows;
    last_end = std::max(last_end, tail.end);
  }
  const std::uint64_t end = std::max(last_end, writer.blocks_.back() + geometry.block_bytes(k));
  if (end > storage.size()) {
    fail(ErrorCode::Truncated, "%s was cut: its last chunk ends at 0x%llx, the file at 0x%llx",
         storage.name().c_str(), static_cast<unsigned long long>(end),
         static_cast<unsigned long long>(storage.size()));
  }

  writer.restore_headers(walk, tail.clean);
  const std::uint64_t position = kept - geometry.first_chunk(k);
  // A clean-close slot stays until the first append overwrites it: until then the file is as it was closed.
  writer.clear_slots(k, position + (tail.clean ? 1 : 0));
  storage.truncate(end);

  writer.at_ = {kept, rows, end, writer.blocks_.size(), true};
  writer.whole_ = writer.at_;
  writer.committed_chunks_ = kept;
  storage.sync();
  return writer;
}

// Slots may have survived a crash that took the header of their block, and seals may be torn. The last block
// is open again, whatever it was.
void IndexWriter::restore_headers(const BlockWalk& walk, bool clean) {
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    const std::uint64_t offset = blocks_[k];
    std::byte open[kBlockHeaderBytes];
    put_block_header(geometry_.block_bytes(k), open);
    const Bytes found = storage_->read_at(offset, kBlockHeaderBytes, scratch(Stage::Record));
    const bool is_open = std::equal(found.begin(), found.end(), open, open + kBlockHeaderBytes);
    const bool is_whole =
        found.size() == kBlockHeaderBytes && std::equal(open, open + kBlockHashAt, found.data());
    if (k != last_block() && !is_open && (clean || (is_whole && walk.is_sealed(k)))) continue;
    if (!is_open) storage_->write_at(offset, open);
    if (k != last_block()) unsealed_.push_back(k);
  }
}

}  // namespace cdd
