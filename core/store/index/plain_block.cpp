#include "core/store/index/plain_block.h"

#include "core/base/hash.h"
#include "core/codec/chunk_codec.h"
#include "core/codec/compressor.h"
#include "core/format/cdd/record.h"

namespace cdd {
namespace {

struct BlockBytes {};

constexpr std::size_t kOffsetBytes = 8;

Place index_at(std::uint64_t offset) { return {Place::Kind::Index, Place::kNone, Place::kNone, offset}; }

std::vector<std::byte> read_entries(const Storage& storage, std::uint64_t offset, std::size_t entries_bytes) {
  const Bytes head = copy_exactly(storage, offset, kBlockHeaderBytes, scratch<BlockBytes>());
  const auto size = load<std::uint32_t>(head.data());
  const auto type = static_cast<BlockType>(load<std::uint16_t>(head.data() + 4));
  const Hash128 hash = {load<std::uint64_t>(head.data() + kBlockHashAt),
                        load<std::uint64_t>(head.data() + kBlockHashAt + 8)};
  const std::size_t limit = kBlockHeaderBytes + compress_bound(Compressor::Lz4, entries_bytes);
  const bool lz4 = type == BlockType::OffsetsLz4;
  const bool fits =
      lz4 ? size >= kBlockHeaderBytes && size <= limit : size == kBlockHeaderBytes + entries_bytes;
  if (!fits) {
    fail_at(index_at(offset), ErrorCode::Corrupt, "%s: index block at 0x%llx has %u bytes for %zu offsets",
            storage.name().c_str(), static_cast<unsigned long long>(offset), size,
            entries_bytes / kOffsetBytes);
  }
  const Bytes body =
      copy_exactly(storage, offset + kBlockHeaderBytes, size - kBlockHeaderBytes, scratch<BlockBytes>());
  if (hash128(body) != hash) {
    fail_at(index_at(offset), ErrorCode::Checksum, "%s: index block at 0x%llx does not match its hash",
            storage.name().c_str(), static_cast<unsigned long long>(offset));
  }
  std::vector<std::byte> entries(entries_bytes);
  decompress(lz4 ? Compressor::Lz4 : Compressor::None, body, entries);
  return entries;
}

// The slot that a slot block would hold for the record at `offset`. All of a plain block was durable.
Slot slot_of_record(const Storage& storage, const ChunkKey& key, std::uint64_t offset,
                    std::uint64_t row_begin) {
  const Bytes head = copy_exactly(storage, offset, kMinRecordBytes, scratch<BlockBytes>());
  const auto size = load<std::uint32_t>(head.data());
  if (size < kMinRecordBytes || size > storage.size() - offset) {
    fail(ErrorCode::Corrupt, "a record of %u bytes cannot be", size);
  }
  const Bytes record = copy_exactly(storage, offset, size, scratch<BlockBytes>());
  check_record(record, key);
  Bytes payload;
  const std::uint64_t n_rows = parse_record(record, &payload).n_rows;
  return {offset, row_begin + n_rows, size, stored_check(record), slot_flags::kSynced | slot_flags::kEnd};
}

}  // namespace

PlainBlock read_plain_block(const Storage& storage, std::uint64_t offset, std::uint32_t capacity,
                            std::uint64_t row_begin, ChunkKey key) {
  const std::vector<std::byte> entries =
      read_entries(storage, offset, kOffsetBytes * (std::size_t{capacity} + 1));
  PlainBlock block;
  block.next = load<std::uint64_t>(entries.data() + kOffsetBytes * capacity);
  // Increasing offsets within the file also bound how many there are, which LZ4 would let a small file claim.
  const std::uint64_t file_bytes = storage.size();
  std::uint64_t least = 1;
  for (std::uint32_t i = 0; i < capacity; ++i) {
    const auto record = load<std::uint64_t>(entries.data() + kOffsetBytes * i);
    if (record == 0) break;
    if (record < least || record >= file_bytes) {
      fail_at(index_at(offset), ErrorCode::Corrupt,
              "%s: index block at 0x%llx says that a record is at 0x%llx", storage.name().c_str(),
              static_cast<unsigned long long>(offset), static_cast<unsigned long long>(record));
    }
    least = record + kMinRecordBytes;
    try {
      block.slots.push_back(slot_of_record(storage, key, record, row_begin));
    } catch (Error& error) {
      error.at({Place::Kind::Chunk, key.number, Place::kNone, record});
      throw;
    }
    row_begin = block.slots.back().row_end;
    ++key.number;
  }
  if (block.next != 0 && block.slots.size() < capacity) {
    fail_at(index_at(offset), ErrorCode::Corrupt, "%s: index block at 0x%llx has a successor and is not full",
            storage.name().c_str(), static_cast<unsigned long long>(offset));
  }
  return block;
}

}  // namespace cdd
