// What tests ask of a salvaged file: the copy has the rows of what was found, and nothing is unaccounted for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "core/store/reader.h"
#include "core/store/rescue/rewrite.h"
#include "tests/rig/small_store.h"

namespace cdd {

using Image = std::vector<std::byte>;
using Numbers = std::vector<std::uint64_t>;

inline Salvage salvage_image(const Image& image) { return salvage(ViewStorage(image, "damaged"), 1 << 24); }

inline Numbers numbers_of(const Salvage& found) {
  Numbers numbers;
  for (const WholeRecord& record : found.records) numbers.push_back(record.chunk);
  return numbers;
}

// All numbers below `end` but these.
inline Numbers all_but(std::uint64_t end, const Numbers& missing) {
  Numbers numbers;
  for (std::uint64_t i = 0; i < end; ++i) {
    if (std::find(missing.begin(), missing.end(), i) == missing.end()) numbers.push_back(i);
  }
  return numbers;
}

inline void wipe(Image& image, std::uint64_t at, std::uint64_t bytes, std::byte with = {}) {
  const auto begin = image.begin() + static_cast<std::ptrdiff_t>(at);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(bytes), with);
}

// Zeros everything behind the header that is no record.
inline void wipe_index(const SmallStore& made, Image& image) {
  std::uint64_t at = made.first_block;
  for (const PendingChunk& chunk : made.chunks) {
    wipe(image, at, chunk.record_offset - at);
    at = chunk.record_offset + chunk.record_bytes;
  }
  wipe(image, at, image.size() - at);
}

// The rows of a copy of what was found are those of the chunks that were, and the copy is a sound store.
inline void expect_copy_is_right(const SmallStore& made, const Image& image, const Salvage& found) {
  const auto copy = std::make_shared<MemoryStorage>();
  copy_records(ViewStorage(image, "damaged"), found.header, found.layout, found.records, *copy);
  const Reader reader(copy);
  Image wanted;
  for (const WholeRecord& record : found.records) {
    const auto begin = made.rows.begin() + static_cast<std::ptrdiff_t>(record.chunk * made.chunk_bytes());
    wanted.insert(wanted.end(), begin, begin + static_cast<std::ptrdiff_t>(made.chunk_bytes()));
  }
  ASSERT_EQ(reader.rows(), found.rows);
  ASSERT_EQ(reader.chunks(), found.records.size());
  Image rows(wanted.size());
  reader.read_into({0, reader.rows()}, rows);
  EXPECT_EQ(rows, wanted);
  EXPECT_TRUE(reader.verify_chunks(0, reader.chunks()).empty());
}

inline Image image_of(const std::shared_ptr<MemoryStorage>& storage) {
  Image image;
  storage->visit([&](Bytes bytes) { image.assign(bytes.begin(), bytes.end()); });
  return image;
}

// No chunk is both kept and lost, and none is neither unless it is said that nobody knows.
inline void expect_all_is_accounted_for(const SmallStore& made, const Salvage& found) {
  Numbers all = numbers_of(found);
  const bool is_open = !found.lost.empty() && found.lost.back().count == 0;
  for (const LostChunks& gap : found.lost) {
    EXPECT_TRUE(gap.count > 0 || &gap == &found.lost.back());
    for (std::uint64_t i = 0; i < gap.count; ++i) all.push_back(gap.first + i);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, all_but(all.size(), {}));
  if (is_open) {
    EXPECT_EQ(found.lost.back().first, all.size());
    EXPECT_LE(all.size(), made.chunks.size());
  } else {
    EXPECT_EQ(all.size(), made.chunks.size());
  }
}

inline std::vector<RowLayout> layouts() {
  static const std::uint32_t kBook[] = {50, 3};
  static const std::uint32_t kFew[] = {9};
  static const std::uint32_t kTable[] = {3, 2};
  return {RowLayout(Kind::Float32, kBook), RowLayout(Kind::UInt8, kFew), RowLayout(Kind::Int64, kTable)};
}

}  // namespace cdd
