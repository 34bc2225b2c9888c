#include "core/store/lost_chunks.h"

#include <algorithm>

namespace cdd {
namespace {

constexpr std::size_t kScanSlots = 2048;  // of one read

// The slots of a file whose links may be gone: a block is found by its link, or behind the last record before
// it.
class Slots {
 public:
  Slots(const Storage& storage, const Header& header, const std::vector<WholeRecord>& records)
      : storage_(storage), salt_(header.metadata.check_salt()), geometry_(header.metadata.geometry()) {
    if (header.metadata.index_type != BlockType::Slots) return;
    blocks_.push_back(header.first_block);
    std::uint64_t end = header.first_block + geometry_.block_bytes(0);  // of the last block found
    const std::uint64_t file_bytes = storage.size();
    const std::uint64_t known = records.empty() ? 0 : records.back().chunk + 1;
    auto record = records.begin();
    for (std::uint64_t k = 1;; ++k) {
      const std::uint64_t first = geometry_.first_chunk(k);
      std::uint64_t offset = 0;
      const auto link = read(k - 1, geometry_.capacity(k - 1), kLinkKey | (k - 1));
      while (record != records.end() && record->chunk + 1 < first) ++record;
      if (link && link->has(slot_flags::kLink)) {
        offset = link->offset;
      } else if (record != records.end() && record->chunk + 1 == first) {
        offset = align_block(record->offset + record->size);
      }
      if (offset < end || offset >= file_bytes) offset = 0;
      if (offset == 0 && first >= known) break;
      if (offset != 0) end = offset + geometry_.block_bytes(k);
      blocks_.push_back(offset);
    }
  }

  std::optional<Slot> chunk(std::uint64_t chunk) const {
    const std::uint64_t k = geometry_.block_of(chunk);
    auto slot = read(k, chunk - geometry_.first_chunk(k), chunk);
    if (slot && !slot->is_chunk()) slot.reset();
    return slot;
  }

  struct End {
    std::uint64_t chunks = 0;
    std::uint64_t rows = 0;
    bool closed = false;
  };

  // The last that any slot knows of: the clean-close slot, or the highest chunk's.
  End end() const {
    End end;
    for (std::size_t k = blocks_.size(); k-- > 0 && end.chunks == 0 && !end.closed;) {
      const std::uint64_t positions = std::uint64_t{geometry_.capacity(k)} + 1;
      for (std::uint64_t at = 0; at < positions && blocks_[k] != 0 && !end.closed; at += kScanSlots) {
        scan(k, at, static_cast<std::size_t>(std::min<std::uint64_t>(kScanSlots, positions - at)), end);
      }
    }
    return end;
  }

 private:
  std::uint64_t offset_of(std::uint64_t k, std::uint64_t position) const {
    return blocks_[static_cast<std::size_t>(k)] + kBlockHeaderBytes + kSlotBytes * position;
  }

  std::optional<Slot> read(std::uint64_t k, std::uint64_t position, std::uint64_t key) const {
    if (k >= blocks_.size() || blocks_[static_cast<std::size_t>(k)] == 0) return std::nullopt;
    const Bytes bytes = storage_.read_at(offset_of(k, position), kSlotBytes, scratch(Stage::Record));
    return bytes.size() < kSlotBytes ? std::nullopt : parse_slot(bytes.data(), salt_, key);
  }

  void scan(std::uint64_t k, std::uint64_t from, std::size_t count, End& end) const {
    const Bytes bytes = storage_.read_at(offset_of(k, from), count * kSlotBytes, scratch(Stage::Record));
    for (std::size_t i = 0; (i + 1) * kSlotBytes <= bytes.size(); ++i) {
      const std::uint64_t position = from + i;
      const std::uint64_t chunk = geometry_.first_chunk(k) + position;
      const std::uint64_t key = position == geometry_.capacity(k) ? kLinkKey | k : chunk;
      const auto slot = parse_slot(bytes.data() + i * kSlotBytes, salt_, key);
      if (!slot || slot->has(slot_flags::kLink)) continue;
      const bool closed = slot->has(slot_flags::kCommit);
      if (closed && slot->record_check != position) continue;
      end = {closed ? chunk : chunk + 1, slot->row_end, closed};
      if (closed) return;  // what stands behind it never was
    }
  }

  const Storage& storage_;
  const std::uint64_t salt_;
  const BlockGeometry geometry_;
  std::vector<std::uint64_t> blocks_;  // offsets, 0 for those that cannot be found
};

// Whether bytes that are not zero follow what the file is known to hold.
bool more_follows(const Storage& storage, const Header& header, const std::vector<WholeRecord>& records) {
  const BlockGeometry geometry = header.metadata.geometry();
  std::uint64_t at = header.first_block + geometry.block_bytes(0);
  if (!records.empty()) {
    const WholeRecord& last = records.back();
    at = last.offset + last.size;
    const std::uint64_t k = geometry.block_of(last.chunk + 1);
    if (geometry.first_chunk(k) == last.chunk + 1) at = align_block(at) + geometry.block_bytes(k);
  }
  for (Bytes bytes; !(bytes = storage.read_at(at, 1 << 16, scratch(Stage::Record))).empty();) {
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }))
      return true;
    at += bytes.size();
  }
  return false;
}

// The first row of each record in the file as it was, as far as slots or records beside it tell.
std::vector<std::optional<std::uint64_t>> first_rows(const Slots& slots,
                                                     const std::vector<WholeRecord>& records) {
  std::vector<std::optional<std::uint64_t>> begins(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto slot = slots.chunk(records[i].chunk);
    if (slot && slot->row_end >= records[i].n_rows) {
      begins[i] = slot->row_end - records[i].n_rows;
    } else if (records[i].chunk == 0) {
      begins[i] = 0;
    } else if (i > 0 && begins[i - 1] && records[i].chunk == records[i - 1].chunk + 1) {
      begins[i] = *begins[i - 1] + records[i - 1].n_rows;
    }
  }
  for (std::size_t i = records.size(); i-- > 1;) {
    if (!begins[i - 1] && begins[i] && records[i].chunk == records[i - 1].chunk + 1 &&
        *begins[i] >= records[i - 1].n_rows) {
      begins[i - 1] = *begins[i] - records[i - 1].n_rows;
    }
  }
  return begins;
}

}  // namespace

std::vector<LostChunks> lost_chunks(const Storage& storage, const Header& header,
                                    const std::vector<WholeRecord>& records) {
  const Slots slots(storage, header, records);
  const auto begins = first_rows(slots, records);
  std::vector<LostChunks> lost;
  std::uint64_t next = 0;
  std::optional<std::uint64_t> row = 0;  // of the file as it was, where chunk `next` begins
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].chunk > next) lost.push_back({next, records[i].chunk - next, row, begins[i]});
    row = begins[i];
    if (row) *row += records[i].n_rows;
    next = records[i].chunk + 1;
  }
  const Slots::End end = slots.end();
  if (end.chunks > next) {
    lost.push_back({next, end.chunks - next, row, end.rows});
  } else if (!end.closed && more_follows(storage, header, records)) {
    lost.push_back({next, 0, row, std::nullopt});
  }
  return lost;
}

}  // namespace cdd
