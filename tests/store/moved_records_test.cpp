// Files in which records are out of place, as where blocks of a disk were exchanged or written over each
// other: salvage keeps every record that is whole, wherever it stands, and no moved one costs another.
#include <gtest/gtest.h>

#include <string_view>

#include "tests/rig/salvaged.h"

namespace cdd {
namespace {

void swap_pieces(Image& image, std::size_t a, std::size_t b, std::size_t bytes) {
  const auto at = [&](std::size_t i) { return image.begin() + static_cast<std::ptrdiff_t>(i); };
  std::swap_ranges(at(a), at(a + bytes), at(b));
}

// What a reader gets of an image.
Numbers readable_chunks(const Image& image) {
  Numbers numbers;
  try {
    const Reader reader(std::make_shared<ViewStorage>(image, "damaged"));
    numbers = all_but(reader.chunks(), {});
    for (const Error& error : reader.verify_chunks(0, reader.chunks()))
      std::erase(numbers, error.place().number);
  } catch (const Error&) {
  }
  return numbers;
}

// Chunks of which the whole record is somewhere in the image where a record can be.
Numbers whole_chunks(const SmallStore& made, const Image& image) {
  const auto text_of = [](const Image& bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  Numbers numbers;
  for (std::uint64_t i = 0; i < made.chunks.size(); ++i) {
    const auto record = text_of(made.image).substr(made.chunks[i].record_offset, made.chunks[i].record_bytes);
    std::size_t at = text_of(image).find(record);
    while (at != std::string_view::npos && at % kRecordAlignment != 0)
      at = text_of(image).find(record, at + 1);
    if (at != std::string_view::npos) numbers.push_back(i);
  }
  return numbers;
}

// Whatever happened to the image: all that is whole is kept under its number.
void expect_whole_records_are_kept(const SmallStore& made, const Image& image) {
  const Salvage found = salvage_image(image);
  const Numbers numbers = numbers_of(found);
  ASSERT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(numbers, whole_chunks(made, image));
  const Numbers readable = readable_chunks(image);
  EXPECT_TRUE(std::includes(numbers.begin(), numbers.end(), readable.begin(), readable.end()));
  EXPECT_EQ(found.whole_end, numbers.empty() ? 0 : numbers.back() + 1);
  EXPECT_TRUE(found.complete);
  expect_all_is_accounted_for(made, found);
  if (!numbers.empty()) expect_copy_is_right(made, image, found);
}

constexpr std::uint64_t kChunks = 40;

class SalvageOfMoved : public testing::TestWithParam<RowLayout> {};

// Pieces of the size of sectors and pages that changed places, or of which one was written over another.
TEST_P(SalvageOfMoved, TakeNothingFromOthers) {
  const std::uint32_t chunk_rows = std::max(8u, 1000 / GetParam().row_bytes());
  std::mt19937 random(6);
  for (const std::uint32_t first_capacity : {4u, 128u}) {
    const SmallStore made = make_small_store(GetParam(), chunk_rows, kChunks, true, first_capacity);
    for (unsigned round = 0; round < 240; ++round) {
      Image image = made.image;
      if (round % 2 == 1) wipe_index(made, image);
      const std::size_t bytes = round % 4 < 2 ? 512 : 4096;
      const std::size_t first = static_cast<std::size_t>(align_up(made.first_block, bytes)) / bytes;
      const std::size_t pieces = image.size() / bytes - first;
      for (unsigned i = 0; i <= round % 3; ++i) {
        const std::size_t a = (first + random() % pieces) * bytes;
        const std::size_t b = (first + random() % pieces) * bytes;
        if (random() % 4 > 0) {
          swap_pieces(image, a, b, bytes);
        } else {
          std::copy_n(image.begin() + static_cast<std::ptrdiff_t>(a), bytes,
                      image.begin() + static_cast<std::ptrdiff_t>(b));
        }
      }
      expect_whole_records_are_kept(made, image);
      ASSERT_FALSE(HasFailure()) << "round " << round << ", first capacity " << first_capacity;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, SalvageOfMoved, testing::ValuesIn(layouts()), [](const auto& info) {
  return "Dtype" + std::to_string(info.param.dtype().code());
});

// Records that were moved forward have numbers higher than those behind them.
TEST(Salvage, ARecordThatWasMovedForwardHidesNone) {
  const RowLayout layout = layouts()[2];
  const SmallStore made = make_small_store(layout, 24, 33, true, 128);
  Image image = made.image;
  swap_pieces(image, 8192, 16384, 4096);
  ASSERT_GE(readable_chunks(image).size(), 20u);
  ASSERT_GT(whole_chunks(made, image).size(), readable_chunks(image).size());
  expect_whole_records_are_kept(made, image);
  image = made.image;
  wipe_index(made, image);
  swap_pieces(image, 8192, 16384, 4096);
  expect_whole_records_are_kept(made, image);
}

// Where a slot leads to a whole record, another that passes for the same chunk is not asked.
TEST(Salvage, WhatASlotPointsAtIsTakenFirst) {
  const RowLayout layout = layouts()[2];
  const SmallStore made = make_small_store(layout, 2, 12, true, 16);
  const SmallStore other = make_small_store(layout, 4, 12, true, 16);  // the same salt
  Image image = made.image;
  const std::uint64_t from = made.chunks[2].record_offset;
  wipe(image, from, made.chunks[8].record_offset - from, std::byte{0x77});
  const PendingChunk& false_one = other.chunks[10];
  ASSERT_LT(made.chunks[6].record_offset + false_one.record_bytes, made.chunks[8].record_offset);
  std::copy_n(other.image.begin() + static_cast<std::ptrdiff_t>(false_one.record_offset),
              false_one.record_bytes,
              image.begin() + static_cast<std::ptrdiff_t>(made.chunks[6].record_offset));
  const Salvage found = salvage_image(image);
  EXPECT_EQ(numbers_of(found), all_but(12, {2, 3, 4, 5, 6, 7}));
  expect_copy_is_right(made, image, found);
}

}  // namespace
}  // namespace cdd
