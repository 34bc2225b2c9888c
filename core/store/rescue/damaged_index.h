// What is left of an index whose links and slots may be damaged or gone: single slots whose checks hold.
//
// Shared by salvage, which takes the records they point at, and by lost_chunks. No error is thrown for
// damage, and nothing is proven: a reader's picture of an index is chunk_index.h. Empty for blocks of plain
// offsets, which no reader reads in part.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/format/cdd/slot.h"
#include "core/storage/storage.h"
#include "core/store/header.h"

namespace cdd {

struct WholeRecord;

class DamagedIndex {
 public:
  static constexpr std::size_t kScanSlots = 2048;  // of one read

  // A block is found by its link, or behind the last record before it. Where that one's slot is gone, too,
  // `records`, in the order of their numbers, may have it. Throws Io, as all that follow.
  DamagedIndex(const Storage& storage, const Header& header, const std::vector<WholeRecord>& records);

  std::uint64_t blocks() const noexcept { return blocks_.size(); }
  const BlockGeometry& geometry() const noexcept { return geometry_; }

  // The slots at up to kScanSlots positions of block k, its link included, from `position` on: nothing where
  // the check does not hold; empty behind the last one.
  std::vector<std::optional<Slot>> slots(std::uint64_t k, std::uint64_t position) const;

  std::optional<Slot> chunk(std::uint64_t chunk) const;

  struct End {
    std::uint64_t chunks = 0;
    std::uint64_t rows = 0;
    bool closed = false;  // a clean-close slot says so: there were no more
    bool cut = false;     // the file was longer than it is: there may have been more
  };
  // The last that any slot knows of: the clean-close slot, or the highest chunk's.
  End end() const;

 private:
  std::uint64_t place_of(std::uint64_t k, std::uint64_t first, const std::vector<WholeRecord>& records);
  bool is_block(std::uint64_t offset, std::uint64_t k) const;
  bool is_sealed(std::uint64_t k) const;
  std::optional<Slot> read(std::uint64_t k, std::uint64_t position) const;
  void look_at(std::uint64_t k, End& end) const;

  const Storage& storage_;
  const std::uint64_t file_bytes_;
  const std::uint64_t salt_;
  const BlockGeometry geometry_;
  std::vector<std::uint64_t> blocks_;  // offsets, 0 for those that cannot be found
  bool cut_ = false;
};

}  // namespace cdd
