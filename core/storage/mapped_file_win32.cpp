#include <windows.h>

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
    const HANDLE mapping = ::CreateFileMappingW(file->handle(), nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (mapping == nullptr) fail_io(EACCES, "cannot map %s", path.c_str());
    // The view keeps the mapping alive by itself.
    const void* const address = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, static_cast<SIZE_T>(size));
    ::CloseHandle(mapping);
    if (address == nullptr) fail_io(ENOMEM, "cannot map %s", path.c_str());
    map = {static_cast<const std::byte*>(address), static_cast<std::size_t>(size)};
  }
  return std::unique_ptr<MappedStorage>(new MappedStorage(std::move(file), map));
}

MappedStorage::~MappedStorage() {
  if (!map_.empty()) ::UnmapViewOfFile(map_.data());
}

}  // namespace cdd
