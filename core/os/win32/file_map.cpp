#include <windows.h>

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
  const HANDLE mapping = ::CreateFileMappingW(file.handle(), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) fail_io(EACCES, file.name(), "cannot map %s");
  // The view keeps the mapping alive by itself.
  const auto size = static_cast<std::size_t>(bytes);
  const void* const address = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, size);
  ::CloseHandle(mapping);
  if (address == nullptr) fail_io(ENOMEM, file.name(), "cannot map %s");
  return {static_cast<const std::byte*>(address), size};
}

void unmap_file(Bytes map) noexcept {
  if (!map.empty()) ::UnmapViewOfFile(map.data());
}

}  // namespace cdd
