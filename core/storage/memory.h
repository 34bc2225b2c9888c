// Storage in memory: MemoryStorage grows and is written, ViewStorage reads bytes that somebody else keeps.
#pragma once

#include <atomic>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/os/fork_gate.h"
#include "core/storage/storage.h"

namespace cdd {

// A writer and any number of readers in one process. Reads copy under a shared lock, because a growing vector
// moves; for read-only bytes ViewStorage needs neither copy nor lock.
class MemoryStorage final : public WritableStorage {
 public:
  MemoryStorage() = default;

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  using WritableStorage::write_at;
  void write_at(std::uint64_t offset, std::span<const Bytes> parts) override;
  std::uint64_t size() const override;
  void truncate(std::uint64_t size) override;
  void sync() override {}
  const std::string& name() const noexcept override { return name_; }

  // `storage` as its one writer sees it: Error{Io, EAGAIN} while another such handle is alive.
  static std::shared_ptr<WritableStorage> lock_for_writing(std::shared_ptr<MemoryStorage> storage);

  // Calls visit(bytes) with the whole contents while no writer can change them.
  template <class Visit>
  void visit(Visit&& visit) const {
    const ForkGate gate;
    const std::shared_lock lock(mutex_);
    visit(Bytes(bytes_));
  }

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::byte> bytes_;
  std::string name_ = "<memory>";
  std::atomic<bool> has_writer_{false};
};

// Read-only bytes that outlive this object and do not change.
class ViewStorage : public Storage {
 public:
  ViewStorage(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  Bytes read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const override;
  std::uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const noexcept override { return name_; }

 private:
  Bytes bytes_;
  std::string name_;
};

// What reading `n` bytes at `offset` of `bytes` gives: a pointer into them, or a copy in `scratch` when fewer
// than kScratchPadding bytes follow.
Bytes view_at(Bytes bytes, std::uint64_t offset, std::size_t n, Scratch& scratch);

}  // namespace cdd
