#include "core/storage/mapped_file.h"

#include <cerrno>

#include "core/storage/memory.h"

namespace cdd {

Bytes MappedStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  if (offset <= map_.size() && n <= map_.size() - offset) return view_at(map_, offset, n, scratch);
  return file_->read_at(offset, n, scratch);
}

void MappedStorage::write_at(std::uint64_t, std::span<const Bytes>) {
  fail_io(EROFS, "%s is mapped read-only", name().c_str());
}

void MappedStorage::truncate(std::uint64_t) { fail_io(EROFS, "%s is mapped read-only", name().c_str()); }

}  // namespace cdd
