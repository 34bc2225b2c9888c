// The files of one array, by their keys ("zarr.json", "c/0/1"): on a disk, and in tests in memory, where each
// write can be recorded or fail.
//
// Any thread may read and write one file at once. Errors are Error{Io}.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.h"

namespace cdd::tiles {

class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  virtual void write_at(std::uint64_t offset, std::span<const Bytes> parts) = 0;
  // Fewer bytes than there is room for only where the file ends.
  virtual std::size_t read_at(std::uint64_t offset, MutableBytes out) const = 0;
  virtual std::uint64_t size() const = 0;
  virtual void truncate(std::uint64_t size) = 0;
  virtual void sync() = 0;  // when it returns, all that was written is durable

  void write_at(std::uint64_t offset, Bytes bytes) { write_at(offset, std::span<const Bytes>(&bytes, 1)); }
};

class ArrayFiles {
 public:
  virtual ~ArrayFiles() = default;
  // A file that holds `bytes` from the moment that it can be seen, in place of one that is there; durable on
  // return. Folders on the way are made.
  virtual void publish(const std::string& key, Bytes bytes) = 0;
  // Null where there is no such file.
  virtual std::unique_ptr<ArrayFile> open(const std::string& key, bool to_write) const = 0;
  // Makes the file where it is not there and holds it for one writer: EAGAIN while another has it.
  virtual std::unique_ptr<ArrayFile> lock(const std::string& key) = 0;
  // Gives a file, which is durable and not open here, the key of another of its folder, in its place.
  virtual void replace(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& key) = 0;
  virtual std::string name_of(const std::string& key) const = 0;
};

// Those under a folder, which need not be there yet.
std::unique_ptr<ArrayFiles> files_in(const std::string& folder);

// All bytes of a file, at most `most`; nullopt where there is none.
std::optional<std::vector<std::byte>> read_whole(const ArrayFiles& files, const std::string& key,
                                                 std::uint64_t most);

}  // namespace cdd::tiles
