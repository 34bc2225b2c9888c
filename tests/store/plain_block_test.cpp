// Index blocks of types 0 and 1, which this version reads and never writes: files built by hand, byte by byte
// as docs/formats/cdd.md has them.
#include <gtest/gtest.h>

#include "core/base/hash.h"
#include "core/store/reader.h"
#include "core/store/rescue/rewrite.h"
#include "core/store/writer.h"
#include "tests/rig/small_store.h"

namespace cdd {
namespace {

constexpr std::uint32_t kChunkRows = 3;
constexpr std::uint32_t kFirstCapacity = 4;

RowLayout layout() {
  static const std::uint32_t kDims[] = {5};
  return RowLayout(Kind::UInt16, kDims);
}

struct PlainFile {
  std::vector<std::byte> image;
  std::vector<std::byte> rows;
  std::vector<std::uint64_t> blocks;
  std::vector<std::uint64_t> records;

  void put(Bytes bytes) { image.insert(image.end(), bytes.begin(), bytes.end()); }
  void align(std::uint64_t to) { image.resize(static_cast<std::size_t>(to)); }
  void put_block(std::size_t k, const std::vector<std::byte>& block) {
    image.resize(std::max(image.size(), static_cast<std::size_t>(blocks[k]) + block.size()));
    std::copy(block.begin(), block.end(), image.begin() + static_cast<std::ptrdiff_t>(blocks[k]));
  }
};

// The block as it is stored: header, then the offsets, as they are or through LZ4.
std::vector<std::byte> plain_block(const std::vector<std::uint64_t>& entries, BlockType type) {
  const Bytes offsets(as_bytes(entries.data()), entries.size() * 8);
  std::vector<std::byte> body(offsets.begin(), offsets.end());
  if (type == BlockType::OffsetsLz4) {
    body.resize(compress_bound(Compressor::Lz4, offsets.size()));
    body.resize(compress(Compressor::Lz4, offsets, body, 0));
  }
  std::vector<std::byte> block(kBlockHeaderBytes);
  store<std::uint32_t>(block.data(), static_cast<std::uint32_t>(kBlockHeaderBytes + body.size()));
  store<std::uint16_t>(block.data() + 4, static_cast<std::uint16_t>(type));
  const Hash128 hash = hash128(body);
  store<std::uint64_t>(block.data() + kBlockHashAt, hash[0]);
  store<std::uint64_t>(block.data() + kBlockHashAt + 8, hash[1]);
  block.insert(block.end(), body.begin(), body.end());
  return block;
}

PlainFile make_plain_file(std::size_t chunks, BlockType type) {
  PlainFile file;
  file.rows = small_rows(layout(), chunks * kChunkRows, 9);
  Metadata metadata;
  metadata.salt.fill(std::byte{0x77});
  metadata.first_capacity = kFirstCapacity;
  metadata.index_type = BlockType::Offsets;
  metadata.layout = layout();
  file.put(encode_header(metadata, {}));
  const std::uint64_t first_block = file.image.size();
  const BlockGeometry geometry = metadata.geometry();
  file.align(first_block + 4096);
  for (std::size_t i = 0; i < chunks; ++i) {
    file.align(align_up(file.image.size(), kRecordAlignment));
    Scheme scheme;
    scheme.codec = find_codec(0);
    std::vector<std::byte> record(record_bound(layout(), kChunkRows, scheme) + kScratchPadding);
    const std::size_t bytes = std::size_t{kChunkRows} * layout().row_bytes();
    const auto chunk = encode_chunk(layout(), Bytes(file.rows).subspan(i * bytes, bytes), kChunkRows, scheme,
                                    {metadata.check_salt(), i}, record);
    file.records.push_back(file.image.size());
    file.put(Bytes(record).first(chunk.record_bytes));
  }
  // Block 0 follows the header, the others stand behind all records.
  file.blocks.push_back(first_block);
  while (geometry.first_chunk(file.blocks.size()) < chunks) {
    file.blocks.push_back(align_block(std::max<std::uint64_t>(file.image.size(), file.blocks.back()) + 4096));
  }
  for (std::size_t k = 0; k < file.blocks.size(); ++k) {
    std::vector<std::uint64_t> entries(geometry.capacity(k) + 1);
    for (std::uint64_t i = 0; i < geometry.capacity(k) && geometry.first_chunk(k) + i < chunks; ++i) {
      entries[static_cast<std::size_t>(i)] =
          file.records[static_cast<std::size_t>(geometry.first_chunk(k) + i)];
    }
    entries.back() = k + 1 < file.blocks.size() ? file.blocks[k + 1] : 0;
    file.put_block(k, plain_block(entries, type));
  }
  return file;
}

class PlainBlocks : public testing::TestWithParam<BlockType> {};

TEST_P(PlainBlocks, ReadLikeSlots) {
  for (const std::size_t chunks : {1u, 4u, 5u, 12u, 13u, 28u, 300u}) {
    const PlainFile file = make_plain_file(chunks, GetParam());
    Reader reader(std::make_shared<ViewStorage>(file.image, "plain"));
    ASSERT_EQ(reader.chunks(), chunks);
    ASSERT_EQ(reader.rows(), chunks * kChunkRows);
    std::vector<std::byte> rows(file.rows.size());
    reader.read_into({0, reader.rows()}, rows);
    EXPECT_EQ(rows, file.rows);
    for (std::size_t i = 0; i < chunks; ++i) {
      reader.verify_chunk(i);
      EXPECT_EQ(reader.chunk_info(i).offset, file.records[i]);
    }
    EXPECT_FALSE(reader.refresh());
  }
}

// Repair finds the records without the blocks and makes a file with slots, which can be appended to.
TEST_P(PlainBlocks, AreSalvagedIntoSlots) {
  PlainFile file = make_plain_file(13, GetParam());
  for (const std::uint64_t block : file.blocks)
    file.image[static_cast<std::size_t>(block) + 30] ^= std::byte{1};
  const ViewStorage view(file.image, "plain");
  EXPECT_THROW(Reader(std::make_shared<ViewStorage>(file.image, "plain")), Error);
  const Salvage found = salvage(view);
  const auto copy = std::make_shared<MemoryStorage>();
  copy_records(view, found.header, found.layout, found.records, *copy);
  const auto writer = Writer::open(copy, {});
  writer->append(layout(), file.rows, 13 * kChunkRows);
  writer->close();
  const Reader reader(copy);
  std::vector<std::byte> rows(2 * file.rows.size());
  reader.read_into({0, reader.rows()}, rows);
  EXPECT_TRUE(std::equal(file.rows.begin(), file.rows.end(), rows.begin()));
  EXPECT_TRUE(std::equal(file.rows.begin(), file.rows.end(), rows.begin() + std::ssize(file.rows)));
}

TEST_P(PlainBlocks, AreNotAppendedTo) {
  const PlainFile file = make_plain_file(5, GetParam());
  const auto storage = std::make_shared<MemoryStorage>();
  storage->write_at(0, Bytes(file.image));
  try {
    Writer::open(storage, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Unsupported);
  }
  storage->visit(
      [&](Bytes bytes) { EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), file.image.begin())); });
}

TEST_P(PlainBlocks, EveryFlippedBitIsRightOrAnError) {
  PlainFile file = make_plain_file(12, GetParam());
  for (std::size_t bit = 8 * file.blocks[0]; bit < 8 * file.image.size(); ++bit) {
    // Bytes that nothing refers to.
    if (bit / 8 > file.blocks[0] + 200 && bit / 8 < file.records[0]) continue;
    file.image[bit / 8] ^= std::byte{1} << (bit % 8);
    try {
      const Reader reader(std::make_shared<ViewStorage>(file.image, "plain"));
      EXPECT_EQ(reader.rows(), 12 * kChunkRows) << "bit " << bit;
      std::vector<std::byte> rows(file.rows.size());
      reader.read_into({0, reader.rows()}, rows);
      EXPECT_EQ(rows, file.rows) << "bit " << bit;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::Corrupt || error.code() == ErrorCode::Checksum ||
                  error.code() == ErrorCode::Truncated || error.code() == ErrorCode::Unsupported)
          << error.what();
    }
    file.image[bit / 8] ^= std::byte{1} << (bit % 8);
    if (HasFailure()) return;
  }
}

TEST_P(PlainBlocks, HostileOffsetsAreRefused) {
  for (const std::uint64_t offset :
       {std::uint64_t{1}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 40}) {
    PlainFile file = make_plain_file(2, GetParam());
    file.put_block(0, plain_block({file.records[0], offset, 0, 0, 0}, GetParam()));
    EXPECT_THROW(Reader(std::make_shared<ViewStorage>(file.image, "plain")), Error) << offset;
  }
  // A link back to itself must not be followed for ever.
  PlainFile file = make_plain_file(4, GetParam());
  std::vector<std::uint64_t> entries = file.records;
  entries.push_back(file.blocks[0]);
  file.put_block(0, plain_block(entries, GetParam()));
  EXPECT_THROW(Reader(std::make_shared<ViewStorage>(file.image, "plain")), Error);
}

INSTANTIATE_TEST_SUITE_P(Types, PlainBlocks, testing::Values(BlockType::Offsets, BlockType::OffsetsLz4),
                         [](const auto& info) { return info.param == BlockType::Offsets ? "Plain" : "Lz4"; });

}  // namespace
}  // namespace cdd
