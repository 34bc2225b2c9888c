#include "core/store/index/block_walk.h"

#include <algorithm>
#include <cstring>

#include "core/format/cdd/record.h"
#include "core/store/index/index_layout.h"

namespace cdd {
namespace {

struct IndexBytes {};

constexpr std::size_t kScanSlots = 2048;                    // of one read while scanning: 64 KiB
constexpr std::size_t kLookSlots = 192;                     // more than a wiped sector of 4096 bytes holds
constexpr std::size_t kSearchBytes = std::size_t{1} << 18;  // of one read while looking for a block
// Records whose slots one piece of damage takes are no longer; files may be sparse, and any size.
constexpr std::uint64_t kMostSearchedBytes = std::uint64_t{1} << 30;
constexpr std::byte kNoSlot[kSlotBytes]{};

std::optional<Slot> chunk_slot(const std::byte* bytes, std::uint64_t salt, std::uint64_t chunk) {
  std::optional<Slot> slot = parse_slot(bytes, salt, chunk);
  if (slot && !slot->is_chunk()) slot.reset();
  return slot;
}

}  // namespace

BlockWalk::BlockWalk(const Storage& storage, const Metadata& metadata, std::uint64_t first_block)
    : storage_(storage),
      salt_(metadata.check_salt()),
      geometry_(metadata.geometry()),
      is_plain_(metadata.index_type != BlockType::Slots) {
  add_block(first_block, 0);
  // Every block is written whole, as zeros, before anything leads to it.
  const std::uint64_t needed = block(0).plain ? 0 : geometry_.block_bytes(0);
  if (storage.size() < first_block || storage.size() - first_block < needed) {
    fail_at({Place::Kind::Index, 0}, ErrorCode::Truncated, "%s was cut: it ends within its first index block",
            storage.name().c_str());
  }
  while (follow_link()) {
  }
  if (!is_plain_) find_lost_blocks();
}

// Where damage took the last slot of a block along with the link, nothing leads to the next one, and what is
// behind would look as if it had never been. So it is looked for. What a crash left there does no harm: the
// chunks end at the first slot that does not hold, unless a proof stands behind it.
void BlockWalk::find_lost_blocks() {
  if (find_tail().clean) return;
  for (Tail tail; !tail.clean; look_back_through(blocks_.size() - 1, tail)) {
    const auto offset = find_header_behind(blocks_.size() - 1);
    if (!offset) break;
    add_block(*offset, 0);
    while (follow_link()) {
    }
  }
}

// Where the block after k is: by its header, and by a first slot whose record stands right behind it, as no
// copy of a block does that somebody stored in rows. Header and slot fit the step from one place to the next.
// The file may be cut meanwhile.
std::optional<std::uint64_t> BlockWalk::find_header_behind(std::uint64_t k) const {
  static_assert(kBlockHeaderBytes + kSlotBytes <= kSlotArrayAlignment);
  std::byte expected[kBlockHeaderBytes];
  put_block_header(geometry_.block_bytes(k + 1), expected);
  const std::uint64_t begin = align_block(end_of_last_record(k));
  for (std::uint64_t at = begin; at - begin < kMostSearchedBytes;) {
    const Bytes bytes = storage_.copy_at(at, kSearchBytes, scratch<IndexBytes>());
    if (bytes.size() < kBlockHeaderBytes + kSlotBytes) break;
    std::size_t i = 0;
    for (; i + kBlockHeaderBytes + kSlotBytes <= bytes.size(); i += kSlotArrayAlignment) {
      if (std::memcmp(bytes.data() + i, expected, kBlockHashAt) != 0) continue;
      const auto slot = chunk_slot(bytes.data() + i + kBlockHeaderBytes, salt_, geometry_.first_chunk(k + 1));
      if (slot && slot->offset == align_up(at + i + geometry_.block_bytes(k + 1), kRecordAlignment))
        return at + i;
    }
    at += i;
  }
  return std::nullopt;
}

// Of the chunks in block k whose slots hold; where there are none, the end of the block.
std::uint64_t BlockWalk::end_of_last_record(std::uint64_t k) const {
  const std::uint64_t block_end = block(k).offset + geometry_.block_bytes(k);
  for (std::uint64_t end = geometry_.capacity(k); end > 0;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kScanSlots, end));
    end -= count;
    const auto slots = read_slots(geometry_.first_chunk(k) + end, count);
    const auto last = std::find_if(slots.rbegin(), slots.rend(), [&](const std::optional<Slot>& slot) {
      return slot && slot->offset >= block_end && slot->offset <= storage_.size();
    });
    if (last != slots.rend()) return (*last)->offset + (*last)->size;
  }
  return block_end;
}

void BlockWalk::add_block(std::uint64_t offset, std::uint64_t row_begin) {
  const ByteRange all{offset, geometry_.block_bytes(blocks_.size())};
  if (storage_.is_far()) storage_.ask({&all, 1});
  Block block{offset, row_begin, std::nullopt};
  if (is_plain_) {
    block.plain = read_plain_block(storage_, offset, geometry_.capacity(blocks_.size()), row_begin,
                                   {salt_, geometry_.first_chunk(blocks_.size())});
  }
  blocks_.push_back(std::move(block));
}

void BlockWalk::forget_blocks_after(std::uint64_t chunks) {
  while (blocks_.size() > 1 && geometry_.first_chunk(blocks_.size() - 1) >= chunks) blocks_.pop_back();
}

bool BlockWalk::follow_link() {
  const std::uint64_t k = blocks_.size() - 1;
  const std::optional<Successor> next = successor_of(k);
  if (!next) return false;
  const std::uint64_t size = storage_.size();
  const std::uint64_t own_end =
      block(k).offset + (block(k).plain ? kBlockHeaderBytes : geometry_.block_bytes(k));
  const std::uint64_t needed = block(k).plain ? kBlockHeaderBytes : geometry_.block_bytes(k + 1);
  if (next->offset < own_end || next->offset > size || size - next->offset < needed) {
    // Links are written before the file is synced: past the end, it is a link that outlived its block in a
    // crash. In a sealed block that cannot be, since sealing follows the sync.
    if (is_sealed(k)) {
      fail_at({Place::Kind::Index, k + 1}, ErrorCode::Truncated,
              "%s was cut: index block %llu should be at 0x%llx, the file has %llu bytes",
              storage_.name().c_str(), static_cast<unsigned long long>(k + 1),
              static_cast<unsigned long long>(next->offset), static_cast<unsigned long long>(size));
    }
    return false;
  }
  const bool is_wiped =
      !block(k).plain && !has_header(next->offset, k + 1) && !has_first_slot(next->offset, k + 1);
  if (is_wiped && is_sealed(k)) {
    // The seal came after the sync that made the next block's header durable: what is missing was there.
    fail_at({Place::Kind::Index, k + 1}, ErrorCode::Checksum,
            "%s: index block %llu at 0x%llx is damaged, and the chunks it leads to are out of sight",
            storage_.name().c_str(), static_cast<unsigned long long>(k + 1),
            static_cast<unsigned long long>(next->offset));
  }
  add_block(next->offset, next->row_begin);
  return true;
}

std::optional<BlockWalk::Successor> BlockWalk::successor_of(std::uint64_t k) const {
  const Block& full = block(k);
  if (full.plain) {
    if (full.plain->next == 0) return std::nullopt;
    return Successor{full.plain->next, full.plain->slots.back().row_end};
  }
  const std::uint32_t capacity = geometry_.capacity(k);
  const Bytes bytes =
      storage_.copy_at(slot_offset(block(k).offset, capacity - 1), 2 * kSlotBytes, scratch<IndexBytes>());
  if (bytes.size() < 2 * kSlotBytes) return std::nullopt;
  const auto link = parse_slot(bytes.data() + kSlotBytes, salt_, kLinkKey | k);
  if (link && link->has(slot_flags::kLink)) return Successor{link->offset, link->row_end};
  // The clean-close slot in its place: a block that follows is left of a crash.
  if (is_commit_at(link, capacity)) return std::nullopt;

  // A damaged link heals itself: the next block's place follows from the last record's end.
  const std::uint64_t last_chunk = geometry_.first_chunk(k) + capacity - 1;
  const auto last = chunk_slot(bytes.data(), salt_, last_chunk);
  if (!last || last->offset > storage_.size()) return std::nullopt;
  const std::uint64_t offset = align_block(last->offset + last->size);
  if (!has_header(offset, k + 1) || !has_first_slot(offset, k + 1)) return std::nullopt;
  return Successor{offset, last->row_end};
}

// Whether `offset` holds the header of slot block k.
bool BlockWalk::has_header(std::uint64_t offset, std::uint64_t k) const {
  const Bytes bytes = storage_.copy_at(offset, kBlockHashAt, scratch<IndexBytes>());
  std::byte expected[kBlockHeaderBytes];
  put_block_header(geometry_.block_bytes(k), expected);
  return std::equal(bytes.begin(), bytes.end(), expected, expected + kBlockHashAt);
}

// Whether the block at `offset` has a valid first slot: proof that it is block k, and in use.
bool BlockWalk::has_first_slot(std::uint64_t offset, std::uint64_t k) const {
  const Bytes slot = storage_.copy_at(offset + kBlockHeaderBytes, kSlotBytes, scratch<IndexBytes>());
  return slot.size() == kSlotBytes && parse_slot(slot.data(), salt_, geometry_.first_chunk(k)).has_value();
}

bool BlockWalk::is_sealed(std::uint64_t k) const {
  if (block(k).plain) return true;
  const auto block_bytes = static_cast<std::size_t>(geometry_.block_bytes(k));
  const Bytes found = storage_.copy_at(block(k).offset, block_bytes, scratch<IndexBytes>());
  if (found.size() < block_bytes) return false;
  return seal_holds(seal_of(found.data()), found.subspan(kBlockHeaderBytes));
}

std::vector<std::optional<Slot>> BlockWalk::read_slots(std::uint64_t first, std::size_t count) const {
  std::vector<std::optional<Slot>> slots;
  slots.reserve(count);
  while (slots.size() < count) {
    const std::uint64_t chunk = first + slots.size();
    const std::uint64_t k = geometry_.block_of(chunk);
    const std::uint64_t position = chunk - geometry_.first_chunk(k);
    const auto run = static_cast<std::size_t>(
        std::min<std::uint64_t>(count - slots.size(), geometry_.capacity(k) - position));
    if (k < blocks_.size() && block(k).plain) {
      const auto& plain = block(k).plain->slots;
      for (std::size_t i = 0; i < run; ++i) {
        const std::size_t at = static_cast<std::size_t>(position) + i;
        slots.push_back(at < plain.size() ? std::optional(plain[at]) : std::nullopt);
      }
      continue;
    }
    const Bytes bytes = k < blocks_.size() ? storage_.copy_at(slot_offset(block(k).offset, position),
                                                              run * kSlotBytes, scratch<IndexBytes>())
                                           : Bytes{};
    for (std::size_t i = 0; i < run; ++i) {
      const bool there = (i + 1) * kSlotBytes <= bytes.size();
      slots.push_back(there ? chunk_slot(bytes.data() + i * kSlotBytes, salt_, chunk + i) : std::nullopt);
    }
  }
  return slots;
}

std::optional<BlockWalk::Tail> BlockWalk::find_clean_tail() const {
  const std::uint64_t k = blocks_.size() - 1;
  const std::uint32_t capacity = geometry_.capacity(k);
  const auto is_zero = [&](std::uint64_t position) {
    const Bytes bytes =
        storage_.copy_at(slot_offset(block(k).offset, position), kSlotBytes, scratch<IndexBytes>());
    return bytes.size() < kSlotBytes || is_zero_slot(bytes.data());
  };
  std::uint64_t low = 0;                             // every slot before is in use
  std::uint64_t high = std::uint64_t{capacity} + 1;  // the link position is the last one
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (is_zero(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low == 0) return std::nullopt;
  const std::uint64_t position = low - 1;
  const Bytes bytes =
      storage_.copy_at(slot_offset(block(k).offset, position), kSlotBytes, scratch<IndexBytes>());
  Tail tail;
  // A proof elsewhere would be one of an earlier time, and it says where it stands, so a search that damage
  // led astray cannot end on it.
  if (bytes.size() < kSlotBytes || !look_back(k, position, bytes.data(), tail) || !tail.clean)
    return std::nullopt;
  return tail;
}

// Takes the slot at a position into account, after all behind it. Returns whether it is a proof.
bool BlockWalk::look_back(std::uint64_t k, std::uint64_t position, const std::byte* slot, Tail& tail) const {
  const std::uint64_t chunk = geometry_.first_chunk(k) + position;
  const auto found =
      is_zero_slot(slot) ? std::nullopt : parse_slot(slot, salt_, slot_key(geometry_, k, position));
  if (is_commit_at(found, position)) {
    tail = {chunk, chunk, chunk, true, found->offset};
    return true;
  }
  if (position < geometry_.capacity(k)) {
    if (!found || !found->is_chunk()) {
      tail.unbroken_chunks = chunk;
      tail.whole_chunks = 0;
      return false;
    }
    if (tail.whole_chunks == 0 && found->has(slot_flags::kEnd)) tail.whole_chunks = chunk + 1;
  }
  if (!found || !found->has(slot_flags::kSynced)) return false;
  tail.durable_chunks = chunk;
  return true;
}

// The same for all slots of block k, from behind, up to a proof.
bool BlockWalk::look_back_through(std::uint64_t k, Tail& tail) const {
  for (std::uint64_t end = std::uint64_t{geometry_.capacity(k)} + 1; end > 0;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kScanSlots, end));
    end -= count;
    const Bytes bytes =
        storage_.copy_at(slot_offset(block(k).offset, end), count * kSlotBytes, scratch<IndexBytes>());
    for (std::size_t i = count; i-- > 0;) {
      const bool there = (i + 1) * kSlotBytes <= bytes.size();
      if (look_back(k, end + i, there ? bytes.data() + i * kSlotBytes : kNoSlot, tail)) return true;
    }
  }
  return false;
}

BlockWalk::Tail BlockWalk::find_tail() const {
  Tail tail;
  if (blocks_.back().plain) {
    const std::uint64_t first = geometry_.first_chunk(blocks_.size() - 1);
    tail.durable_chunks = tail.unbroken_chunks = tail.whole_chunks =
        first + blocks_.back().plain->slots.size();
    return tail;
  }
  if (const auto clean = find_clean_tail()) return *clean;
  tail.unbroken_chunks = geometry_.first_chunk(blocks_.size());
  bool proven = false;
  for (std::uint64_t k = blocks_.size(); k-- > 0 && !proven;) {
    proven = look_back_through(k, tail);
  }
  tail.whole_chunks = std::max(tail.whole_chunks, tail.durable_chunks);
  return tail;
}

CommittedEnd BlockWalk::find_end() const {
  const Tail tail = find_tail();
  return {tail.whole_chunks, extent_of(tail.whole_chunks).rows, tail.durable_chunks};
}

std::optional<Slot> BlockWalk::slot_at(std::uint64_t k, std::uint64_t position) const {
  const Bytes bytes =
      storage_.copy_at(slot_offset(block(k).offset, position), kSlotBytes, scratch<IndexBytes>());
  if (bytes.size() < kSlotBytes) return std::nullopt;
  return parse_slot(bytes.data(), salt_, slot_key(geometry_, k, position));
}

BlockWalk::Extent BlockWalk::extent_of(std::uint64_t chunks) const {
  const auto up_to = [](const Slot& slot) {
    std::uint64_t end = 0;
    return Extent{slot.row_end, checked_add(slot.offset, slot.size, &end) ? end : slot.offset};
  };
  if (chunks == 0) return {};
  if (const auto last = read_slots(chunks - 1, 1).front()) return up_to(*last);
  const std::uint64_t k = geometry_.block_of(chunks - 1);
  const auto next = slot_at(k, chunks - geometry_.first_chunk(k));
  if (next && !next->is_chunk()) return {next->row_end, next->offset};
  const Bytes record = next ? record_of(chunks, *next) : Bytes{};
  const std::uint32_t next_rows = record.empty() ? 0 : load<std::uint32_t>(record.data() + kRecordFixedBytes);
  if (next_rows > 0 && next_rows <= next->row_end) return {next->row_end - next_rows, next->offset};
  for (std::uint64_t chunk = chunks - 1; chunk > 0; --chunk) {
    if (const auto slot = read_slots(chunk - 1, 1).front()) return up_to(*slot);
  }
  return {};
}

Bytes BlockWalk::record_of(std::uint64_t chunk, const Slot& slot) const {
  const std::uint64_t file_bytes = storage_.size();
  if (slot.size < kMinRecordBytes || slot.offset > file_bytes || slot.size > file_bytes - slot.offset)
    return {};
  const Bytes record = storage_.copy_at(slot.offset, slot.size, scratch<IndexBytes>());
  if (record.size() != slot.size) return {};
  return record_holds(record, salt_, chunk, slot.record_check) ? record : Bytes{};
}

std::vector<Slot> BlockWalk::slots_of_records(std::uint64_t first, std::uint64_t most, Extent from) const {
  std::vector<Slot> slots;
  while (slots.size() < most) {
    Slot slot;
    slot.offset = align_up(from.end, kRecordAlignment);
    const Bytes head = storage_.copy_at(slot.offset, sizeof slot.size, scratch<IndexBytes>());
    if (head.size() < sizeof slot.size) break;
    slot.size = load<std::uint32_t>(head.data());
    if (slot.size < kMinRecordBytes) break;
    const std::uint64_t check_at = slot.offset + slot.size - kRecordCheckBytes;
    const Bytes check = storage_.copy_at(check_at, kRecordCheckBytes, scratch<IndexBytes>());
    if (check.size() < kRecordCheckBytes) break;
    slot.record_check = load<std::uint32_t>(check.data());
    const Bytes record = record_of(first + slots.size(), slot);
    if (record.empty()) break;
    slot.row_end = from.rows + load<std::uint32_t>(record.data() + kRecordFixedBytes);
    if (slot.row_end <= from.rows) break;
    const auto flags = load<std::uint64_t>(record.data() + kRecordFlagsAt);
    if ((flags & chunk_flags::kBatchCont) == 0) slot.flags = slot_flags::kEnd;
    from = {slot.row_end, slot.offset + slot.size};
    slots.push_back(slot);
  }
  return slots;
}

bool BlockWalk::goes_on_at(std::uint64_t chunk) const {
  const std::uint64_t k = blocks_.size() - 1;
  if (block(k).plain) return false;
  const std::uint64_t position = chunk - geometry_.first_chunk(k);
  const auto count = static_cast<std::size_t>(
      std::min<std::uint64_t>(kLookSlots, std::uint64_t{geometry_.capacity(k)} + 1 - position));
  const Bytes bytes =
      storage_.copy_at(slot_offset(block(k).offset, position), count * kSlotBytes, scratch<IndexBytes>());
  for (std::size_t i = 0; (i + 1) * kSlotBytes <= bytes.size(); ++i) {
    const std::byte* const slot = bytes.data() + i * kSlotBytes;
    if (is_zero_slot(slot)) continue;
    if (i > 0 || !is_commit_at(parse_slot(slot, salt_, slot_key(geometry_, k, position)), position))
      return true;
  }
  return false;
}

}  // namespace cdd
