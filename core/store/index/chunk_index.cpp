#include "core/store/index/chunk_index.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/first_above.h"
#include "core/os/fork_gate.h"
#include "core/simd/fetch.h"

namespace cdd {
namespace {

constexpr std::size_t kRefreshSlots = 64;  // of one read while following a live file: 2 KiB

template <class T>
std::byte* store_next(std::byte* to, T value) noexcept {
  store<T>(to, value);
  return to + sizeof(T);
}

}  // namespace

ChunkIndex::ChunkIndex(const Storage& storage, const Metadata& metadata, std::uint64_t first_block)
    : walk_(storage, metadata, first_block) {
  const CommittedEnd end = walk_.find_end();
  durable_chunks_.store(end.durable_chunks, std::memory_order_release);
  rows_.store(end.rows, std::memory_order_release);
  chunks_.store(end.chunks, std::memory_order_release);
}

ChunkIndex::~ChunkIndex() {
  for (const Table& page : first_table_) delete page.load(std::memory_order_relaxed);
  for (std::size_t t = 1; t < kTables; ++t) {
    Table* const table = tables_[t].load(std::memory_order_relaxed);
    if (table == nullptr) continue;
    for (std::size_t i = 0; i < kFirstTablePages << t; ++i) delete table[i].load(std::memory_order_relaxed);
    delete[] table;
  }
}

// Table t holds pages [8 * (2^t - 1), 8 * (2^(t+1) - 1)), so no table ever moves.
ChunkIndex::TablePlace ChunkIndex::table_place(std::uint64_t page) noexcept {
  const auto t = static_cast<std::size_t>(std::bit_width(page / kFirstTablePages + 1)) - 1;
  return {t, static_cast<std::size_t>(page - kFirstTablePages * ((std::uint64_t{1} << t) - 1))};
}

// Where the pointer to a page stands. The caller holds the mutex.
std::atomic<ChunkIndex::Page*>& ChunkIndex::page_pointer(std::uint64_t page) const {
  const TablePlace place = table_place(page);
  if (place.table == 0) return first_table_[place.at];
  Table* table = tables_[place.table].load(std::memory_order_acquire);
  if (table == nullptr) {
    table = new Table[kFirstTablePages << place.table]();
    tables_[place.table].store(table, std::memory_order_release);
  }
  return table[place.at];
}

// Null for one that was not loaded yet.
const ChunkIndex::Page* ChunkIndex::known_page(std::uint64_t page) const noexcept {
  const TablePlace place = table_place(page);
  if (place.table == 0) return first_table_[place.at].load(std::memory_order_acquire);
  const Table* const table = tables_[place.table].load(std::memory_order_acquire);
  return table == nullptr ? nullptr : table[place.at].load(std::memory_order_acquire);
}

const ChunkIndex::Page& ChunkIndex::page_with(std::uint64_t chunk) const {
  const std::uint64_t number = chunk / kPageEntries;
  const Page* const page = known_page(number);
  if (page != nullptr && page->filled.load(std::memory_order_acquire) > chunk % kPageEntries) return *page;
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  return load_page(number, chunks());
}

const ChunkIndex::Page& ChunkIndex::load_page(std::uint64_t number, std::uint64_t chunks) const {
  std::atomic<Page*>& pointer = page_pointer(number);
  Page* page = pointer.load(std::memory_order_relaxed);
  const std::uint64_t first = number * kPageEntries;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(kPageEntries, chunks - first));
  if (page == nullptr) {
    auto fresh = std::make_unique<Page>();
    if (first > 0) {
      // One slot tells where this page begins; only when it is damaged must the page before be loaded.
      const auto before = walk_.read_slots(first - 1, 1).front();
      if (before) {
        fresh->row_begin = before->row_end;
        fresh->data_end = before->offset + before->size;
      } else {
        const Page& previous = load_page(number - 1, first);
        fresh->follows_damage = true;
        fresh->row_begin = previous.row_end[kPageEntries - 1];
        fresh->data_end = previous.data_end;
      }
    }
    fill_page(*fresh, first, count);
    page = fresh.release();
    pointer.store(page, std::memory_order_release);
  } else if (page->filled.load(std::memory_order_relaxed) < count) {
    fill_page(*page, first, count);
  }
  return *page;
}

// Adds entries up to `count`. A slot that is damaged, or contradicts the ones before it, becomes an entry of
// no rows: every other chunk keeps its rows.
void ChunkIndex::fill_page(Page& page, std::uint64_t first, std::uint32_t count) const {
  const std::uint32_t filled = page.filled.load(std::memory_order_relaxed);
  const auto slots = walk_.read_slots(first + filled, count - filled);
  std::uint64_t row_end = filled == 0 ? page.row_begin : page.row_end[filled - 1];
  for (std::uint32_t i = filled; i < count; ++i) {
    const auto& slot = slots[i - filled];
    const bool sound = slot && slot->size >= kMinRecordBytes && slot->offset >= page.data_end &&
                       slot->offset + slot->size > slot->offset && slot->row_end > row_end;
    if (sound) {
      row_end = slot->row_end;
      page.data_end = slot->offset + slot->size;
      page.record[i] = {slot->offset, slot->size, slot->record_check};
    }
    page.row_end[i] = row_end;
  }
  page.filled.store(count, std::memory_order_release);
}

void ChunkIndex::tell(Ahead& ahead) const noexcept {
  for (std::size_t i = 0; i < Ahead::kPages; ++i) {
    ahead.pages_[i].store(known_page(i), std::memory_order_relaxed);
  }
  const double in_a_row =
      static_cast<double>(chunks()) / static_cast<double>(std::max<std::uint64_t>(1, rows()));
  ahead.chunks_in_a_row_.store(in_a_row, std::memory_order_relaxed);
}

// The same guess as that of chunk_of_row().
bool ChunkIndex::Ahead::fetch(std::uint64_t row) const noexcept {
  constexpr std::size_t kNext = 3;  // entries of chunks that a window goes on in
  const std::size_t chunk = proportional(row, chunks_in_a_row_.load(std::memory_order_relaxed));
  if (chunk >= kPages * kPageEntries) return true;
  const void* const page = pages_[chunk / kPageEntries].load(std::memory_order_relaxed);
  if (page == nullptr) return false;
  const std::size_t at = chunk % kPageEntries;
  const std::byte* const begin = as_bytes(page);
  const std::byte* const row_end = begin + offsetof(Page, row_end);
  const std::byte* const record = begin + offsetof(Page, record);
  cdd::fetch_ahead(begin, 1);
  cdd::fetch_ahead(row_end + at * sizeof(Page::row_end[0]), 1);
  cdd::fetch_ahead(row_end + (kPageEntries - 1) * sizeof(Page::row_end[0]), 1);
  cdd::fetch_ahead(record + at * sizeof(Record), 1);
  cdd::fetch_ahead(record + (at + kNext) * sizeof(Record), 1);
  return true;
}

ChunkEntry ChunkIndex::entry(std::uint64_t chunk) const {
  if (chunk >= chunks()) return {};
  const Page& page = page_with(chunk);
  const std::size_t i = chunk % kPageEntries;
  ChunkEntry entry;
  entry.offset = page.record[i].offset;
  entry.size = page.record[i].size;
  entry.record_check = page.record[i].check;
  entry.row_end = page.row_end[i];
  entry.row_begin = i == 0 ? page.row_begin : page.row_end[i - 1];
  entry.follows_damage = i == 0 ? page.follows_damage : page.record[i - 1].size == 0;
  return entry;
}

// Chunks have about as many rows each, so a proportional guess of the chunk has the right page, all but
// always.
std::uint64_t ChunkIndex::chunk_of_row(std::uint64_t row) const {
  const std::uint64_t chunks = this->chunks();
  std::uint64_t low = 0;
  std::uint64_t high = (chunks - 1) / kPageEntries;
  const auto guess = static_cast<std::uint64_t>(static_cast<double>(row) / static_cast<double>(rows()) *
                                                static_cast<double>(chunks)) /
                     kPageEntries;
  for (std::uint64_t probe = std::min(guess, high);; probe = low + (high - low) / 2) {
    const std::uint64_t first = probe * kPageEntries;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPageEntries, chunks - first));
    const Page& page = page_with(first + count - 1);
    const std::span ends(page.row_end.data(), count);
    if (low < high && ends.back() <= row) {
      low = std::min(probe + 1, high);
    } else if (low < high && page.row_begin > row) {
      high = std::max(probe - 1, low);
    } else {
      const std::uint64_t page_rows = std::max<std::uint64_t>(1, ends.back() - page.row_begin);
      return first +
             first_above(ends, row, static_cast<std::size_t>((row - page.row_begin) * count / page_rows));
    }
  }
}

bool ChunkIndex::refresh() {
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  const BlockGeometry& geometry = walk_.geometry();
  const std::uint64_t before = chunks();
  walk_.forget_blocks_after(before);
  CommittedEnd end{before, this->rows(), this->durable_chunks()};
  // One slot tells whether anything is new; it seldom is.
  std::size_t most = 1;
  for (std::uint64_t next = before;; most = kRefreshSlots) {  // chunks seen; to the last END, whole appends
    if (next == geometry.first_chunk(walk_.blocks().size()) && !walk_.follow_link()) break;
    const std::uint64_t block_end = geometry.first_chunk(walk_.blocks().size());
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, block_end - next));
    const auto slots = walk_.read_slots(next, count);
    std::size_t i = 0;
    for (; i < count && slots[i]; ++i) {
      if (slots[i]->has(slot_flags::kSynced)) end.durable_chunks = next + i;
      if (slots[i]->has(slot_flags::kEnd)) end = {next + i + 1, slots[i]->row_end, end.durable_chunks};
    }
    next += i;
    if (i == count) continue;
    if (walk_.goes_on_at(next)) look_behind_damage(end);
    break;
  }
  if (end.chunks == before) return false;
  durable_chunks_.store(std::min(end.durable_chunks, end.chunks), std::memory_order_release);
  // In this order: whoever sees the rows finds their chunks.
  chunks_.store(end.chunks, std::memory_order_release);
  rows_.store(std::max(this->rows(), end.rows), std::memory_order_release);
  return true;
}

void ChunkIndex::show_only(std::uint64_t chunks, std::uint64_t rows) noexcept {
  durable_chunks_.store(std::min(durable_chunks(), chunks), std::memory_order_release);
  chunks_.store(chunks, std::memory_order_release);
  rows_.store(rows, std::memory_order_release);
}

Hash128 ChunkIndex::digest(std::uint64_t chunks) const {
  constexpr std::size_t kEntryBytes = 24;
  std::array<std::byte, sizeof(Hash128) + kPageEntries * kEntryBytes> bytes{};
  Hash128 hash{};
  for (std::uint64_t first = 0; first < chunks; first += kPageEntries) {
    std::byte* to = bytes.data();
    for (const std::uint64_t half : hash) to = store_next(to, half);
    const std::uint64_t end = std::min<std::uint64_t>(first + kPageEntries, chunks);
    for (std::uint64_t chunk = first; chunk < end; ++chunk) {
      const ChunkEntry entry = this->entry(chunk);
      to = store_next(to, entry.row_end);
      to = store_next(to, entry.offset);
      to = store_next(to, entry.size);
      to = store_next(to, entry.record_check);
    }
    hash = hash128({bytes.data(), static_cast<std::size_t>(to - bytes.data())});
  }
  return hash;
}

// A slot that does not hold is being written, or damaged: then a proof stands behind it, maybe far away.
void ChunkIndex::look_behind_damage(CommittedEnd& end) {
  while (walk_.follow_link()) {
  }
  const CommittedEnd found = walk_.find_end();
  if (found.chunks > end.chunks) end = found;
}

}  // namespace cdd
