#include <sys/mman.h>

#include <cerrno>
#include <limits>

#include "core/storage/mapped_file.h"

namespace cdd {

std::unique_ptr<MappedStorage> MappedStorage::open(const std::string& path) {
  auto file = FileStorage::open(path, FileStorage::Access::Read);
  const std::uint64_t size = file->size();
  if (size > std::numeric_limits<std::size_t>::max() / 2) fail_io(ENOMEM, "cannot map %s", path.c_str());
  Bytes map;
  if (size > 0) {
    void* const address =
        ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, file->handle(), 0);
    if (address == MAP_FAILED) fail_io(errno, "cannot map %s", path.c_str());
    map = {static_cast<const std::byte*>(address), static_cast<std::size_t>(size)};
  }
  return std::unique_ptr<MappedStorage>(new MappedStorage(std::move(file), map));
}

MappedStorage::~MappedStorage() {
  if (!map_.empty()) ::munmap(const_cast<std::byte*>(map_.data()), map_.size());
}

}  // namespace cdd
