#include "core/codec/blosc/plan_watch.h"

#include <algorithm>
#include <cstring>

#include "core/codec/blosc/literals.h"

namespace cdd::blosc {
namespace {

constexpr std::uint8_t kMostWait = 7;     // streams without a sample
constexpr std::uint8_t kRest = 16;        // streams after a new plan that gained nothing, or that searches
constexpr std::size_t kPartOfChange = 8;  // that streams have more or fewer bytes where they are others

// Whether LZ4 alone takes notably fewer bytes, by a sample: what came before comes again.
bool is_repetitive(Bytes stream, std::size_t stored) {
  const std::size_t sample = std::min(stream.size(), kLz4SampleBytes);
  const std::size_t of_sample = stored * sample / stream.size();
  return lz4_sample_size(stream) * kPartOfChange < of_sample * (kPartOfChange - 1);
}

// Whether a stream has what noise has not, for a third of what LZ4 or codes of a sample would take: behind
// some places the word that stands there, or their byte as often as bytes of 5 bits are.
bool has_order(Bytes stream) noexcept {
  constexpr std::size_t kPlaces = 3, kWord = 4, kMostSame = 1 << (12 - 5);
  const std::size_t reach = std::min<std::size_t>(kLz4SampleBytes, stream.size() / 2);
  if (reach <= kWord) return true;
  std::size_t words = 0, same = 0;
  for (std::size_t k = 0; k < kPlaces; ++k) {
    const std::byte* const place = stream.data() + (stream.size() - reach - kWord) * k / (kPlaces - 1);
    const std::byte* at = place + 1;
    const std::byte* const end = place + reach;
    for (std::size_t of_place = 0; of_place < 2 * kMostSame; ++of_place, ++same, ++at) {
      at = static_cast<const std::byte*>(
          std::memchr(at, std::to_integer<int>(*place), static_cast<std::size_t>(end - at)));
      if (at == nullptr) break;
      if (load<std::uint32_t>(at) != load<std::uint32_t>(place)) continue;
      ++words;
      break;
    }
  }
  return words != 0 || same >= kPlaces * kMostSame;
}

}  // namespace

// At first of each, then always fewer: a small tile is looked at as often as a large one.
bool PlanWatch::is_due(std::size_t s) noexcept {
  Seen& seen = seen_[s];
  if (seen.left != 0) {
    --seen.left;
    return false;
  }
  seen.wait = std::min<std::uint8_t>(static_cast<std::uint8_t>(2 * seen.wait + 1), kMostWait);
  seen.left = seen.wait;
  return true;
}

bool PlanWatch::is_compressible(Bytes stream, std::size_t s) noexcept {
  if (is_repeated(stream)) return true;
  if (seen_[s].rest != 0) {
    --seen_[s].rest;
    return false;
  }
  return is_due(s) && has_order(stream);
}

bool PlanWatch::is_unlike(const StreamPlan::OfStream& plan, Bytes stream, std::size_t s,
                          std::size_t stored) noexcept {
  Seen& seen = seen_[s];
  if (seen.rest != 0) {
    --seen.rest;
    return false;
  }
  if (plan.way == StreamPlan::Way::Searched && plan.search != Search::Literals) {
    return seen.is_new && stored > stream.size() / 2;
  }
  const std::size_t change = stored > seen.stored ? stored - seen.stored : seen.stored - stored;
  const bool is_other = change > seen.stored / kPartOfChange;
  if (plan.way == StreamPlan::Way::Runs) {
    // They take a quarter at most, and a sample of those that take little says nothing.
    if (stored <= stream.size() / kPartOfChange || !is_other) return false;
  } else if (!is_due(s) && !is_other) {
    return false;
  }
  seen.stored = stored;
  return is_repetitive(stream, stored);
}

void PlanWatch::renewed(const StreamPlan::OfStream& plan, const StreamPlan::OfStream& before, std::size_t s,
                        std::size_t stored) noexcept {
  const bool is_same = plan.way == before.way && plan.search == before.search;
  const bool searches = plan.way == StreamPlan::Way::Searched;
  seen_[s] = {};
  seen_[s].stored = stored;
  seen_[s].rest = is_same || searches ? kRest : std::uint8_t{0};
  seen_[s].is_new = true;
}

}  // namespace cdd::blosc
