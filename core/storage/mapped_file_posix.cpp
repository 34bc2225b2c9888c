#include <sys/mman.h>

#include <cerrno>
#include <limits>

#include "core/storage/mapped_file.h"

namespace cdd {

Bytes MappedStorage::map(const FileStorage& file, std::uint64_t bytes) {
  if (bytes == 0) return {};
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    fail_io(ENOMEM, file.name(), "cannot map %s");
  }
  const auto size = static_cast<std::size_t>(bytes);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.handle(), 0);
  if (address == MAP_FAILED) fail_io(errno, file.name(), "cannot map %s");
  return {static_cast<const std::byte*>(address), size};
}

void MappedStorage::unmap(Bytes map) noexcept {
  if (!map.empty()) ::munmap(const_cast<std::byte*>(map.data()), map.size());
}

}  // namespace cdd
