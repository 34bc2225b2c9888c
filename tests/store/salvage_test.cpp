// Files whose index is gone, wiped, cut or whose records are damaged: salvage finds every record that is
// whole, says which chunks are not, and a copy of what it found is a store with those rows.
#include <gtest/gtest.h>

#include "core/storage/memory.h"
#include "core/store/writer.h"
#include "tests/rig/salvaged.h"

namespace cdd {
namespace {

constexpr std::uint64_t kChunks = 40;

class SalvageTest : public testing::TestWithParam<RowLayout> {
 protected:
  const SmallStore made_ = make_small_store(GetParam(), 2, kChunks, true);
  Image image_ = made_.image;

  void damage(std::uint64_t chunk) {
    image_[static_cast<std::size_t>(made_.chunks[chunk].record_offset) + made_.chunks[chunk].record_bytes -
           6] ^= std::byte{1};
  }
};

TEST_P(SalvageTest, AWholeFileLosesNothing) {
  for (const bool closed : {true, false}) {
    const SmallStore made = make_small_store(GetParam(), 2, kChunks, closed);
    const Salvage found = salvage_image(made.image);
    EXPECT_EQ(numbers_of(found), all_but(kChunks, {}));
    EXPECT_TRUE(found.lost.empty());
    EXPECT_TRUE(found.complete);
    EXPECT_EQ(found.whole_end, kChunks);
    EXPECT_EQ(found.layout, made.layout);
    expect_copy_is_right(made, made.image, found);
  }
}

TEST_P(SalvageTest, EveryRecordIsFoundWithoutAnyIndex) {
  wipe_index(made_, image_);
  const Salvage found = salvage_image(image_);
  EXPECT_EQ(numbers_of(found), all_but(kChunks, {}));
  EXPECT_TRUE(found.lost.empty());
  expect_copy_is_right(made_, image_, found);
}

TEST_P(SalvageTest, DamagedRecordsAreLostAndNoOthers) {
  for (const Numbers& bad :
       {Numbers{0}, {7}, {3, 4, 5}, {0, 1, 12, 30, 31}, {kChunks - 1}, {0, kChunks - 1}}) {
    image_ = made_.image;
    for (const std::uint64_t chunk : bad) damage(chunk);
    const Salvage found = salvage_image(image_);
    EXPECT_EQ(numbers_of(found), all_but(kChunks, bad));
    Numbers lost;
    for (const LostChunks& gap : found.lost) {
      for (std::uint64_t i = 0; i < gap.count; ++i) lost.push_back(gap.first + i);
      EXPECT_EQ(gap.row_begin, gap.first * 2);
      EXPECT_EQ(gap.row_end, (gap.first + gap.count) * 2);
    }
    EXPECT_EQ(lost, bad);
    expect_copy_is_right(made_, image_, found);
  }
}

// Also where it is asked within the decoding of a record, whose other errors mean that the record is damaged.
TEST_P(SalvageTest, WhatProgressThrowsEndsItWhereverItIsAsked) {
  damage(7);
  const ViewStorage storage(image_, "<image>");
  for (std::uint64_t at = 0;; ++at) {
    std::uint64_t calls = 0;
    const auto end = [&](std::uint64_t, std::uint64_t) {
      if (calls++ == at) fail(ErrorCode::Cancelled, "enough");
    };
    try {
      salvage(storage, kMaxChunkRawBytes, end);
      EXPECT_LE(calls, at) << "nothing was thrown though it was told to end";
      EXPECT_GT(at, kChunks);
      return;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Cancelled);
      EXPECT_EQ(calls, at + 1) << "nothing goes on";
    }
  }
}

TEST_P(SalvageTest, DamagedRecordsWithoutAnyIndex) {
  wipe_index(made_, image_);
  for (const std::uint64_t chunk : {9u, 10u, 20u}) damage(chunk);
  Salvage found = salvage_image(image_);
  EXPECT_EQ(numbers_of(found), all_but(kChunks, {9, 10, 20}));
  ASSERT_EQ(found.lost.size(), 2u);
  EXPECT_EQ(found.lost[0].first, 9u);
  EXPECT_EQ(found.lost[0].count, 2u);
  EXPECT_EQ(found.lost[0].row_begin, 18u);
  EXPECT_FALSE(found.lost[0].row_end);  // only the index knew how many rows a lost chunk had
  EXPECT_EQ(found.lost[1].first, 20u);
  EXPECT_FALSE(found.lost[1].row_begin);
  expect_copy_is_right(made_, image_, found);

  damage(kChunks - 1);
  found = salvage_image(image_);
  EXPECT_EQ(numbers_of(found), all_but(kChunks, {9, 10, 20, kChunks - 1}));
  ASSERT_EQ(found.lost.size(), 3u);
  EXPECT_EQ(found.lost[2].first, kChunks - 1);
  EXPECT_EQ(found.lost[2].count, 0u);  // something was there, nothing says how much
}

TEST_P(SalvageTest, RecordsThatAreWipedLeaveTheOthersTheirNumbers) {
  for (const std::byte with : {std::byte{0}, std::byte{0xff}}) {
    image_ = made_.image;
    wipe_index(made_, image_);
    const std::uint64_t from = made_.chunks[6].record_offset + 40;
    wipe(image_, from, made_.chunks[29].record_offset + 3 - from, with);
    Numbers bad;
    for (std::uint64_t i = 6; i <= 29; ++i) bad.push_back(i);
    const Salvage found = salvage_image(image_);
    EXPECT_EQ(numbers_of(found), all_but(kChunks, bad));
    ASSERT_EQ(found.lost.size(), 1u);
    EXPECT_EQ(found.lost[0].first, 6u);
    EXPECT_EQ(found.lost[0].count, 24u);
  }
}

TEST_P(SalvageTest, EachWipedBlockCostsNothing) {
  const BlockGeometry geometry(4, kMaxCapacity);
  std::uint64_t at = made_.first_block;
  for (std::uint64_t k = 0; geometry.first_chunk(k) < kChunks; ++k) {
    image_ = made_.image;
    wipe(image_, at, geometry.block_bytes(k), std::byte{0x77});
    const Salvage found = salvage_image(image_);
    EXPECT_EQ(numbers_of(found), all_but(kChunks, {})) << "block " << k;
    for (const LostChunks& gap : found.lost) EXPECT_EQ(gap.count, 0u);
    expect_copy_is_right(made_, image_, found);
    const std::uint64_t last = geometry.first_chunk(k + 1) - 1;
    if (last < kChunks) at = align_block(made_.chunks[last].record_offset + made_.chunks[last].record_bytes);
  }
}

TEST_P(SalvageTest, AWipedBlockAndALostRecordBehindIt) {
  wipe(image_, made_.first_block, BlockGeometry(4, kMaxCapacity).block_bytes(0));
  damage(2);
  damage(20);
  const Salvage found = salvage_image(image_);
  EXPECT_EQ(numbers_of(found), all_but(kChunks, {2, 20}));
  ASSERT_EQ(found.lost.size(), 2u);
  EXPECT_EQ(found.lost[0].row_begin, 4u);
  EXPECT_EQ(found.lost[0].row_end, 6u);     // counted back from the next block
  EXPECT_EQ(found.lost[1].row_begin, 40u);  // of a block that is found without its link
  EXPECT_EQ(found.lost[1].row_end, 42u);
}

TEST_P(SalvageTest, EveryCutKeepsWhatLiesBeforeIt) {
  for (std::size_t size = static_cast<std::size_t>(made_.first_block); size < image_.size(); size += 7) {
    const Image cut(image_.begin(), image_.begin() + static_cast<std::ptrdiff_t>(size));
    const Salvage found = salvage_image(cut);
    std::uint64_t whole = 0;
    while (whole < kChunks && made_.chunks[whole].record_offset + made_.chunks[whole].record_bytes <= size)
      ++whole;
    ASSERT_EQ(numbers_of(found), all_but(whole, {})) << "cut to " << size;
    expect_all_is_accounted_for(made_, found);
    ASSERT_FALSE(HasFailure()) << "cut to " << size;
  }
}

TEST_P(SalvageTest, EveryFlippedBitCostsOneRecordAtMost) {
  for (std::size_t bit = static_cast<std::size_t>(made_.first_block) * 8; bit < image_.size() * 8;
       bit += 37) {
    image_[bit / 8] ^= std::byte{1} << (bit % 8);
    const Salvage found = salvage_image(image_);
    Numbers bad;
    for (std::uint64_t i = 0; i < kChunks; ++i) {
      const PendingChunk& chunk = made_.chunks[i];
      if (bit / 8 >= chunk.record_offset && bit / 8 < chunk.record_offset + chunk.record_bytes)
        bad.push_back(i);
    }
    ASSERT_EQ(numbers_of(found), all_but(kChunks, bad)) << "bit " << bit;
    image_[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST_P(SalvageTest, RandomBytesNeitherCrashItNorMakeRows) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    image_ = made_.image;
    for (auto i = 1 + random() % 60; i-- > 0;) {
      image_[made_.first_block + random() % (image_.size() - made_.first_block)] =
          static_cast<std::byte>(random());
    }
    const Salvage found = salvage_image(image_);
    ASSERT_TRUE(found.complete);
    expect_copy_is_right(made_, image_, found);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, SalvageTest, testing::ValuesIn(layouts()), [](const auto& info) {
  return "Dtype" + std::to_string(info.param.dtype().code());
});

// Chunks of far more rows than the file has bytes are no reason to give up.
TEST(Salvage, RowsThatShrinkToNothingAreAllFound) {
  const RowLayout layout(Kind::UInt8, {});
  const auto storage = std::make_shared<MemoryStorage>();
  WriterOptions options;
  options.chunk_rows = 1 << 16;
  const auto writer = Writer::create(storage, options);
  writer->append(layout, Image(100 << 16), 100 << 16);
  writer->close();
  const Salvage found = salvage(ViewStorage(image_of(storage), "whole"), 1 << 16);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.rows, 100u << 16);
}

// Appends of several chunks come out as they went in: the records say so, and so do the slots of the copy.
TEST(Salvage, KeepsAppendsWholeAndFindsTheLayout) {
  const RowLayout layout = layouts()[2];
  const auto storage = std::make_shared<MemoryStorage>();
  WriterOptions options;
  options.chunk_rows = 2;
  options.first_capacity = 2;
  options.user_meta.assign(3, std::byte{'m'});
  const auto writer = Writer::create(storage, options);
  for (unsigned i = 0; i < 5; ++i) writer->append(layout, small_rows(layout, 6, i), 6);
  writer->close();
  const Image image = image_of(storage);
  const Salvage found = salvage_image(image);
  ASSERT_EQ(found.records.size(), 15u);
  EXPECT_EQ(found.layout, layout);
  const auto copy = std::make_shared<MemoryStorage>();
  copy_records(ViewStorage(image, "whole"), found.header, found.layout, found.records, *copy);
  const Reader reader(copy);
  EXPECT_EQ(reader.header().user_meta, options.user_meta);
  EXPECT_NE(reader.header().metadata.salt, found.header.metadata.salt);
  const BlockWalk walk(*copy, reader.header().metadata, reader.header().first_block);
  for (std::uint64_t chunk = 0; chunk < 15; ++chunk) {
    const auto slot = walk.read_slots(chunk, 1).front();
    ASSERT_TRUE(slot);
    EXPECT_EQ(slot->has(slot_flags::kEnd), chunk % 3 == 2);
  }
}

// A store within a store: the records of the inner one are not taken for the outer one's.
TEST(Salvage, ARecordOfAnotherFileIsNone) {
  const SmallStore inner = make_small_store(layouts()[1], 2, 10, true);
  Metadata metadata;
  metadata.salt.fill(std::byte{0x11});
  metadata.layout = inner.layout;
  Image image = encode_header(metadata, {});
  image.insert(image.end(), inner.image.begin(), inner.image.end());
  EXPECT_TRUE(salvage_image(image).records.empty());
}

// Records of which each claims the rest of the file, and whose rows are right but whose number is not to be
// found: the work for them ends.
TEST(Salvage, AFileThatIsMadeToKeepItBusyIsGivenUp) {
  const RowLayout layout(Kind::UInt8, {});
  Metadata metadata;
  metadata.layout = layout;
  Image image = encode_header(metadata, {});
  image.resize(image.size() + (4 << 20));
  Scheme scheme;
  scheme.codec = find_codec(static_cast<std::uint16_t>(CodecId::Bytes));
  ASSERT_NE(scheme.codec, nullptr);
  scheme.compressor = Compressor::Zstd;
  const Image zeros(1 << 20);
  Image record(record_bound(layout, 1 << 20, scheme) + kScratchPadding);
  const EncodedChunk chunk =
      encode_chunk(layout, zeros, 1 << 20, scheme, {std::uint64_t{7} << 40, 1}, record);
  ASSERT_GT(chunk.record_bytes, 0u);
  for (std::size_t at = image.size() - (4 << 20); at + chunk.record_bytes < image.size();
       at = static_cast<std::size_t>(align_up(at + chunk.record_bytes, 8))) {
    at = static_cast<std::size_t>(align_up(at, 8));
    std::copy_n(record.begin(), chunk.record_bytes, image.begin() + static_cast<std::ptrdiff_t>(at));
  }
  const Salvage found = salvage(ViewStorage(image, "hostile"), 1 << 20);
  EXPECT_TRUE(found.records.empty());
  EXPECT_FALSE(found.complete);
}

}  // namespace
}  // namespace cdd
