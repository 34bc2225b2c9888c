// The first item of each chunk that a search came across, in memory: a table that is filled as it is touched
// and never moves, so it is read without a lock.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace cdd {

class FirstItems {
 public:
  FirstItems() = default;
  ~FirstItems() {
    for (std::atomic<Entry*>& part : parts_) delete[] part.load(std::memory_order_relaxed);
  }
  FirstItems(const FirstItems&) = delete;
  FirstItems& operator=(const FirstItems&) = delete;

  // The item's bytes, of at most 8. Returns whether they are known.
  bool find(std::uint64_t chunk, std::uint64_t* item) const noexcept {
    const Place place = place_of(chunk);
    const Entry* const part = parts_[place.part].load(std::memory_order_acquire);
    if (part == nullptr || !part[place.at].is_known.load(std::memory_order_acquire)) return false;
    *item = part[place.at].item.load(std::memory_order_relaxed);
    return true;
  }

  // Several threads may remember the same.
  void remember(std::uint64_t chunk, std::uint64_t item) {
    const Place place = place_of(chunk);
    Entry* part = parts_[place.part].load(std::memory_order_acquire);
    if (part == nullptr) {
      Entry* const made = new Entry[kFirstEntries << place.part];
      if (parts_[place.part].compare_exchange_strong(part, made, std::memory_order_acq_rel)) {
        part = made;
      } else {
        delete[] made;
      }
    }
    part[place.at].item.store(item, std::memory_order_relaxed);
    part[place.at].is_known.store(true, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t kFirstEntries = 64;  // each part has twice as many as the one before
  static constexpr std::size_t kParts = 48;

  struct Entry {
    std::atomic<std::uint64_t> item{0};
    std::atomic<bool> is_known{false};
  };
  struct Place {
    std::size_t part = 0;
    std::size_t at = 0;
  };

  static Place place_of(std::uint64_t chunk) noexcept {
    const auto part = static_cast<std::size_t>(std::bit_width(chunk / kFirstEntries + 1) - 1);
    return {part, static_cast<std::size_t>(chunk - kFirstEntries * ((std::uint64_t{1} << part) - 1))};
  }

  std::array<std::atomic<Entry*>, kParts> parts_{};
};

}  // namespace cdd
