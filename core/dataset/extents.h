// Which rows of which superchunk a column consists of, with what was found out about their files.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/dataset/superchunks.h"

namespace cdd {

// Rows [first, first + rows) of a superchunk; a row of the pages of a manifest, as it stands there.
struct Extent {
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};  // rows: to the end of the file

  std::uint64_t number = 0;  // of the superchunk; 0: no file, all items are the first bytes of `salt`
  std::uint64_t first = 0;
  std::uint64_t rows = 0;
  Salt salt{};                   // of the superchunk
  std::uint64_t first_item = 0;  // of a clock: its first and last item, where has_items says so
  std::uint64_t last_item = 0;
  std::uint64_t has_items = 0;
};
static_assert(sizeof(Extent) == 64);

// The extents of a column, with what was found out about their files.
class Extents {
 public:
  // Where a superchunk lies that is not at the column's own place.
  struct Elsewhere {
    std::string path;
    std::shared_ptr<Storage> memory;  // may be null
  };
  using Exceptions = std::unordered_map<std::uint64_t, Elsewhere>;

  // Throws Corrupt unless only the last extent is open and the rows can be counted.
  Extents(std::span<const Extent> extents, std::string prefix, Exceptions exceptions);

  std::size_t count() const noexcept { return extents_.size(); }
  const Extent& operator[](std::size_t i) const noexcept { return extents_[i]; }
  std::uint64_t begin(std::size_t i) const noexcept { return places_[i].begin; }
  std::uint64_t end(std::size_t i) const noexcept { return places_[i].end; }  // kOpen for an open one
  std::uint64_t number(std::size_t i) const noexcept { return places_[i].number; }
  // Rows of the column that extent i has, as those of its file.
  RowRange within(std::size_t i, RowRange range) const noexcept {
    return {places_[i].first + (range.first - places_[i].begin), range.count};
  }
  // Whether any file is far away.
  bool is_far() const noexcept { return is_far_; }
  // The extent that has row `row`, which is below the last one's end.
  std::size_t with_row(std::uint64_t row) const noexcept;

  // "<prefix>17__.cdd"
  std::string path(std::size_t i) const;
  Superchunks::File& file(std::size_t i, Superchunks& superchunks) const {
    Superchunks::File* const known = places_[i].file.load(std::memory_order_acquire);
    return known != nullptr ? *known : find_file(i, superchunks);
  }

  // Whether see() was told of file i as it is open now, and need not be told again.
  bool has_seen(std::size_t i, const Superchunks::Use& use) const noexcept {
    return places_[i].opening.load(std::memory_order_relaxed) == use.opening();
  }
  void see(std::size_t i, const Superchunks::Use& use) const noexcept;
  // Closes files of which `newer`, which stands in the place of these, has no rows.
  void let_go(const Extents& newer, Superchunks& superchunks) const;
  // Has the processor fetch what reading this row, which is below the last one's end, needs of its file.
  void fetch_ahead(std::uint64_t row) const noexcept;

 private:
  // What reading rows of an extent begins with, in two lines.
  struct alignas(64) Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t number = 0;
    std::uint64_t first = 0;
    std::atomic<Superchunks::File*> file{nullptr};
    std::atomic<std::uint64_t> opening{0};
    Reader::Ahead ahead;
  };

  Superchunks::File& find_file(std::size_t i, Superchunks& superchunks) const;

  std::vector<Extent> extents_;
  std::vector<std::uint64_t> ends_;
  double extents_in_a_row_ = 0;  // of those that have an end
  std::string prefix_;
  Exceptions exceptions_;
  bool is_far_ = false;
  mutable std::vector<Place> places_;
};

}  // namespace cdd
