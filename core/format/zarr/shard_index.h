// The index of a shard of zarr v3: offset and size of each tile, then a CRC-32C. Bytes to numbers and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/bytes.h"

namespace cdd::zarr {

struct ShardEntry {
  static constexpr std::uint64_t kAbsent = ~std::uint64_t{0};
  std::uint64_t offset = kAbsent;
  std::uint64_t bytes = kAbsent;

  bool is_absent() const noexcept { return offset == kAbsent && bytes == kAbsent; }
  bool operator==(const ShardEntry&) const noexcept = default;
};

// Stored bytes of an index of this many tiles, with its check or without.
constexpr std::uint64_t shard_index_bytes(std::uint64_t tiles, bool has_check = true) noexcept {
  return 16 * tiles + (has_check ? 4 : 0);
}

// `out` has shard_index_bytes(entries.size()) bytes but for the check, which the caller adds: core/format
// knows no kernels.
void put_shard_index(std::span<const ShardEntry> entries, MutableBytes out) noexcept;

// 16 bytes a tile. Entries are not looked at: what they name may lie outside the file.
std::vector<ShardEntry> parse_shard_index(Bytes bytes);

}  // namespace cdd::zarr
