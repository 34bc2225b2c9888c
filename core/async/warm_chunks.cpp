#include "core/async/warm_chunks.h"

#include <new>

namespace cdd {

WarmChunks::~WarmChunks() {
  for (const auto& page : pages_) delete page.load(std::memory_order_relaxed);
}

bool WarmChunks::has(std::uint64_t chunk) const noexcept {
  if (chunk / kPageBits >= kPages) return false;
  const Page* const page = pages_[chunk / kPageBits].load(std::memory_order_acquire);
  if (page == nullptr) return false;
  const std::uint64_t bit = chunk % kPageBits;
  return ((*page)[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1) != 0;
}

void WarmChunks::add(std::uint64_t chunk) noexcept {
  if (chunk / kPageBits >= kPages) return;
  std::atomic<Page*>& place = pages_[chunk / kPageBits];
  Page* page = place.load(std::memory_order_acquire);
  if (page == nullptr) {
    Page* const fresh = new (std::nothrow) Page{};
    if (fresh == nullptr) return;
    if (place.compare_exchange_strong(page, fresh, std::memory_order_acq_rel)) {
      page = fresh;
    } else {
      delete fresh;
    }
  }
  const std::uint64_t bit = chunk % kPageBits;
  (*page)[bit / 64].fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_relaxed);
}

namespace {

// The chunks of rows that are there and take at most `most` bytes; none otherwise.
ChunkRange chunks_of_few(const Reader& reader, RowRange range, std::uint64_t most) {
  const std::uint64_t rows = reader.rows();
  if (range.first > rows || range.count > rows - range.first) return {1, 0};
  if (range.count > most || range.count * reader.layout().row_bytes() > most) return {1, 0};
  return reader.chunks_of(range);
}

}  // namespace

bool WarmChunks::is_warm(const Reader& reader, RowRange range) {
  const ChunkRange chunks = chunks_of_few(reader, range, kInlineBytes);
  for (std::uint64_t chunk = chunks.first; chunk < chunks.end; ++chunk) {
    if (has(chunk)) continue;
    if (!reader.is_cached(chunk)) return false;
    add(chunk);
  }
  return chunks.first <= chunks.end;
}

bool WarmChunks::is_short(const Reader& reader, RowRange range) const {
  const ChunkRange chunks = chunks_of_few(reader, range, kShortBytes);
  for (std::uint64_t chunk = chunks.first; chunk < chunks.end; ++chunk) {
    if (!has(chunk)) return false;
  }
  return chunks.first <= chunks.end;
}

void WarmChunks::add(const Reader& reader, RowRange range) {
  const ChunkRange chunks = reader.chunks_of(range);
  for (std::uint64_t chunk = chunks.first; chunk < chunks.end; ++chunk) add(chunk);
}

}  // namespace cdd
