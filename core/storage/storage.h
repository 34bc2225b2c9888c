// Bytes at offsets: what the store knows of files and memory. Positional only, no cursor to share.
//
// Storage reads: MappedStorage (mapped_file.h), ViewStorage (memory.h). WritableStorage is also written:
// FileStorage (file.h), MemoryStorage (memory.h). Reads may run in any number of threads, beside one writer.
// Errors are Error{Io} with the OS's errno.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/bytes.h"
#include "core/base/scratch.h"

namespace cdd {

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // Up to `n` bytes at `offset`: fewer only where the storage ends. The span points into the storage itself
  // or into `scratch`; it stays valid until the next use of that scratch, is followed by kScratchPadding
  // readable bytes, and may change under the reader where a writer is at work.
  virtual Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const = 0;

  // The same, always copied into `scratch`: for bytes that a writer may be about to change or cut off, where
  // a pointer into a map could be to nothing by the time it is followed.
  virtual Bytes copy_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
    return read_at(offset, n, scratch);
  }

  // Called when there may be more of it than there was.
  virtual void look_again() {}

  // Whether reading there needs no disk, as far as the system tells without reading; false where it does not.
  virtual bool is_cached(std::uint64_t, std::size_t) const noexcept { return true; }

  // Has the system read these bytes ahead, where it can; returns at once.
  virtual void prefetch(std::uint64_t, std::size_t) const noexcept {}

  // Has the processor fetch where these bytes begin and end, if they are in memory; returns at once.
  virtual void fetch_ahead(std::uint64_t, std::size_t) const noexcept {}

  // Whether each read costs a message to another machine. What will be read is asked for first, all at once.
  virtual bool is_far() const noexcept { return false; }

  // Of one that is far: these bytes are read next, in this order; none: it is opened next. Returns at once.
  virtual void ask(std::span<const ByteRange>) const {}

  // Whether its name now leads to something else, or to nothing.
  virtual bool is_replaced() const { return false; }

  virtual std::uint64_t size() const = 0;

  // For error texts: a path, "<memory>", ...
  virtual const std::string& name() const noexcept = 0;
};

class WritableStorage : public Storage {
 public:
  // Writes `parts` one after the other at `offset`, extending the storage (a gap reads as zeros).
  virtual void write_at(std::uint64_t offset, std::span<const Bytes> parts) = 0;

  // Sets the size; new bytes read as zeros.
  virtual void truncate(std::uint64_t size) = 0;

  // Returns when everything written before is durable.
  virtual void sync() = 0;

  void write_at(std::uint64_t offset, Bytes bytes) { write_at(offset, std::span<const Bytes>(&bytes, 1)); }
};

// Exactly `n` bytes by copy_at, or Error{Truncated}.
Bytes copy_exactly(const Storage& storage, std::uint64_t offset, std::size_t n, Scratch& scratch);

// Exactly `n` bytes by read_at, or Error{Truncated}.
Bytes read_exactly(const Storage& storage, std::uint64_t offset, std::size_t n, Scratch& scratch);

}  // namespace cdd
