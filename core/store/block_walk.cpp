#include "core/store/block_walk.h"

#include <algorithm>

#include "core/base/hash.h"

namespace cdd {
namespace {

constexpr std::size_t kScanSlots = 2048;  // of one read while scanning: 64 KiB
constexpr std::uint32_t kCommitFlags = slot_flags::kCommit | slot_flags::kSynced;

std::optional<Slot> chunk_slot(const std::byte* bytes, std::uint64_t salt, std::uint64_t chunk) {
  std::optional<Slot> slot = parse_slot(bytes, salt, chunk);
  if (slot && !slot->is_chunk()) slot.reset();
  return slot;
}

bool is_commit_at(const std::optional<Slot>& slot, std::uint64_t position) {
  return slot && (slot->flags & kCommitFlags) == kCommitFlags && slot->record_check == position;
}

}  // namespace

BlockWalk::BlockWalk(const Storage& storage, const Metadata& metadata, std::uint64_t first_block)
    : storage_(storage),
      salt_(metadata.check_salt()),
      geometry_(metadata.geometry()),
      is_plain_(metadata.index_type != BlockType::Slots) {
  add_block(first_block, 0);
  // Every block is written whole, as zeros, before anything leads to it.
  const std::uint64_t needed = blocks_[0].plain ? 0 : geometry_.block_bytes(0);
  if (storage.size() < first_block || storage.size() - first_block < needed) {
    fail(ErrorCode::Truncated, "%s was cut: it ends within its first index block", storage.name().c_str());
  }
  while (follow_link()) {
  }
}

void BlockWalk::add_block(std::uint64_t offset, std::uint64_t row_begin) {
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
  const std::size_t k = blocks_.size() - 1;
  const std::optional<Successor> next = successor_of(k);
  if (!next) return false;
  const std::uint64_t size = storage_.size();
  const std::uint64_t own_end =
      blocks_[k].offset + (blocks_[k].plain ? kBlockHeaderBytes : geometry_.block_bytes(k));
  const std::uint64_t needed = blocks_[k].plain ? kBlockHeaderBytes : geometry_.block_bytes(k + 1);
  if (next->offset < own_end || next->offset > size || size - next->offset < needed) {
    // Links are written before the file is synced: past the end, it is a link that outlived its block in a
    // crash. In a sealed block that cannot be, since sealing follows the sync.
    if (is_sealed(k)) {
      fail(ErrorCode::Truncated, "%s was cut: index block %llu should be at 0x%llx, the file has %llu bytes",
           storage_.name().c_str(), static_cast<unsigned long long>(k + 1),
           static_cast<unsigned long long>(next->offset), static_cast<unsigned long long>(size));
    }
    return false;
  }
  const bool is_wiped =
      !blocks_[k].plain && !has_header(next->offset, k + 1) && !has_first_slot(next->offset, k + 1);
  if (is_wiped && is_sealed(k)) {
    // The seal came after the sync that made the next block's header durable: what is missing was there.
    fail(ErrorCode::Checksum,
         "%s: index block %llu at 0x%llx is damaged, and the chunks it leads to are out of sight",
         storage_.name().c_str(), static_cast<unsigned long long>(k + 1),
         static_cast<unsigned long long>(next->offset));
  }
  add_block(next->offset, next->row_begin);
  return true;
}

std::optional<BlockWalk::Successor> BlockWalk::successor_of(std::size_t k) const {
  const Block& block = blocks_[k];
  if (block.plain) {
    if (block.plain->next == 0) return std::nullopt;
    return Successor{block.plain->next, block.plain->slots.back().row_end};
  }
  const std::uint32_t capacity = geometry_.capacity(k);
  const Bytes bytes = storage_.copy_at(slot_offset(k, capacity - 1), 2 * kSlotBytes, scratch(Stage::Record));
  if (bytes.size() < 2 * kSlotBytes) return std::nullopt;
  const auto link = parse_slot(bytes.data() + kSlotBytes, salt_, kLinkKey | k);
  if (link && link->has(slot_flags::kLink)) return Successor{link->offset, link->row_end};

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
  const Bytes bytes = storage_.copy_at(offset, kBlockHashAt, scratch(Stage::Record));
  std::byte expected[kBlockHeaderBytes];
  put_block_header(geometry_.block_bytes(k), expected);
  return std::equal(bytes.begin(), bytes.end(), expected, expected + kBlockHashAt);
}

// Whether the block at `offset` has a valid first slot: proof that it is block k, and in use.
bool BlockWalk::has_first_slot(std::uint64_t offset, std::uint64_t k) const {
  const Bytes slot = storage_.copy_at(offset + kBlockHeaderBytes, kSlotBytes, scratch(Stage::Record));
  return slot.size() == kSlotBytes && parse_slot(slot.data(), salt_, geometry_.first_chunk(k)).has_value();
}

bool BlockWalk::is_sealed(std::size_t k) const {
  if (blocks_[k].plain) return true;
  const auto block_bytes = static_cast<std::size_t>(geometry_.block_bytes(k));
  const Bytes block = storage_.copy_at(blocks_[k].offset, block_bytes, scratch(Stage::Record));
  if (block.size() < block_bytes) return false;
  const Hash128 hash = {load<std::uint64_t>(block.data() + kBlockHashAt),
                        load<std::uint64_t>(block.data() + kBlockHashAt + 8)};
  return hash != Hash128{} && hash128(block.subspan(kBlockHeaderBytes)) == hash;
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
    const bool known = k < blocks_.size();
    const auto block = static_cast<std::size_t>(known ? k : 0);
    if (known && blocks_[block].plain) {
      const auto& plain = blocks_[block].plain->slots;
      const auto at = static_cast<std::size_t>(position);
      for (std::size_t i = 0; i < run; ++i) {
        slots.push_back(at + i < plain.size() ? std::optional(plain[at + i]) : std::nullopt);
      }
      continue;
    }
    const Bytes bytes =
        known ? storage_.copy_at(slot_offset(block, position), run * kSlotBytes, scratch(Stage::Record))
              : Bytes{};
    for (std::size_t i = 0; i < run; ++i) {
      const bool there = (i + 1) * kSlotBytes <= bytes.size();
      slots.push_back(there ? chunk_slot(bytes.data() + i * kSlotBytes, salt_, chunk + i) : std::nullopt);
    }
  }
  return slots;
}

std::optional<BlockWalk::Tail> BlockWalk::find_clean_tail() const {
  const std::size_t k = blocks_.size() - 1;
  const std::uint32_t capacity = geometry_.capacity(k);
  const auto is_zero = [&](std::uint64_t position) {
    const Bytes bytes = storage_.copy_at(slot_offset(k, position), kSlotBytes, scratch(Stage::Record));
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
  const std::uint64_t key = position == capacity ? kLinkKey | k : geometry_.first_chunk(k) + position;
  const Bytes bytes = storage_.copy_at(slot_offset(k, position), kSlotBytes, scratch(Stage::Record));
  if (bytes.size() < kSlotBytes) return std::nullopt;
  const auto slot = parse_slot(bytes.data(), salt_, key);
  // Only one commit slot is ever in a file, and it says where it stands, so a search that damage led astray
  // cannot end on it.
  if (!is_commit_at(slot, position)) return std::nullopt;
  Tail tail;
  tail.slots.resize(static_cast<std::size_t>(position));
  tail.clean = true;
  tail.end = slot->offset;
  tail.rows = slot->row_end;
  tail.durable_chunks = tail.unbroken_chunks = geometry_.first_chunk(k) + position;
  return tail;
}

BlockWalk::Tail BlockWalk::scan_tail() const {
  const std::size_t k = blocks_.size() - 1;
  Tail tail;
  if (blocks_[k].plain) {
    tail.slots.assign(blocks_[k].plain->slots.begin(), blocks_[k].plain->slots.end());
    tail.durable_chunks = tail.unbroken_chunks = geometry_.first_chunk(k) + tail.slots.size();
    return tail;
  }
  const std::uint64_t first = geometry_.first_chunk(k);
  const std::uint64_t capacity = geometry_.capacity(k);
  std::vector<std::optional<Slot>> found;  // valid slots of any kind, the link position last
  found.reserve(static_cast<std::size_t>(capacity) + 1);
  std::size_t used = 0;  // after the last slot that proves durability: what is damaged before it is damage
  while (found.size() <= capacity) {
    const std::size_t batch =
        std::min<std::size_t>(kScanSlots, static_cast<std::size_t>(capacity) + 1 - found.size());
    const Bytes bytes =
        storage_.copy_at(slot_offset(k, found.size()), batch * kSlotBytes, scratch(Stage::Record));
    for (std::size_t i = 0; i < batch; ++i) {
      const std::uint64_t position = found.size();
      const std::uint64_t key = position == capacity ? kLinkKey | k : first + position;
      const bool there = (i + 1) * kSlotBytes <= bytes.size();
      found.push_back(there ? parse_slot(bytes.data() + i * kSlotBytes, salt_, key) : std::nullopt);
      const auto& slot = found.back();
      const bool commit = is_commit_at(slot, position);
      if (commit || (slot && slot->is_chunk() && slot->has(slot_flags::kSynced))) used = found.size();
      if (commit) tail.end = slot->offset;
    }
  }
  std::size_t n = 0;
  for (; n < capacity; ++n) {
    const auto& slot = found[n];
    if (is_commit_at(slot, n)) break;
    if (!(slot && slot->is_chunk()) && n >= used) break;
  }
  tail.clean = is_commit_at(found[n], n);
  if (tail.clean) tail.rows = found[n]->row_end;
  found.resize(n);
  for (auto& slot : found) {
    if (slot && !slot->is_chunk()) slot.reset();
  }
  tail.slots = std::move(found);
  find_proof(tail);
  return tail;
}

// Looks for the last SYNCED slot, in earlier blocks too when the tail block has none.
void BlockWalk::find_proof(Tail& tail) const {
  const std::uint64_t first = geometry_.first_chunk(blocks_.size() - 1);
  tail.durable_chunks = 0;
  tail.unbroken_chunks = first + tail.slots.size();
  if (tail.clean) {
    tail.durable_chunks = tail.unbroken_chunks;
    return;
  }
  // Backwards from the end: slots that do not hold count only behind the proof.
  std::uint64_t begin = first;
  std::vector<std::optional<Slot>> earlier;
  for (const auto* slots = &tail.slots;; slots = &earlier) {
    for (std::size_t i = slots->size(); i-- > 0;) {
      const auto& slot = (*slots)[i];
      if (!slot) tail.unbroken_chunks = begin + i;
      if (!slot || !slot->has(slot_flags::kSynced)) continue;
      tail.durable_chunks = begin + i;
      return;
    }
    if (begin == 0) return;
    const std::uint64_t count = std::min<std::uint64_t>(kScanSlots, begin);
    begin -= count;
    earlier = read_slots(begin, static_cast<std::size_t>(count));
  }
}

CommittedEnd BlockWalk::find_end() const {
  const std::size_t k = blocks_.size() - 1;
  std::optional<Tail> clean;
  if (!blocks_[k].plain) clean = find_clean_tail();
  const Tail tail = clean ? std::move(*clean) : scan_tail();
  const std::uint64_t first = geometry_.first_chunk(k);
  const auto slot_at = [&](std::uint64_t chunk) {
    return chunk >= first ? tail.slots[static_cast<std::size_t>(chunk - first)]
                          : read_slots(chunk, 1).front();
  };
  // Whole appends only: step back over chunks of one that has no END yet.
  std::uint64_t n = tail.unbroken_chunks;
  while (n > tail.durable_chunks && !slot_at(n - 1)->has(slot_flags::kEnd)) --n;
  CommittedEnd end{n, 0, std::min(n, tail.durable_chunks)};
  if (n > 0 && tail.clean) end.rows = tail.rows;
  for (std::uint64_t chunk = n; chunk > 0 && !tail.clean; --chunk) {
    const auto slot = slot_at(chunk - 1);
    if (!slot) continue;  // damaged: the one before says what it can
    end.rows = slot->row_end;
    break;
  }
  return end;
}

}  // namespace cdd
