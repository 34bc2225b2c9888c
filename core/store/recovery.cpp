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
  if (tail.clean && tail.end > storage.size()) {
    fail(ErrorCode::Truncated, "%s was cut: it was closed with %llu bytes and has %llu",
         storage.name().c_str(), static_cast<unsigned long long>(tail.end),
         static_cast<unsigned long long>(storage.size()));
  }

  // The block that owns the next slot; a block that is exactly full stays the last one, without a link.
  std::uint64_t k = 0;
  while (k + 1 < walk.blocks().size() && geometry.first_chunk(k + 1) < kept) ++k;
  for (std::uint64_t i = 0; i <= k; ++i)
    writer.blocks_.push_back(walk.blocks()[static_cast<std::size_t>(i)].offset);
  std::uint64_t rows = 0;
  std::uint64_t end = writer.blocks_.back() + geometry.block_bytes(k);
  for (std::uint64_t chunk = kept; chunk > 0; --chunk) {
    const auto slot = walk.read_slots(chunk - 1, 1).front();
    if (!slot) continue;  // damaged but durable: the one before says what it can
    rows = slot->row_end;
    end = std::max(end, slot->offset + slot->size);
    break;
  }
  if (tail.clean) {
    rows = tail.rows;
    end = std::max(end, tail.end);
  }

  std::byte header[kBlockHeaderBytes];
  put_block_header(geometry.block_bytes(k), header);
  const std::uint64_t block = writer.blocks_.back();
  const Bytes found = storage.read_at(block, kBlockHeaderBytes, scratch(Stage::Record));
  if (!std::equal(found.begin(), found.end(), header, header + kBlockHeaderBytes))
    storage.write_at(block, header);
  const std::uint64_t position = kept - geometry.first_chunk(k);
  // A clean-close slot stays until the first append overwrites it: until then the file is as it was closed.
  writer.clear_slots(k, position + (tail.clean ? 1 : 0));
  storage.truncate(end);

  writer.at_ = {kept, rows, end, writer.blocks_.size(), true};
  writer.whole_ = writer.at_;
  writer.committed_chunks_ = kept;
  for (std::uint64_t i = 0; i < k; ++i) {
    const Bytes hash = storage.read_at(writer.blocks_[i] + kBlockHashAt, 16, scratch(Stage::Record));
    const bool open = std::all_of(hash.begin(), hash.end(), [](std::byte b) { return b == std::byte{0}; });
    if (open) writer.unsealed_.push_back(i);
  }
  storage.sync();
  return writer;
}

}  // namespace cdd
