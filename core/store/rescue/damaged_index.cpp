#include "core/store/rescue/damaged_index.h"

#include <algorithm>

#include "core/store/index/index_layout.h"
#include "core/store/rescue/salvage.h"

namespace cdd {
namespace {

struct IndexBytes {};

}  // namespace

DamagedIndex::DamagedIndex(const Storage& storage, const Header& header,
                           const std::vector<WholeRecord>& records)
    : storage_(storage),
      file_bytes_(storage.size()),
      salt_(header.metadata.check_salt()),
      geometry_(header.metadata.geometry()) {
  if (header.metadata.index_type != BlockType::Slots) return;
  blocks_.push_back(header.first_block);
  std::uint64_t end = header.first_block + geometry_.block_bytes(0);  // of the last block found
  const std::uint64_t known = records.empty() ? 0 : records.back().chunk + 1;
  for (std::uint64_t k = 1;; ++k) {
    const std::uint64_t first = geometry_.first_chunk(k);
    std::uint64_t offset = place_of(k, first, records);
    if (offset < end || offset >= file_bytes_) offset = 0;
    if (offset == 0 && first >= known) break;
    if (offset != 0) end = offset + geometry_.block_bytes(k);
    blocks_.push_back(offset);
  }
  cut_ = cut_ || end > file_bytes_;
}

// Where block k seems to stand, 0 where nothing tells.
std::uint64_t DamagedIndex::place_of(std::uint64_t k, std::uint64_t first,
                                     const std::vector<WholeRecord>& records) {
  const auto link = read(k - 1, geometry_.capacity(k - 1));
  if (link && link->has(slot_flags::kLink)) {
    // One that is not sealed may have outlived its block in a crash.
    cut_ = cut_ || (link->offset >= file_bytes_ && is_sealed(k - 1));
    return link->offset;
  }
  // A record may be out of place, and a slot left of a crash.
  if (const auto last = chunk(first - 1)) {
    const std::uint64_t offset = align_block(last->offset + last->size);
    if (is_block(offset, k)) return offset;
  }
  const auto record =
      std::ranges::lower_bound(records, first - 1, {}, [](const WholeRecord& r) { return r.chunk; });
  if (record == records.end() || record->chunk != first - 1) return 0;
  const std::uint64_t offset = align_block(record->offset + record->size);
  return is_block(offset, k) ? offset : 0;
}

// Whether the header of slot block k is there, or its first slot.
bool DamagedIndex::is_block(std::uint64_t offset, std::uint64_t k) const {
  if (offset >= file_bytes_) return false;
  const Bytes bytes = storage_.read_at(offset, kBlockHeaderBytes + kSlotBytes, scratch<IndexBytes>());
  if (bytes.size() < kBlockHeaderBytes + kSlotBytes) return false;
  std::byte expected[kBlockHeaderBytes];
  put_block_header(geometry_.block_bytes(k), expected);
  return std::equal(expected, expected + kBlockHashAt, bytes.data()) ||
         parse_slot(bytes.data() + kBlockHeaderBytes, salt_, geometry_.first_chunk(k)).has_value();
}

// As far as the header tells: of an open block the hash is zero.
bool DamagedIndex::is_sealed(std::uint64_t k) const {
  const std::uint64_t at = blocks_[static_cast<std::size_t>(k)];
  const Bytes header = storage_.read_at(at, kBlockHeaderBytes, scratch<IndexBytes>());
  return header.size() == kBlockHeaderBytes && has_seal(seal_of(header.data()));
}

std::optional<Slot> DamagedIndex::read(std::uint64_t k, std::uint64_t position) const {
  if (k >= blocks_.size() || blocks_[static_cast<std::size_t>(k)] == 0) return std::nullopt;
  const Bytes bytes = storage_.read_at(slot_offset(blocks_[static_cast<std::size_t>(k)], position),
                                       kSlotBytes, scratch<IndexBytes>());
  return bytes.size() < kSlotBytes ? std::nullopt
                                   : parse_slot(bytes.data(), salt_, slot_key(geometry_, k, position));
}

std::optional<Slot> DamagedIndex::chunk(std::uint64_t chunk) const {
  const std::uint64_t k = geometry_.block_of(chunk);
  auto slot = read(k, chunk - geometry_.first_chunk(k));
  if (slot && !slot->is_chunk()) slot.reset();
  return slot;
}

std::vector<std::optional<Slot>> DamagedIndex::slots(std::uint64_t k, std::uint64_t position) const {
  std::vector<std::optional<Slot>> slots;
  const std::uint64_t positions = std::uint64_t{geometry_.capacity(k)} + 1;
  if (blocks_[static_cast<std::size_t>(k)] == 0 || position >= positions) return slots;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kScanSlots, positions - position));
  const Bytes bytes = storage_.read_at(slot_offset(blocks_[static_cast<std::size_t>(k)], position),
                                       count * kSlotBytes, scratch<IndexBytes>());
  for (std::size_t i = 0; (i + 1) * kSlotBytes <= bytes.size(); ++i)
    slots.push_back(parse_slot(bytes.data() + i * kSlotBytes, salt_, slot_key(geometry_, k, position + i)));
  return slots;
}

DamagedIndex::End DamagedIndex::end() const {
  End end;
  for (std::uint64_t k = blocks(); k-- > 0 && end.chunks == 0 && !end.closed;) look_at(k, end);
  end.cut = !end.closed && (end.cut || cut_);
  return end;
}

void DamagedIndex::look_at(std::uint64_t k, End& end) const {
  std::uint64_t position = 0;
  for (std::vector<std::optional<Slot>> found; !(found = slots(k, position)).empty();) {
    for (const auto& slot : found) {
      const std::uint64_t chunk = geometry_.first_chunk(k) + position;
      const bool closed = is_commit_at(slot, position);
      ++position;
      if (closed) {
        end = {chunk, slot->row_end, true, false};
        return;  // what stands behind it never was
      }
      if (!slot || !slot->is_chunk()) continue;
      end = {chunk + 1, slot->row_end, false, slot->size > file_bytes_ - std::min(slot->offset, file_bytes_)};
    }
  }
}

}  // namespace cdd
