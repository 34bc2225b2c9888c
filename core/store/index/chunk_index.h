// A reader's picture of the index: row -> chunk -> place of its record, loaded page by page as it is asked
// for.
//
// Lookups take no lock once a page is loaded: pages never move, entries never change once published, and
// refresh() only adds entries behind those that readers may see. Loading and refreshing take a mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/hash.h"
#include "core/os/shared_pages.h"
#include "core/store/index/block_walk.h"

namespace cdd {

// One committed chunk.
struct ChunkEntry {
  std::uint64_t offset = 0;
  std::uint64_t row_begin = 0;
  std::uint64_t row_end = 0;
  std::uint32_t size = 0;  // 0: its slot is damaged, so the chunk cannot be found
  std::uint32_t record_check = 0;
  // The slot before is damaged: row_begin is that chunk's, and only the record knows how many rows are its
  // own.
  bool follows_damage = false;

  bool is_damaged() const noexcept { return size == 0; }
};

class ChunkIndex {
 public:
  // Where the pages lie that a row is looked up in. It may outlive the index: nothing is read there.
  class Ahead {
   public:
    // Has the processor fetch what looking up `row` reads of its page. False where the page was not known.
    bool fetch(std::uint64_t row) const noexcept;

   private:
    friend class ChunkIndex;
    static constexpr std::size_t kPages = 7;  // with the number below a cache line

    std::array<std::atomic<const void*>, kPages> pages_{};
    std::atomic<double> chunks_in_a_row_{0};
  };
  // The pages that are loaded by now.
  void tell(Ahead& ahead) const noexcept;

  // Of its own bytes those that each look-up in a file of some chunks needs come first: as many.
  static constexpr std::size_t kWarmBytes = 80;

  ChunkIndex(const Storage& storage, const Metadata& metadata, std::uint64_t first_block);
  ~ChunkIndex();
  ChunkIndex(const ChunkIndex&) = delete;
  ChunkIndex& operator=(const ChunkIndex&) = delete;

  // Committed rows and chunks as of the last refresh. All rows below rows() can be looked up.
  std::uint64_t rows() const noexcept { return rows_.load(std::memory_order_acquire); }
  std::uint64_t chunks() const noexcept { return chunks_.load(std::memory_order_acquire); }
  // Chunks that are known to be durable: what is wrong with them is damage, and no writer takes them back.
  std::uint64_t durable_chunks() const noexcept { return durable_chunks_.load(std::memory_order_acquire); }

  // Looks for appends made since. Returns whether there were any.
  bool refresh();

  // Shows the first `chunks` chunks with their rows alone, until refresh(). Before any other thread looks.
  void show_only(std::uint64_t chunks, std::uint64_t rows) noexcept;

  // Names what the first `chunks` slots say: two indexes have the same digest if they lead to the same
  // records at the same places, each of which its slot's check names in turn.
  Hash128 digest(std::uint64_t chunks) const;

  // The entry of a chunk; a damaged one for i >= chunks().
  ChunkEntry entry(std::uint64_t chunk) const;

  // The first chunk whose row_end is above `row` < rows(): the one that holds it, unless that one is damaged.
  // chunks() when the last slots are damaged.
  std::uint64_t chunk_of_row(std::uint64_t row) const;

 private:
  static constexpr std::size_t kPageEntries = 128;
  static constexpr std::size_t kFirstTablePages = 8;
  static constexpr std::size_t kTables = 35;  // each twice as long as the one before

  struct Record {
    std::uint64_t offset = 0;
    std::uint32_t size = 0;
    std::uint32_t check = 0;
  };
  // The ends of rows stand together, so that the search for a row touches little memory; what is known of a
  // record is in one line. Entries below `filled` never change.
  struct alignas(64) Page : InSharedPages {
    std::atomic<std::uint32_t> filled{0};
    bool follows_damage = false;  // the slot before the page is damaged
    std::uint64_t row_begin = 0;  // rows before the page
    std::uint64_t data_end = 0;   // where the record before entry `filled` ends; only for filling
    std::array<std::uint64_t, kPageEntries> row_end{};
    std::array<Record, kPageEntries> record{};
  };
  using Table = std::atomic<Page*>;
  struct TablePlace {
    std::size_t table = 0;
    std::size_t at = 0;
  };

  const Page& page_with(std::uint64_t chunk) const;
  const Page& load_page(std::uint64_t page, std::uint64_t chunks) const;
  static TablePlace table_place(std::uint64_t page) noexcept;
  std::atomic<Page*>& page_pointer(std::uint64_t page) const;
  const Page* known_page(std::uint64_t page) const noexcept;
  void fill_page(Page& page, std::uint64_t first, std::uint32_t count) const;
  void look_behind_damage(CommittedEnd& end);

  std::atomic<std::uint64_t> chunks_{0};
  std::atomic<std::uint64_t> rows_{0};
  mutable std::array<Table, kFirstTablePages> first_table_{};  // beside the numbers that each look-up needs
  mutable std::array<std::atomic<Table*>, kTables> tables_{};  // the first stays null
  std::atomic<std::uint64_t> durable_chunks_{0};
  mutable std::mutex mutex_;  // guards walk_ and the making and filling of pages
  BlockWalk walk_;
};

}  // namespace cdd
