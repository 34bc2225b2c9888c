// Reads any range of rows of a store, straight into the caller's memory.
//
// All reading functions may be called from any number of threads at once, beside a writer in this or another
// process; nothing here holds a lock while it reads or decodes. A Reader survives a fork.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/codec/chunk_codec.h"
#include "core/os/shared_pages.h"
#include "core/storage/storage.h"
#include "core/store/first_items.h"
#include "core/store/header.h"
#include "core/store/index/chunk_index.h"
#include "core/store/pieces.h"
#include "core/store/rows.h"

namespace cdd {

// Which store a reader is of and how much of it it shows: what a copy of the reader must find again.
struct Snapshot {
  std::array<std::byte, 16> id{};
  std::uint64_t chunks = 0;
  std::uint64_t rows = 0;
  Hash128 digest{};  // of the index (ChunkIndex::digest): copies of one file that grew apart have one id
};

struct ReaderOptions {
  Verify verify = Verify::Stored;
  bool verify_once = false;  // also Verify::Full, the first time this Reader touches a chunk
  // Chunks that claim more raw bytes are refused (Limit) before anything is allocated for them.
  std::uint64_t max_chunk_raw_bytes = kMaxChunkRawBytes;
  // Shows what another reader showed. Opening throws Corrupt for another store, Truncated for a shorter one.
  std::optional<Snapshot> as_of = std::nullopt;
};

struct ChunkInfo {
  std::uint64_t start = 0;  // rows [start, stop) of the store
  std::uint64_t stop = 0;
  std::string codec;  // as codec_name() has it
  std::uint64_t raw_bytes = 0;
  std::uint64_t stored_bytes = 0;  // of the whole record
  std::uint64_t offset = 0;        // of the record in the file
};

// Chunks [first, end).
struct ChunkRange {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

class Reader final : public Rows, public InSharedPages {
 public:
  // Reads the header and the ends of the index, no chunk. Throws Corrupt, Truncated, Checksum, Unsupported,
  // Io.
  explicit Reader(std::shared_ptr<Storage> storage, const ReaderOptions& options = {});

  // Unset as long as nothing was appended to a store that was created without a layout.
  const RowLayout& layout() const noexcept override {
    return layout_known_.load(std::memory_order_acquire) ? layout_ : kUnset;
  }
  std::uint64_t rows() const noexcept override { return layout().is_set() ? index_.rows() : 0; }
  std::uint64_t chunks() const noexcept { return layout().is_set() ? index_.chunks() : 0; }
  const Header& header() const noexcept { return header_; }
  const Storage& storage() const noexcept { return *storage_; }

  // Its own bytes that each read looks at, of three cache lines: who reads many files in turns has them
  // fetched early.
  static constexpr std::size_t kWarmBytes = 192;
  const std::byte* warm_bytes() const noexcept { return reinterpret_cast<const std::byte*>(&storage_); }

  // Where in memory that lies which reading rows begins with, beside what leads to the reader: so all of it
  // is fetched at once, where each address is found behind the one before. It may outlive the reader.
  struct Ahead {
    std::atomic<const std::byte*> warm{nullptr};
    std::atomic<const Storage*> storage{nullptr};
    ChunkIndex::Ahead index;

    // Has the processor fetch it. False where the reader should tell it again.
    bool fetch(std::uint64_t row) const noexcept;
  };
  void tell(Ahead& ahead) const noexcept;

  // Rows [range.first, range.first + range.count) into `out`, which has exactly their size; with `cells` only
  // these of each row, one after the other without gaps.
  // Throws OutOfRange, InvalidArgument (size of out, cells), and at the chunk's Place Checksum, Corrupt,
  // Truncated, Unsupported, Limit; Io.
  void read_into(RowRange range, MutableBytes out, const Cells* cells = nullptr) const override;

  // Many windows in one call: `rows` rows from each of `starts`, one after the other into `out`, which has
  // exactly their size. Rows that several windows share are decoded once, chunks are read in file order, and
  // several threads work where it pays (core/threads/for_each.h). Throws as read_into.
  void read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, MutableBytes out,
                    const Cells* cells = nullptr) const override;

  // Cuts rows that are to stand at `out` into pieces of chunks and adds these; `cells` is null or what
  // checked_cells() gave. Throws OutOfRange, and Checksum where the index does not lead to all of them.
  void cut_into_pieces(RowRange range, const Cells* cells, std::byte* out, std::vector<Piece>& pieces) const;
  // Has the processor fetch where the record of a chunk begins and ends.
  void fetch_record_ahead(std::uint64_t chunk) const;
  // Reads pieces of one chunk of this reader, in order of their first row.
  void read_chunk_pieces(std::span<const Piece> pieces) const;

  // As Rows says. The first values of chunks that were looked at stay in memory, so a warm search reads one
  // chunk.
  void search(Bytes values, Side side, std::span<std::uint64_t> places) const override {
    search(values, side, places, {0, rows()});
  }
  // The same among `range` alone, as row numbers of the store.
  void search(Bytes values, Side side, std::span<std::uint64_t> places, RowRange range) const;

  // The chunks that rows of `range` stand in: [first, end). Throws OutOfRange.
  ChunkRange chunks_of(RowRange range) const;

  // Whether reading chunk i needs no disk, as far as the system tells.
  bool is_cached(std::uint64_t chunk) const;

  // Which bytes of the storage the windows are read from, in order and once each: chunks of neighbouring rows
  // are ranges of their own. None for what a damaged slot hides. Throws OutOfRange.
  std::vector<ByteRange> plan(std::span<const std::uint64_t> starts, std::uint64_t rows) const;

  void add_range_of(std::uint64_t chunk, std::vector<ByteRange>& ranges) const;

  // As Storage has it: then read_windows and read_into ask() for their chunks first.
  bool is_far() const noexcept { return is_far_; }

  // Has the system read the chunks of these rows ahead, where it can; returns at once. Throws OutOfRange.
  void prefetch(RowRange range) const;

  // The rows of chunk i, from the index alone unless that is damaged there. Throws OutOfRange and as
  // read_into.
  RowRange chunk_rows(std::uint64_t chunk) const;

  // What the index and the record's header say of chunk i. Throws OutOfRange, and Checksum for a damaged
  // slot.
  ChunkInfo chunk_info(std::uint64_t chunk) const;

  // Makes rows visible that were appended since. Returns whether there are any.
  bool refresh();

  // What this reader shows now. Reads the whole index.
  Snapshot snapshot() const;

  // Decodes chunk i with every check there is. Throws what is wrong with it.
  void verify_chunk(std::uint64_t chunk) const;

  // The same for chunks [first, first + count), several threads at once: an error for each bad one, in order.
  std::vector<Error> verify_chunks(std::uint64_t first, std::uint64_t count) const;

 private:
  static const RowLayout kUnset;
  // A chunk whose record is in hand.
  struct OpenChunk {
    std::uint64_t number = 0;
    std::uint64_t offset = 0;
    RowRange rows;
    Bytes record;
    std::uint32_t check = 0;  // of the record, as the index has it
    bool is_owned = false;    // a copy: else others can change it while it is read
  };
  void show(const Snapshot& snapshot);
  void load_layout();
  void ask(RowRange range) const;
  void check_chunk(std::uint64_t chunk) const;
  void read_near(const OpenChunk& open, std::span<const Piece> pieces, std::uint64_t end) const;
  [[noreturn]] void need_chunk_before(const OpenChunk& open) const;
  template <class Item>
  class SearchedChunk;
  template <class Item>
  std::uint64_t chunk_for(Item value, Side side, std::uint64_t first, std::uint64_t end) const;
  template <class Item>
  void search_items(Bytes values, Side side, std::span<std::uint64_t> places, RowRange range) const;
  template <class Item>
  Item first_item(std::uint64_t chunk) const;
  template <class Item>
  void narrow(Item value, Side side, std::uint64_t* low, std::uint64_t* high) const;
  void read_range(RowRange range, const Cells* cells, std::byte* out) const;
  void read_range_in_parallel(RowRange range, const Cells* cells, std::byte* out) const;
  OpenChunk open_chunk(std::uint64_t chunk) const;
  OpenChunk open_chunk_with(std::uint64_t chunk, std::uint64_t row) const;
  Bytes read_record(const ChunkEntry& entry) const;
  void own_record(OpenChunk& open, bool at_any_cost) const;
  void check_rows(std::uint64_t rows) const;
  void decode(const OpenChunk& chunk, RowRange range, const Cells* cells, std::byte* out) const;
  void decode(const OpenChunk& chunk, RowRange range, const Cells* cells, std::byte* out,
              Verify verify) const;
  void decode_shared(const OpenChunk& chunk, RowRange range, const Cells* cells, std::byte* out,
                     Verify verify) const;
  bool first_touch(std::uint64_t chunk) const;
  bool ends_within_file(std::uint64_t end) const;
  void learn_fixed_bytes();

  const Header header_;
  // What every read needs stands together, from here to the first numbers of the index: of a thousand files
  // that are read in turns, it is cold each time.
  alignas(64) const std::shared_ptr<Storage> storage_;
  const bool is_far_;
  const bool verify_once_;
  const Verify verify_;
  std::atomic<bool> layout_known_{false};
  mutable std::atomic<std::uint64_t> file_bytes_;  // known so far; grows
  // Where the last chunk ends that no writer takes back. What is before may be read through a map.
  std::atomic<std::uint64_t> fixed_bytes_{0};
  const std::uint64_t check_salt_;
  const std::uint64_t max_chunk_raw_bytes_;  // of the options or the header, whichever is less
  RowLayout layout_;
  ChunkIndex index_;
  mutable std::mutex refresh_mutex_;
  mutable std::mutex touched_mutex_;  // verify_once only
  mutable std::vector<bool> touched_;
  mutable FirstItems first_items_;  // of chunks, as search() comes to know them
};

}  // namespace cdd
