#include "core/storage/storage.h"

namespace cdd {

Bytes read_exactly(const Storage& storage, std::uint64_t offset, std::size_t n, Scratch& scratch) {
  const Bytes bytes = storage.read_at(offset, n, scratch);
  if (bytes.size() != n) {
    fail(ErrorCode::Truncated, "%s: %zu bytes at 0x%llx expected, the file ends after %zu of them",
         storage.name().c_str(), n, static_cast<unsigned long long>(offset), bytes.size());
  }
  return bytes;
}

}  // namespace cdd
