#include "core/format/zarr/shard_index.h"

namespace cdd::zarr {

void put_shard_index(std::span<const ShardEntry> entries, MutableBytes out) noexcept {
  std::byte* at = out.data();
  for (const ShardEntry& entry : entries) {
    store<std::uint64_t>(at, entry.offset);
    store<std::uint64_t>(at + 8, entry.bytes);
    at += 16;
  }
}

std::vector<ShardEntry> parse_shard_index(Bytes bytes) {
  std::vector<ShardEntry> entries(bytes.size() / 16);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i] = {load<std::uint64_t>(bytes.data() + 16 * i), load<std::uint64_t>(bytes.data() + 16 * i + 8)};
  }
  return entries;
}

}  // namespace cdd::zarr
