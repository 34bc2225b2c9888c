#include "core/storage/mapped_file.h"

#include <algorithm>
#include <cerrno>

#include "core/os/file_map.h"
#include "core/os/fork_gate.h"
#include "core/simd/fetch.h"
#include "core/storage/memory.h"

namespace cdd {

std::unique_ptr<MappedStorage> MappedStorage::open(const std::string& path) {
  std::unique_ptr<MappedStorage> storage(
      new MappedStorage(FileStorage::open(path, FileStorage::Access::Read)));
  storage->first_ = map_file(storage->file_->file(), storage->file_->size());
  return storage;
}

MappedStorage::~MappedStorage() {
  unmap_file(first_);
  for (const Bytes map : later_) unmap_file(map);
}

Bytes MappedStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  const Bytes map = *current_.load(std::memory_order_acquire);
  const bool covered = offset <= map.size() && n <= map.size() - offset;
  return covered ? view_at(map, offset, n, scratch) : file_->read_at(offset, n, scratch);
}

// Processors go on by themselves from there.
void MappedStorage::fetch_ahead(std::uint64_t offset, std::size_t n) const noexcept {
  constexpr std::size_t kBegin = 128;
  const Bytes map = *current_.load(std::memory_order_acquire);
  if (offset > map.size() || n > map.size() - offset || n == 0) return;
  const std::byte* const begin = map.data() + offset;
  cdd::fetch_ahead(begin, std::min(n, kBegin));
  cdd::fetch_ahead(begin + n - 1, 1);
}

// Maps again only once the file is half as long again, so that all maps together stay few.
void MappedStorage::look_again() {
  const ForkGate gate;
  const std::lock_guard lock(mutex_);
  const std::uint64_t bytes = file_->size();
  const std::uint64_t mapped = current_.load(std::memory_order_relaxed)->size();
  if (bytes < mapped + mapped / 2 || bytes == mapped) return;
  try {
    later_.push_back(map_file(file_->file(), bytes));
  } catch (const Error&) {
    return;  // no address space left: positional reads serve as well
  }
  current_.store(&later_.back(), std::memory_order_release);
}

// Where addresses have 32 bits, a map of a large file would leave little for anything else.
std::shared_ptr<Storage> open_for_reading(const std::string& path, Mapping mapping) {
  if (mapping == Mapping::Preferred && sizeof(void*) < 8) mapping = Mapping::Never;
  if (mapping == Mapping::Always) return MappedStorage::open(path);
  if (mapping == Mapping::Preferred) {
    try {
      return MappedStorage::open(path);
    } catch (const Error&) {
      // Not every file system has maps. What is wrong with the file itself is found again below.
    }
  }
  return FileStorage::open(path, FileStorage::Access::Read);
}

}  // namespace cdd
