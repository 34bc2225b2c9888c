#include "core/store/plain_block.h"

#include "core/base/hash.h"
#include "core/codec/compressor.h"
#include "core/format/record.h"

namespace cdd {
namespace {

constexpr std::size_t kOffsetBytes = 8;

std::vector<std::byte> read_entries(const Storage& storage, std::uint64_t offset, std::size_t entries_bytes) {
  const Bytes head = read_exactly(storage, offset, kBlockHeaderBytes, scratch(Stage::Record));
  const auto size = load<std::uint32_t>(head.data());
  const auto type = static_cast<BlockType>(load<std::uint16_t>(head.data() + 4));
  const Hash128 hash = {load<std::uint64_t>(head.data() + kBlockHashAt),
                        load<std::uint64_t>(head.data() + kBlockHashAt + 8)};
  const std::size_t limit = kBlockHeaderBytes + compress_bound(Compressor::Lz4, entries_bytes);
  const bool fits = type == BlockType::Offsets ? size == kBlockHeaderBytes + entries_bytes
                                               : size >= kBlockHeaderBytes && size <= limit;
  if (!fits) {
    fail(ErrorCode::Corrupt, "%s: index block at 0x%llx has %u bytes for %zu offsets", storage.name().c_str(),
         static_cast<unsigned long long>(offset), size, entries_bytes / kOffsetBytes);
  }
  const Bytes body =
      read_exactly(storage, offset + kBlockHeaderBytes, size - kBlockHeaderBytes, scratch(Stage::Record));
  if (hash128(body) != hash) {
    fail(ErrorCode::Checksum, "%s: index block at 0x%llx does not match its hash", storage.name().c_str(),
         static_cast<unsigned long long>(offset));
  }
  std::vector<std::byte> entries(entries_bytes);
  decompress(type == BlockType::Offsets ? Compressor::None : Compressor::Lz4, body, entries);
  return entries;
}

// The slot that a slot block would hold for the record at `offset`.
std::optional<Slot> slot_of_record(const Storage& storage, std::uint64_t offset, std::uint64_t row_begin) {
  // Dimensions end within these bytes, so rows are known without the payload.
  const Bytes head = storage.read_at(offset, kRecordFixedBytes + 4, scratch(Stage::Record));
  if (head.size() < kRecordFixedBytes + 4) return std::nullopt;
  const auto size = load<std::uint32_t>(head.data());
  const auto n_rows = load<std::uint32_t>(head.data() + kRecordFixedBytes);
  if (size < kMinRecordBytes || n_rows == 0) return std::nullopt;
  const Bytes check =
      storage.read_at(offset + size - kRecordCheckBytes, kRecordCheckBytes, scratch(Stage::Record));
  if (check.size() < kRecordCheckBytes) return std::nullopt;
  return Slot{offset, row_begin + n_rows, size, load<std::uint32_t>(check.data()), slot_flags::kEnd};
}

}  // namespace

bool is_plain_block(const std::byte* block_header) noexcept {
  const auto type = static_cast<BlockType>(load<std::uint16_t>(block_header + 4));
  // Plain blocks are sealed; a slot block whose header was torn is not, and must not pass for one.
  const bool sealed = load<std::uint64_t>(block_header + kBlockHashAt) != 0;
  const bool sized = load<std::uint32_t>(block_header) > kBlockHeaderBytes;
  return sized && sealed && (type == BlockType::Offsets || type == BlockType::OffsetsLz4);
}

PlainBlock read_plain_block(const Storage& storage, std::uint64_t offset, std::uint32_t capacity,
                            std::uint64_t row_begin) {
  const std::vector<std::byte> entries =
      read_entries(storage, offset, kOffsetBytes * (std::size_t{capacity} + 1));
  PlainBlock block;
  block.next = load<std::uint64_t>(entries.data() + kOffsetBytes * capacity);
  for (std::uint32_t i = 0; i < capacity; ++i) {
    const auto record = load<std::uint64_t>(entries.data() + kOffsetBytes * i);
    if (record == 0) break;
    block.slots.push_back(slot_of_record(storage, record, row_begin));
    if (block.slots.back()) row_begin = block.slots.back()->row_end;
  }
  return block;
}

}  // namespace cdd
