// Appends rows to a store: cuts them into chunks, encodes, writes, and keeps the promise of its Durability.
//
// Any thread may call, one at a time gets in. A failed append leaves the store as it was before it; when that
// cannot be had, or a sync failed, the writer is poisoned: every later call throws Closed and the file is
// what recovery makes of it. In a forked child every call throws Closed, but close(): that does nothing
// there.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/codec/choose.h"
#include "core/storage/file.h"
#include "core/store/chunk_sizer.h"
#include "core/store/header.h"
#include "core/store/index/index_writer.h"
#include "core/store/tail.h"
#include "core/store/writer_options.h"

namespace cdd {

// How far a writer is.
struct WriterStats {
  std::uint64_t rows = 0;             // accepted
  std::uint64_t waiting_rows = 0;     // of these, in memory: they do not fill a chunk
  std::uint64_t chunks = 0;           // written
  std::uint64_t unsynced_chunks = 0;  // of these, not yet durable
  std::uint64_t raw_bytes = 0;        // of the rows in chunks
  std::uint64_t stored_bytes = 0;     // of the file, its header and index included
};

class Writer {
 public:
  // When a new file gets its name: at once, empty as it is, or only with close(), so that until then a file
  // of that name is what it was, and stays so when close() is never reached.
  enum class Visible { AtOnce, AtClose };
  // Creates a file: whole or not at all. `replace` as FileStorage::create().
  static std::unique_ptr<Writer> create_file(const std::string& path, bool replace,
                                             const WriterOptions& options, Visible visible = Visible::AtOnce);
  // Opens an existing file, recovering it if its last writer died. An empty one becomes a new store.
  static std::unique_ptr<Writer> open_file(const std::string& path, const WriterOptions& options);
  // The same on storage that the caller has for itself alone.
  static std::unique_ptr<Writer> create(std::shared_ptr<WritableStorage> storage,
                                        const WriterOptions& options);
  static std::unique_ptr<Writer> open(std::shared_ptr<WritableStorage> storage, const WriterOptions& options);

  ~Writer();  // closes, ignoring errors; a file that is not visible yet is given up
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Adds n_rows rows of `layout`, all of them or none. Throws InvalidArgument when layout is not the store's.
  void append(const RowLayout& layout, Bytes rows, std::uint64_t n_rows);
  // The same for rows that do not stand one after the other: copied in pieces of 4 MB, or of
  // one chunk where that is longer.
  void append(const RowLayout& layout, const StridedRows& rows);

  // Writes the rows that do not fill a chunk as one, and makes all durable (Durability::None: only writes).
  void flush();

  // flush(), marks the file as cleanly closed, lets go of it. Again: nothing. Poisoned: only lets go.
  void close();

  // Lets go of the file without another write, as a crash would; one that is not visible yet is removed.
  void give_up();

  bool is_closed() const noexcept;  // also in a forked child
  std::uint64_t rows() const;       // accepted, those that do not fill a chunk included
  std::uint64_t chunks() const;     // written
  WriterStats stats() const;
  RowLayout layout() const;
  std::vector<std::byte> user_meta() const;
  std::array<std::byte, 16> id() const;  // the file's salt
  CastError cast_error() const;          // of all lossy chunks so far

 private:
  Writer(std::shared_ptr<WritableStorage> storage, const WriterOptions& options, Header header,
         IndexWriter index);

  static std::unique_ptr<Writer> create_in(std::shared_ptr<FileStorage> file, const WriterOptions& options,
                                           Visible visible);
  std::unique_lock<std::mutex> lock() const;
  void check_usable() const;
  void fix_layout(const RowLayout& layout);
  void append_rows(const RowLayout& layout, RowSource rows, std::uint64_t n_rows);
  std::size_t next_record();
  void encode(Bytes rows, std::uint32_t n_rows);
  bool encode_sized(Bytes rows, std::uint32_t n_rows);
  bool keep_if_sized();
  std::uint64_t encode_group(Bytes rows, std::uint32_t n_rows, std::uint32_t n_chunks);
  std::uint32_t chunks_at_once(std::uint64_t rows, std::uint64_t most_bytes) const;
  void add_pending(const EncodedChunk& chunk, std::size_t record_offset, std::uint32_t n_rows);
  void write_pending(bool last);
  void write_tail();
  void keep_promise();
  template <class Work>
  void whole_or_nothing(Work&& work);

  mutable std::mutex mutex_;
  std::shared_ptr<WritableStorage> storage_;
  const std::string name_;  // of the storage, also when that is let go
  const WriterOptions options_;
  Header header_;
  IndexWriter index_;
  RowLayout layout_;
  std::unique_ptr<Chooser> chooser_;  // these two exist once the layout is known
  std::unique_ptr<ChunkSizer> sizer_;
  Tail tail_;
  std::vector<std::byte> records_;  // of this append, encoded but not written
  std::vector<PendingChunk> pending_;
  std::vector<Encoding> group_;  // chunks that are encoded at once
  CastError cast_error_;
  std::chrono::steady_clock::time_point first_uncommitted_;
  std::shared_ptr<FileStorage> unpublished_;  // Visible::AtClose
  const std::uint64_t process_;
};

}  // namespace cdd
