// One open file of the operating system: bytes at offsets, and the lock of its one writer. Paths are UTF-8
// (on POSIX: the bytes the system takes).
//
// Errors are Error{Io} with the system's errno and the name the file was opened under. Reading functions may
// run in any number of threads at once, beside one that writes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/bytes.h"
#include "core/os/process.h"

namespace cdd {

#if defined(_WIN32)
using FileHandle = void*;
#else
using FileHandle = int;
#endif

class OpenFile {
 public:
  enum class How {
    Read,       // a file that is there
    ReadWrite,  // a file that is there
    Create,     // a file that is there, or a new empty one
    New,        // a new one: EEXIST where something is there
    NewAlone,   // a new one that others cannot open until it is given other permissions
  };
  // `name` is for errors, where it is not the path. A file that is there must be a regular one (EISDIR,
  // EINVAL).
  OpenFile(const std::string& path, How how, std::string name);
  OpenFile(const std::string& path, How how) : OpenFile(path, how, path) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  enum class LockKind { Shared, Exclusive };
  // Takes the lock, for as long as this object lives in this process: a forked child closes the file. EAGAIN
  // while another open file, of this or another process, has a lock that excludes it.
  void lock(LockKind kind);

  // Whether `path` names this file, links followed.
  bool is_named(const std::string& path) const;

  // Reads bytes at `offset` into `out`; fewer than there is room for only where the file ends. Returns how
  // many.
  std::size_t read_at(std::uint64_t offset, MutableBytes out) const;

  // Whether reading there needs no disk, as far as the system tells without reading; false where it does not.
  bool is_cached(std::uint64_t offset, std::size_t n) const noexcept;

  // Has the system read these bytes ahead, where it can; returns at once.
  void prefetch(std::uint64_t offset, std::size_t n) const noexcept;

  // Writes the parts one after the other at `offset`.
  void write_at(std::uint64_t offset, std::span<const Bytes> parts);

  std::uint64_t size() const;
  void truncate(std::uint64_t size);

  // Return when all that was written is durable: its bytes, or with what the system knows of the file, too.
  void sync_bytes();
  void sync();

  FileHandle handle() const noexcept { return handle_; }
  const std::string& name() const noexcept { return name_; }

 private:
  FileHandle handle_;
  const std::string name_;
  const std::uint64_t process_ = process_id();  // whose lock it is
  bool is_locked_ = false;
};

}  // namespace cdd
