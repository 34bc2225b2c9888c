// Damaged files: every bit, every length, sectors, blocks and records wiped or exchanged, bytes at random.
// Whatever happens, what is read is the right bytes or an error of the kinds that tell damage; one flipped
// bit costs one chunk at most, in files that were closed and in those whose writer died.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "core/store/index/block_walk.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/rig/small_store.h"

namespace cdd {
namespace {

struct Found {
  bool opened = false;
  std::uint64_t rows = 0;
  std::uint64_t lost_chunks = 0;
};

bool tells_damage(const Error& error) {
  return error.code() == ErrorCode::Corrupt || error.code() == ErrorCode::Truncated ||
         error.code() == ErrorCode::Checksum || error.code() == ErrorCode::Unsupported;
}

// Reads all of a damaged image of `made`, chunk by chunk, and fails the test for anything but right rows or
// errors.
Found inspect(const SmallStore& made, const std::vector<std::byte>& image, Verify verify = Verify::Stored) {
  Found found;
  const auto fair = [&](const char* what, auto&& read) {
    try {
      read();
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(tells_damage(error)) << what << ": " << error.what();
      return false;
    }
  };
  std::unique_ptr<Reader> reader;
  ReaderOptions options;
  options.verify = verify;
  options.max_chunk_raw_bytes = 1 << 20;
  found.opened = fair("open", [&] {
    reader = std::make_unique<Reader>(std::make_shared<ViewStorage>(image, "damaged"), options);
  });
  if (!found.opened) return found;
  found.rows = reader->rows();
  const std::uint64_t all_rows = made.rows.size() / made.layout.row_bytes();
  EXPECT_LE(found.rows, all_rows);
  std::vector<std::byte> rows(made.chunk_bytes());
  for (std::uint64_t first = 0; first + made.chunk_rows <= found.rows; first += made.chunk_rows) {
    const bool read = fair("read", [&] { reader->read_into({first, made.chunk_rows}, rows); });
    if (!read) ++found.lost_chunks;
    if (verify == Verify::None || !read) continue;
    EXPECT_TRUE(std::equal(rows.begin(), rows.end(),
                           made.rows.begin() + static_cast<std::ptrdiff_t>(first * made.layout.row_bytes())))
        << "wrong bytes in rows from " << first;
  }
  if (found.rows >= made.chunk_rows) {
    const std::uint64_t starts[] = {found.rows - made.chunk_rows, 0};
    rows.resize(2 * made.chunk_bytes());
    fair("windows", [&] { reader->read_windows(starts, made.chunk_rows, rows); });
    EXPECT_EQ(reader->layout(), made.layout);
  }
  fair("refresh", [&] { EXPECT_FALSE(reader->refresh()); });
  for (std::uint64_t i = 0; i < reader->chunks(); ++i) fair("info", [&] { reader->chunk_info(i); });
  return found;
}

std::vector<RowLayout> layouts() {
  static const std::uint32_t kBook[] = {50, 3};
  static const std::uint32_t kFew[] = {9};
  static const std::uint32_t kTable[] = {3, 2};
  return {RowLayout(Kind::Float32, kBook), RowLayout(Kind::UInt8, kFew), RowLayout(Kind::Int64, kTable)};
}

// Enough for a chunk by every scheme that takes it, and for some index blocks.
std::size_t chunks_of_all_plans(const RowLayout& layout) {
  return std::max<std::size_t>(22, schemes_for(layout).size());
}

// One bit in `stride` of them; 1 for a run that takes them all.
std::size_t stride() {
  const char* const given = std::getenv("CDD_DAMAGE_STRIDE");
  return given == nullptr ? 16 : static_cast<std::size_t>(std::max(1, std::atoi(given)));
}

// Of random damage, in each of two tests and for each layout.
int rounds() {
  const char* const given = std::getenv("CDD_DAMAGE_ROUNDS");
  return given == nullptr ? 2000 : std::max(1, std::atoi(given));
}

// Closed, and left by a writer that died with none, one and two appends behind the last commit; also where
// that filled a block, so that the proof stands in the link's place, or a block began behind it.
std::vector<SmallStore> stores(const RowLayout& layout) {
  const std::size_t n = chunks_of_all_plans(layout);
  std::vector<SmallStore> made;
  made.push_back(make_small_store(layout, 2, n, true));
  for (const std::size_t chunks : {n, n + 1, n + 2, std::size_t{12}, std::size_t{13}}) {
    made.push_back(make_small_store(layout, 2, chunks, false));
  }
  return made;
}

std::string name_of(const SmallStore& made) {
  return std::to_string(made.chunks.size()) + " chunks, " + std::to_string(made.proven_chunks) + " proven, ";
}

class Damage : public testing::TestWithParam<RowLayout> {};

TEST_P(Damage, OneFlippedBitCostsOneChunkAtMost) {
  std::size_t flips = 0;
  for (const SmallStore& made : stores(GetParam())) {
    ASSERT_EQ(inspect(made, made.image).lost_chunks, 0u);
    std::vector<std::byte> image = made.image;
    for (std::size_t bit = 0; bit < image.size() * 8; bit += stride(), ++flips) {
      const std::size_t byte = bit / 8;
      const std::size_t exact = bit + (bit / stride()) % std::min<std::size_t>(stride(), 8);
      image[byte] ^= std::byte{1} << (exact % 8);
      const Found found = inspect(made, image);
      if (byte >= made.first_block) {
        ASSERT_TRUE(found.opened) << name_of(made) << "bit " << exact;
        EXPECT_LE(found.lost_chunks, 1u) << name_of(made) << "bit " << exact;
        EXPECT_GE(found.rows, made.proven_chunks * made.chunk_rows) << name_of(made) << "bit " << exact;
      }
      image[byte] ^= std::byte{1} << (exact % 8);
      if (HasFailure()) return;
    }
    ASSERT_EQ(image, made.image);
  }
  RecordProperty("flipped_bits", std::to_string(flips));
}

TEST_P(Damage, EveryLengthIsRightOrAnError) {
  std::size_t lengths = 0;
  for (const SmallStore& made : stores(GetParam())) {
    if (made.proven_chunks < made.chunks.size()) continue;  // what has no proof may vanish
    for (std::size_t size = 0; size < made.image.size(); ++size, ++lengths) {
      const Found found =
          inspect(made, {made.image.begin(), made.image.begin() + static_cast<std::ptrdiff_t>(size)});
      if (found.opened) {
        EXPECT_EQ(found.rows, made.chunks.size() * made.chunk_rows)
            << name_of(made) << "cut to " << size << " bytes, rows vanished without an error";
        EXPECT_GE(found.lost_chunks, 1u)
            << name_of(made) << "cut to " << size << " bytes and nothing is missing";
      }
      if (HasFailure()) return;
    }
  }
  RecordProperty("lengths", std::to_string(lengths));
}

TEST_P(Damage, WipedSectorsAreLostAndNothingElse) {
  const SmallStore made = make_small_store(GetParam(), 2, chunks_of_all_plans(GetParam()), true);
  std::mt19937 random(3);
  for (const std::size_t sector : {64u, 512u, 4096u}) {
    for (std::size_t at = 0; at < made.image.size(); at += sector) {
      for (const int fill : {0, 0xff, -1}) {
        std::vector<std::byte> image = made.image;
        for (std::size_t i = at; i < std::min(at + sector, image.size()); ++i) {
          image[i] = static_cast<std::byte>(fill < 0 ? random() : static_cast<unsigned>(fill));
        }
        inspect(made, image);
        if (HasFailure()) return;
      }
    }
  }
}

// What stands behind an index that damage cut short is not taken for what a crash left: a writer keeps it, or
// refuses the file.
TEST_P(Damage, AWipedPieceOfTheIndexHidesNothingFromWriters) {
  std::size_t kept = 0;
  for (const SmallStore& made : stores(GetParam())) {
    for (std::size_t at = made.first_block; at < made.image.size(); at += 32) {
      const auto damaged = std::make_shared<MemoryStorage>();
      std::vector<std::byte> image = made.image;
      std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(at),
                  std::min<std::size_t>(64, image.size() - at), std::byte{0});
      damaged->write_at(0, Bytes(image));
      WriterOptions options;
      options.chunk_rows = 2;
      try {
        const auto writer = Writer::open(damaged, options);
        EXPECT_GE(writer->rows(), made.proven_chunks * made.chunk_rows) << name_of(made) << "byte " << at;
        ++kept;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Checksum) << error.what();
      }
      damaged->visit([&](Bytes bytes) { image.assign(bytes.begin(), bytes.end()); });
      inspect(made, image);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(kept, 300u);
}

TEST_P(Damage, ExchangedSectorsAndRecordsAreNoticed) {
  const SmallStore made = make_small_store(GetParam(), 2, chunks_of_all_plans(GetParam()), true);
  for (const std::size_t sector : {32u, 512u}) {
    const std::size_t sectors = made.image.size() / sector;
    for (std::size_t a = 0; a + 1 < sectors; ++a) {
      std::vector<std::byte> image = made.image;
      const std::size_t b = a + 1 + a * 7 % (sectors - a - 1);
      std::swap_ranges(image.begin() + static_cast<std::ptrdiff_t>(a * sector),
                       image.begin() + static_cast<std::ptrdiff_t>((a + 1) * sector),
                       image.begin() + static_cast<std::ptrdiff_t>(b * sector));
      inspect(made, image);
      if (HasFailure()) return;
    }
  }
  // Records of equal length in each other's place: their checks know their numbers.
  for (std::size_t a = 0; a < made.chunks.size(); ++a) {
    for (std::size_t b = a + 1; b < made.chunks.size(); ++b) {
      if (made.chunks[a].record_bytes != made.chunks[b].record_bytes) continue;
      std::vector<std::byte> image = made.image;
      const auto begin = image.begin() + static_cast<std::ptrdiff_t>(made.chunks[a].record_offset);
      std::swap_ranges(begin, begin + made.chunks[a].record_bytes,
                       image.begin() + static_cast<std::ptrdiff_t>(made.chunks[b].record_offset));
      EXPECT_EQ(inspect(made, image).lost_chunks, 2u);
    }
  }
}

TEST_P(Damage, RandomBytesNeverGiveWrongRows) {
  const SmallStore made = make_small_store(GetParam(), 2, chunks_of_all_plans(GetParam()), true);
  std::mt19937 random(11);
  for (int round = 0; round < rounds(); ++round) {
    std::vector<std::byte> image = made.image;
    for (auto i = 1 + random() % 20; i-- > 0;)
      image[random() % image.size()] = static_cast<std::byte>(random());
    if (round % 4 == 0) image.resize(random() % image.size());
    inspect(made, image);
    if (HasFailure()) return;
  }
  RecordProperty("damaged_files", rounds());
}

// Checks off: whatever the bytes say, no crash.
TEST_P(Damage, WithoutChecksItIsStillMemorySafe) {
  const SmallStore made = make_small_store(GetParam(), 2, chunks_of_all_plans(GetParam()), true);
  std::mt19937 random(12);
  for (int round = 0; round < rounds(); ++round) {
    std::vector<std::byte> image = made.image;
    for (auto i = 1 + random() % 20; i-- > 0;) {
      const PendingChunk& chunk = made.chunks[random() % made.chunks.size()];
      image[chunk.record_offset + random() % (chunk.record_bytes - 4)] = static_cast<std::byte>(random());
    }
    inspect(made, image, Verify::None);
    if (HasFailure()) return;
  }
  RecordProperty("damaged_files", rounds());
}

// A writer opens the damaged file and appends: every chunk but the damaged one keeps its rows.
TEST_P(Damage, AppendingToADamagedFileKeepsItsRows) {
  std::size_t files = 0;
  for (const SmallStore& made : stores(GetParam())) {
    const auto more = small_rows(made.layout, 2, 77);
    for (std::size_t bit = 8 * made.first_block; bit < made.image.size() * 8;
         bit += stride() * 5 + 3, ++files) {
      const auto damaged = std::make_shared<MemoryStorage>();
      std::vector<std::byte> image = made.image;
      image[bit / 8] ^= std::byte{1} << (bit % 8);
      damaged->write_at(0, Bytes(image));
      WriterOptions options;
      options.chunk_rows = 2;
      const auto writer = Writer::open(damaged, options);
      const std::uint64_t rows = writer->rows();
      EXPECT_GE(rows, made.proven_chunks * made.chunk_rows) << name_of(made) << "bit " << bit;
      writer->append(made.layout, more, 2);
      writer->close();
      SmallStore longer = made;
      longer.rows.resize(rows * made.layout.row_bytes());
      longer.rows.insert(longer.rows.end(), more.begin(), more.end());
      damaged->visit([&](Bytes bytes) { image.assign(bytes.begin(), bytes.end()); });
      const Found found = inspect(longer, image);
      EXPECT_TRUE(found.opened) << name_of(made) << "bit " << bit;
      EXPECT_EQ(found.rows, rows + 2) << name_of(made) << "bit " << bit;
      EXPECT_LE(found.lost_chunks, 1u) << name_of(made) << "bit " << bit;
      if (HasFailure()) return;
    }
  }
  RecordProperty("damaged_appends", std::to_string(files));
}

// What the tests above damage: a codec that none of their files holds would go untested unnoticed.
TEST(DamagedFiles, HoldEveryCodec) {
  std::set<std::uint16_t> found;
  for (const RowLayout& layout : layouts()) {
    const SmallStore made = make_small_store(layout, 2, chunks_of_all_plans(layout), true);
    for (const PendingChunk& chunk : made.chunks) {
      found.insert(load<std::uint16_t>(made.image.data() + chunk.record_offset + 4));
    }
  }
  for (const Codec* codec : codecs()) {
    EXPECT_TRUE(found.contains(static_cast<std::uint16_t>(codec->id))) << codec->name;
  }
}

// The same where an append goes over the ends of blocks: its first slots hold, and no END is among them.
TEST(DamagedFiles, KeepLongAppendsWhoseLastSlotsAreWiped) {
  const RowLayout layout = layouts()[0];
  const auto rows = small_rows(layout, 100, 5);
  WriterOptions options;
  options.chunk_rows = 2;
  options.first_capacity = 4;
  for (const std::size_t first : {0u, 2u, 6u, 8u, 10u, 22u}) {
    const auto storage = std::make_shared<MemoryStorage>();
    const auto writer = Writer::create(storage, options);
    writer->append(layout, Bytes(rows).first(first * layout.row_bytes()), first);
    writer->flush();
    writer->append(layout, Bytes(rows).subspan(first * layout.row_bytes()), 100 - first);
    writer->close();
    std::vector<std::byte> image;
    storage->visit([&](Bytes bytes) { image.assign(bytes.begin(), bytes.end()); });
    const Header header = read_header(*storage);
    const std::uint64_t last =
        BlockWalk(*storage, header.metadata, header.first_block).blocks().back().offset;
    for (std::size_t slots = 1; slots <= 22; ++slots) {  // 22 chunks of the last block, and the proof
      auto damaged = image;
      std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(last + kBlockHeaderBytes + (23 - slots) * 32),
                  slots * 32, std::byte{0});
      const auto left = std::make_shared<MemoryStorage>();
      left->write_at(0, Bytes(damaged));
      const auto next = Writer::open(left, options);
      EXPECT_EQ(next->rows(), 100u) << first << " rows first, " << slots << " slots wiped";
      next->close();
      std::vector<std::byte> found(rows.size());
      Reader(left).read_into({0, 100}, found);
      EXPECT_EQ(found, rows);
      if (HasFailure()) return;
    }
  }
}

// A kill left no proof of the chunks behind a damaged one. A writer that needs them refuses the file, whose
// rows stay there for rescue; one that does not cuts them off.
TEST(DamagedFiles, AreNotCutBelowTheRowsThatAreNeeded) {
  const RowLayout layout = layouts()[0];
  WriterOptions options;
  options.chunk_rows = 2;
  options.durability = Durability::None;
  const auto storage = std::make_shared<MemoryStorage>();
  const auto writer = Writer::create(storage, options);
  for (unsigned i = 0; i < 20; ++i) writer->append(layout, small_rows(layout, 2, i), 2);
  writer->give_up();
  const ChunkInfo info = Reader(storage).chunk_info(7);
  std::vector<std::byte> image;
  storage->visit([&](Bytes bytes) { image.assign(bytes.begin(), bytes.end()); });
  image[info.offset + info.stored_bytes / 2] ^= std::byte{1};
  const std::uint64_t slots = read_header(*storage).first_block + kBlockHeaderBytes;
  std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(slots + 3 * kSlotBytes), 10 * kSlotBytes,
              std::byte{0});  // which recovery restores up to the damaged record
  storage->write_at(0, Bytes(image));
  for (const std::uint64_t needed : {40u, 15u}) {
    options.least_rows = needed;
    try {
      Writer::open(storage, options);
      FAIL() << "opened, " << needed << " rows are needed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Truncated) << error.what();
      EXPECT_NE(std::string(error.what()).find("would keep 14 rows"), std::string::npos) << error.what();
    }
    storage->visit([&](Bytes bytes) { EXPECT_TRUE(std::ranges::equal(bytes, image)); });
  }
  options.least_rows = 14;
  EXPECT_EQ(Writer::open(storage, options)->rows(), 14u);
}

// Rows may hold a copy of a block of this very file: only what stands in its own place is one.
TEST(DamagedFiles, ACopyOfABlockIsNotTakenForTheBlock) {
  const SmallStore made = make_small_store(layouts()[0], 2, 22, true);
  const std::uint64_t block_end = made.chunks[3].record_offset + made.chunks[3].record_bytes;
  const std::uint64_t second = align_block(block_end);
  const std::uint64_t copy = align_block(made.chunks[3].record_offset);
  ASSERT_GT(block_end, copy + 64);
  std::vector<std::byte> image = made.image;
  std::copy_n(made.image.begin() + static_cast<std::ptrdiff_t>(second), 64,
              image.begin() + static_cast<std::ptrdiff_t>(copy));
  std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(made.first_block + kBlockHeaderBytes + 3 * 32), 64,
              std::byte{0});  // the last slot and the link
  const Found found = inspect(made, image);
  EXPECT_EQ(found.rows, 44u);
  EXPECT_EQ(found.lost_chunks, 1u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Damage, testing::ValuesIn(layouts()), [](const auto& info) {
  return "Dtype" + std::to_string(info.param.dtype().code());
});

}  // namespace
}  // namespace cdd
