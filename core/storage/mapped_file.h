// A file mapped read-only: reads are pointers, no system call and no copy. The part of a growing file that
// came after the map was made is read positionally. Whoever truncates a mapped file makes its readers fault
// (SIGBUS), so this is the caller's choice and not the default.
// Implemented in mapped_file.cpp, mapped_file_posix.cpp and mapped_file_win32.cpp.
#pragma once

#include <memory>
#include <string>

#include "core/storage/file.h"

namespace cdd {

class MappedStorage final : public Storage {
 public:
  static std::unique_ptr<MappedStorage> open(const std::string& path);
  ~MappedStorage() override;

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  using Storage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override;
  std::uint64_t size() const override { return file_->size(); }
  void truncate(std::uint64_t size) override;
  void sync() override {}
  const std::string& name() const noexcept override { return file_->name(); }

 private:
  MappedStorage(std::unique_ptr<FileStorage> file, Bytes map) : file_(std::move(file)), map_(map) {}

  std::unique_ptr<FileStorage> file_;
  Bytes map_;
};

}  // namespace cdd
