// A file mapped read-only: reads are pointers, no system call and no copy. A growing file is mapped again as
// it grows; what no map covers yet is read positionally. Whoever truncates a mapped file makes its readers
// fault (SIGBUS): no cdd writer truncates committed data, other programs might.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "core/os/shared_pages.h"
#include "core/storage/file.h"

namespace cdd {

class MappedStorage final : public Storage, public InSharedPages {
 public:
  // Throws as FileStorage::open, and Error{Io} where the file cannot be mapped.
  static std::unique_ptr<MappedStorage> open(const std::string& path);
  ~MappedStorage() override;

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  Bytes copy_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override {
    return file_->read_at(offset, n, scratch);
  }
  void look_again() override;
  bool is_cached(std::uint64_t offset, std::size_t n) const noexcept override {
    return file_->is_cached(offset, n);
  }
  void prefetch(std::uint64_t offset, std::size_t n) const noexcept override { file_->prefetch(offset, n); }
  void fetch_ahead(std::uint64_t offset, std::size_t n) const noexcept override;
  bool is_replaced() const override { return file_->is_replaced(); }
  std::uint64_t size() const override { return file_->size(); }
  const std::string& name() const noexcept override { return file_->name(); }

 private:
  explicit MappedStorage(std::unique_ptr<FileStorage> file) : file_(std::move(file)) {}

  std::atomic<const Bytes*> current_{&first_};
  Bytes first_;
  std::unique_ptr<FileStorage> file_;
  std::mutex mutex_;         // guards later_
  std::deque<Bytes> later_;  // all stay, as the first: readers may hold pointers into them
};

// Whether a file that is only read is mapped.
enum class Mapping { Never, Preferred, Always };

// A file for reading. Preferred: through a map where that can be had. Throws as FileStorage::open, and
// Error{Io} where there must be a map and is none.
std::shared_ptr<Storage> open_for_reading(const std::string& path, Mapping mapping);

}  // namespace cdd
