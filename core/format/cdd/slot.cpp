#include "core/format/cdd/slot.h"

#include <algorithm>
#include <bit>

#include "core/base/hash.h"

namespace cdd {
namespace {

constexpr std::size_t kCheckAt = 28;

}  // namespace

void put_slot(const Slot& slot, std::uint64_t salt, std::uint64_t key, std::byte* out) noexcept {
  store<std::uint64_t>(out, slot.offset);
  store<std::uint64_t>(out + 8, slot.row_end);
  store<std::uint32_t>(out + 16, slot.size);
  store<std::uint32_t>(out + 20, slot.record_check);
  store<std::uint32_t>(out + 24, slot.flags);
  store<std::uint32_t>(out + kCheckAt, check32(CheckDomain::Slot, salt, key, {out, kCheckAt}));
}

std::optional<Slot> parse_slot(const std::byte* bytes, std::uint64_t salt, std::uint64_t key) noexcept {
  const auto stored = load<std::uint32_t>(bytes + kCheckAt);
  if (stored != check32(CheckDomain::Slot, salt, key, {bytes, kCheckAt})) return std::nullopt;
  const Slot slot{load<std::uint64_t>(bytes), load<std::uint64_t>(bytes + 8), load<std::uint32_t>(bytes + 16),
                  load<std::uint32_t>(bytes + 20), load<std::uint32_t>(bytes + 24)};
  if (slot.row_end > kMaxRows) return std::nullopt;  // no writer's
  return slot;
}

bool is_zero_slot(const std::byte* bytes) noexcept {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < kSlotBytes; i += 8) any |= load<std::uint64_t>(bytes + i);
  return any == 0;
}

BlockGeometry::BlockGeometry(std::uint32_t first_capacity, std::uint32_t max_capacity) noexcept
    : first_capacity_(first_capacity),
      max_capacity_(max_capacity),
      doublings_(
          static_cast<std::uint32_t>(std::countr_zero(max_capacity) - std::countr_zero(first_capacity))) {}

std::uint32_t BlockGeometry::capacity(std::uint64_t block) const noexcept {
  return block >= doublings_ ? max_capacity_ : first_capacity_ << block;
}

std::uint64_t BlockGeometry::first_chunk(std::uint64_t block) const noexcept {
  const std::uint64_t doubled = std::min<std::uint64_t>(block, doublings_);
  const std::uint64_t growing = std::uint64_t{first_capacity_} * ((std::uint64_t{1} << doubled) - 1);
  return growing + (block - doubled) * max_capacity_;
}

std::uint64_t BlockGeometry::block_of(std::uint64_t chunk) const noexcept {
  const std::uint64_t growing = first_chunk(doublings_);
  if (chunk >= growing) return doublings_ + (chunk - growing) / max_capacity_;
  return static_cast<std::uint64_t>(std::bit_width(chunk / first_capacity_ + 1)) - 1;
}

void put_block_header(std::uint64_t block_bytes, std::byte* out) noexcept {
  std::memset(out, 0, kBlockHeaderBytes);
  store<std::uint32_t>(out, static_cast<std::uint32_t>(block_bytes));
  store<std::uint16_t>(out + 4, static_cast<std::uint16_t>(BlockType::Slots));
}

}  // namespace cdd
