#include "core/storage/memory.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>

namespace cdd {
namespace {

Bytes clip(Bytes bytes, std::uint64_t offset, std::size_t n) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(static_cast<std::size_t>(offset))
      .first(std::min(n, bytes.size() - static_cast<std::size_t>(offset)));
}

Bytes copy_of(Bytes bytes, Scratch& scratch) {
  const MutableBytes out = scratch.get(bytes.size());
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::size_t in_memory(std::uint64_t bytes) {
  if (bytes > ~std::size_t{0} / 2) throw std::bad_alloc();
  return static_cast<std::size_t>(bytes);
}

}  // namespace

Bytes view_at(Bytes bytes, std::uint64_t offset, std::size_t n, Scratch& scratch) {
  const Bytes found = clip(bytes, offset, n);
  const auto behind = static_cast<std::size_t>(bytes.data() + bytes.size() - (found.data() + found.size()));
  return found.empty() || behind < kScratchPadding ? copy_of(found, scratch) : found;
}

std::shared_ptr<WritableStorage> MemoryStorage::lock_for_writing(std::shared_ptr<MemoryStorage> storage) {
  if (storage->has_writer_.exchange(true)) fail_io(EAGAIN, storage->name(), "another writer has %s open");
  WritableStorage* const raw = storage.get();
  return {raw, [storage = std::move(storage)](WritableStorage*) { storage->has_writer_.store(false); }};
}

Bytes MemoryStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  const ForkGate gate;
  const std::shared_lock lock(mutex_);
  return copy_of(clip(bytes_, offset, n), scratch);
}

void MemoryStorage::write_at(std::uint64_t offset, std::span<const Bytes> parts) {
  std::uint64_t end = offset;
  for (const Bytes part : parts) end += part.size();
  const ForkGate gate;
  const std::unique_lock lock(mutex_);
  if (end > bytes_.size()) bytes_.resize(in_memory(end));
  std::byte* out = bytes_.data() + offset;
  for (const Bytes part : parts) {
    if (!part.empty()) std::memcpy(out, part.data(), part.size());
    out += part.size();
  }
}

std::uint64_t MemoryStorage::size() const {
  const ForkGate gate;
  const std::shared_lock lock(mutex_);
  return bytes_.size();
}

void MemoryStorage::truncate(std::uint64_t size) {
  const ForkGate gate;
  const std::unique_lock lock(mutex_);
  bytes_.resize(in_memory(size));
}

Bytes ViewStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  return view_at(bytes_, offset, n, scratch);
}

}  // namespace cdd
