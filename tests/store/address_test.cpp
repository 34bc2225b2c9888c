// What does not fit 32 bits: files beyond 4 GiB, on every build, and chunks that a build with 32-bit
// addresses must refuse instead of wrapping a size.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/codec/chunk_codec.h"
#include "core/format/cdd/record.h"
#include "core/storage/mapped_file.h"
#include "core/store/header.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/rig/small_store.h"

namespace cdd {
namespace {

constexpr std::uint64_t kFarEnd = (std::uint64_t{5} << 30) + 4096;
constexpr bool kIs32Bit = sizeof(std::size_t) == 4;

RowLayout layout() {
  static const std::uint32_t kDims[] = {8};
  return RowLayout(Kind::Int32, kDims);
}

struct TemporaryFile {
  TemporaryFile() {
    path = (std::filesystem::temp_directory_path() / ("cdd-far-" + std::to_string(process_id()) + ".cdd"))
               .string();
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string path;
};

// A closed file of one chunk whose next one goes to kFarEnd: behind a hole, so that the disk holds little.
void make_far_file(const std::string& path, Bytes rows) {
  {
    WriterOptions options;
    options.chunk_rows = 16;
    const std::unique_ptr<Writer> writer = Writer::create_file(path, true, options);
    writer->append(layout(), rows, 16);
    writer->close();
  }
  const auto file = FileStorage::open(path, FileStorage::Access::Append);
  const Header header = read_header(*file);
  Slot closed;
  closed.offset = kFarEnd;
  closed.row_end = 16;
  closed.record_check = 1;  // its position
  closed.flags = slot_flags::kCommit | slot_flags::kSynced;
  std::byte slot[kSlotBytes];
  put_slot(closed, header.metadata.check_salt(), 1, slot);
  file->write_at(header.first_block + kBlockHeaderBytes + kSlotBytes, Bytes(slot));
  file->truncate(kFarEnd);
}

void expect_rows(const Reader& reader, Bytes all) {
  std::vector<std::byte> got(all.size());
  reader.read_into({0, all.size() / layout().row_bytes()}, got);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin()));
  EXPECT_GE(reader.chunk_info(reader.chunks() - 1).offset, kFarEnd);
  EXPECT_TRUE(reader.verify_chunks(0, reader.chunks()).empty());
}

TEST(Addresses, ChunksBeyondFourGiBAreWrittenReadAndAppendedTo) {
  const TemporaryFile file;
  const std::size_t row_bytes = layout().row_bytes();
  const std::vector<std::byte> rows = small_rows(layout(), 16 * 200, 1);
  make_far_file(file.path, Bytes(rows).first(16 * row_bytes));
  const auto shared = [&] {
    return std::shared_ptr<Storage>(FileStorage::open(file.path, FileStorage::Access::Read));
  };
  Reader follower(shared());
  for (const std::uint32_t end : {16u * 100, 16u * 150, 16u * 200}) {  // past the first block of 128 slots
    const std::unique_ptr<Writer> writer = Writer::open_file(file.path, {});
    const auto begin = static_cast<std::size_t>(writer->rows());
    writer->append(layout(), Bytes(rows).subspan(begin * row_bytes, (end - begin) * row_bytes), end - begin);
    writer->flush();
    EXPECT_TRUE(follower.refresh());
    expect_rows(follower, Bytes(rows).first(end * row_bytes));
    if (end != 16 * 150) writer->close();  // one that is not closed: the next recovers by scanning
  }
  expect_rows(Reader(shared()), rows);
  try {
    expect_rows(Reader(MappedStorage::open(file.path)), rows);
    EXPECT_FALSE(kIs32Bit) << "a map of 5 GiB";
  } catch (const Error& error) {
    EXPECT_TRUE(kIs32Bit) << error.what();
    EXPECT_EQ(error.code(), ErrorCode::Io);
  }
}

ErrorCode code_of_decoding(std::uint32_t n_rows, std::size_t payload_bytes) {
  const RowLayout bytes(Kind::UInt8, {});
  std::vector<std::byte> record(record_header_bytes(0) + payload_bytes + kRecordCheckBytes);
  RecordHeader header;
  header.size = static_cast<std::uint32_t>(record.size());
  header.type = static_cast<std::uint16_t>(CodecId::Raw);
  header.flags = chunk_flags::kLittleEndian | chunk_flags::kRecordCheck;
  header.n_rows = n_rows;
  header.layout = bytes;
  put_record_header(header, record.data());
  std::byte out;
  try {
    decode_chunk_rows(bytes, record, {}, Verify::None, n_rows, {n_rows - 1, 1}, &out);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::Closed;  // no error
}

TEST(Addresses, ChunksThatDoNotFitAreRefusedByName) {
  const auto most = static_cast<std::uint32_t>(kAddressableChunkBytes);
  EXPECT_EQ(code_of_decoding(1000, 1000), ErrorCode::Closed);
  EXPECT_EQ(code_of_decoding(most, 1000), ErrorCode::Corrupt);  // not of the size it says, but one to look at
  EXPECT_EQ(code_of_decoding(most + 1, 1000), kIs32Bit ? ErrorCode::Unsupported : ErrorCode::Corrupt);
  EXPECT_NO_THROW(check_addressable(kAddressableChunkBytes, 2 * kAddressableChunkBytes));
  EXPECT_THROW(check_addressable(kAddressableChunkBytes + 1, 0), Error);
  EXPECT_THROW(check_addressable(0, 2 * kAddressableChunkBytes + 1), Error);
}

TEST(Addresses, WritersRefuseChunksTheyCouldNotRead) {
  WriterOptions options;
  options.chunk_rows = static_cast<std::uint32_t>(kAddressableChunkBytes / layout().row_bytes() + 1);
  const auto writer = Writer::create(std::make_shared<MemoryStorage>(), options);
  const std::vector<std::byte> rows = small_rows(layout(), 1, 1);
  EXPECT_THROW(writer->append(layout(), rows, 1), Error);
}

TEST(Addresses, NumbersOfAFileAreComparedBeforeTheyAreCut) {
  const std::byte some[8]{};
  ByteReader reader{Bytes(some)};
  EXPECT_EQ(reader.take(std::uint64_t{3}).size(), 3u);
  EXPECT_THROW(reader.take((std::uint64_t{1} << 32) + 2), Error);
  EXPECT_EQ(reader.left(), 5u);
}

}  // namespace
}  // namespace cdd
