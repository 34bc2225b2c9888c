#include <sys/mman.h>

#include <cerrno>
#include <limits>

#include "core/base/error.h"
#include "core/os/file_map.h"

namespace cdd {

Bytes map_file(const OpenFile& file, std::uint64_t bytes) {
  if (bytes == 0) return {};
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    fail_io(ENOMEM, file.name(), "cannot map %s");
  }
  const auto size = static_cast<std::size_t>(bytes);
  void* const address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.handle(), 0);
  if (address == MAP_FAILED) fail_io(errno, file.name(), "cannot map %s");
  return {static_cast<const std::byte*>(address), size};
}

void unmap_file(Bytes map) noexcept {
  if (!map.empty()) ::munmap(const_cast<std::byte*>(map.data()), map.size());
}

}  // namespace cdd
