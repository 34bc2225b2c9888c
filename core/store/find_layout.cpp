#include "core/store/find_layout.h"

#include "core/format/cdd/record.h"

namespace cdd {
namespace {

struct RecordBytes {};

// Empty where it does not hold.
Bytes whole_record(const Storage& storage, const ChunkEntry& entry, std::uint64_t salt, std::uint64_t chunk) {
  const std::uint64_t file_bytes = storage.size();
  const bool is_there = !entry.is_damaged() && entry.offset <= file_bytes &&
                        entry.size <= file_bytes - entry.offset && entry.size >= kMinRecordBytes;
  if (!is_there) return {};
  const Bytes record = storage.copy_at(entry.offset, entry.size, scratch<RecordBytes>());
  return record.size() == entry.size && record_holds(record, salt, chunk) ? record : Bytes{};
}

}  // namespace

RowLayout find_layout(const Storage& storage, const Header& header, const ChunkIndex& index) {
  if (header.metadata.layout.is_set()) return header.metadata.layout;
  for (std::uint64_t chunk = 0; chunk < index.chunks(); ++chunk) {
    const Bytes record = whole_record(storage, index.entry(chunk), header.metadata.check_salt(), chunk);
    if (record.empty()) continue;
    try {
      Bytes payload;
      return parse_record(record, &payload).layout;
    } catch (const Error&) {  // no writer's
    }
  }
  return {};
}

void fail_without_layout(const Storage& storage, const ChunkIndex& index) {
  fail_at({Place::Kind::Chunk}, ErrorCode::Checksum,
          "%s: none of its chunks (%llu) is whole, and nothing else tells the dtype and shape of its rows",
          storage.name().c_str(), static_cast<unsigned long long>(index.chunks()));
}

}  // namespace cdd
