#include "core/storage/storage.h"

namespace cdd {

namespace {

Bytes all_of(Bytes bytes, const Storage& storage, std::uint64_t offset, std::size_t n) {
  if (bytes.size() != n) {
    fail(ErrorCode::Truncated, "%s: %zu bytes at 0x%llx expected, the file ends after %zu of them",
         storage.name().c_str(), n, static_cast<unsigned long long>(offset), bytes.size());
  }
  return bytes;
}

}  // namespace

Bytes copy_exactly(const Storage& storage, std::uint64_t offset, std::size_t n, Scratch& scratch) {
  return all_of(storage.copy_at(offset, n, scratch), storage, offset, n);
}

Bytes read_exactly(const Storage& storage, std::uint64_t offset, std::size_t n, Scratch& scratch) {
  return all_of(storage.read_at(offset, n, scratch), storage, offset, n);
}

}  // namespace cdd
