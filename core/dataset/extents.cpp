#include "core/dataset/extents.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/error.h"
#include "core/base/first_above.h"
#include "core/simd/fetch.h"

namespace cdd {

Extents::Extents(std::span<const Extent> extents, std::string prefix, Exceptions exceptions)
    : extents_(extents.begin(), extents.end()),
      prefix_(std::move(prefix)),
      exceptions_(std::move(exceptions)),
      places_(extents.size()) {
  ends_.reserve(extents_.size());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    places_[i].begin = end;
    places_[i].number = extents_[i].number;
    places_[i].first = extents_[i].first;
    const bool is_open = extents_[i].rows == Extent::kOpen;
    if (is_open && (i + 1 < extents_.size() || extents_[i].number == 0)) {
      fail(ErrorCode::Corrupt, "extent %zu of %zu has no end, only the last may have none", i,
           extents_.size());
    }
    if (is_open) {
      end = Extent::kOpen;
    } else if (!checked_add(end, extents_[i].rows, &end) || end == Extent::kOpen) {
      fail(ErrorCode::Corrupt, "extents 0 to %zu have more rows than can be counted", i);
    }
    places_[i].end = end;
    ends_.push_back(end);
  }
  const std::size_t sealed = end == Extent::kOpen ? ends_.size() - 1 : ends_.size();
  if (sealed > 0 && ends_[sealed - 1] > 0) {
    extents_in_a_row_ = static_cast<double>(sealed) / static_cast<double>(ends_[sealed - 1]);
  }
  const auto is_far = [](const auto& one) { return one.second.memory && one.second.memory->is_far(); };
  is_far_ = std::any_of(exceptions_.begin(), exceptions_.end(), is_far);
}

// Superchunks have about as many rows each, so a proportional guess is right, or near: a few short ones shift
// it by as many.
std::size_t Extents::with_row(std::uint64_t row) const noexcept {
  const std::size_t guess = proportional(row, extents_in_a_row_);
  if (guess < places_.size() && places_[guess].begin <= row && row < places_[guess].end) return guess;
  return first_above(ends_, row, guess);
}

std::string Extents::path(std::size_t i) const {
  const auto found = exceptions_.find(extents_[i].number);
  if (found != exceptions_.end()) return found->second.path;
  return prefix_ + std::to_string(extents_[i].number) + "__.cdd";
}

Superchunks::File& Extents::find_file(std::size_t i, Superchunks& superchunks) const {
  const auto found = exceptions_.find(extents_[i].number);
  Superchunks::File& file = superchunks.file(
      path(i), found == exceptions_.end() ? nullptr : found->second.memory, extents_[i].salt);
  places_[i].file.store(&file, std::memory_order_release);
  return file;
}

void Extents::see(std::size_t i, const Superchunks::Use& use) const noexcept {
  places_[i].opening.store(use.opening(), std::memory_order_relaxed);
  use.reader().tell(places_[i].ahead);
}

void Extents::let_go(const Extents& newer, Superchunks& superchunks) const {
  const auto [differs, other] =
      std::ranges::mismatch(extents_, newer.extents_, {}, &Extent::number, &Extent::number);
  if (differs == extents_.end()) return;  // as mostly: there are only more
  std::unordered_set<std::uint64_t> numbers;
  for (const Extent& extent : newer.extents_) numbers.insert(extent.number);
  std::vector<std::pair<std::string, Salt>> files;
  for (auto i = differs; i != extents_.end(); ++i) {
    if (i->number == 0 || numbers.contains(i->number)) continue;
    files.emplace_back(path(static_cast<std::size_t>(i - extents_.begin())), i->salt);
  }
  superchunks.let_go(files);
}

void Extents::fetch_ahead(std::uint64_t row) const noexcept {
  constexpr std::size_t kLine = 64;
  Place& place = places_[with_row(row)];
  cdd::fetch_ahead(place.file.load(std::memory_order_relaxed), kLine);
  const bool is_known = place.ahead.fetch(place.first + (row - place.begin));
  if (!is_known) place.opening.store(0, std::memory_order_relaxed);
}

}  // namespace cdd
