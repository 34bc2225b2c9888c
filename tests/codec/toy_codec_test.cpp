// A new codec takes a row in the table and nothing else: this program's table has two more, which no caller
// knows. One of them changes the file while it decodes, as a program does that overwrites it in place.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/codec/scheme.h"
#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "tests/codec/toy_codec.h"

namespace cdd {
namespace {

const std::uint32_t kDims[] = {40};
RowLayout layout() { return RowLayout(Kind::Int32, kDims); }

constexpr std::size_t kRows = 96;
constexpr std::size_t kChunkRows = 32;

// Rows that are the same within a chunk.
std::vector<std::int32_t> steps() {
  std::vector<std::int32_t> rows(kRows * kDims[0]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t column = i % kDims[0];
    const std::size_t chunk = i / kDims[0] / kChunkRows;
    rows[i] = static_cast<std::int32_t>((column + 1) * 2654435761u * (chunk + 3));
  }
  return rows;
}

class ToyCodec : public testing::Test {
 protected:
  ~ToyCodec() override {
    while_decoding = nullptr;
    mistake = 0;
  }

  void write(const std::string& codec) {
    const auto memory = std::make_shared<MemoryStorage>();
    WriterOptions options;
    options.codec = codec;
    options.chunk_rows = kChunkRows;
    const auto writer = Writer::create(MemoryStorage::lock_for_writing(memory), options);
    writer->append(layout(), std::as_bytes(std::span(rows_)), kRows);
    writer->close();
    memory->visit([&](Bytes bytes) { image_.assign(bytes.begin(), bytes.end()); });
  }
  std::unique_ptr<Reader> reader(Verify verify = Verify::Stored) const {
    ReaderOptions options;
    options.verify = verify;
    return std::make_unique<Reader>(std::make_shared<ViewStorage>(image_, "image"), options);
  }
  // The rows of one chunk.
  static std::vector<std::int32_t> read(const Reader& reader, std::uint64_t chunk) {
    std::vector<std::int32_t> rows(kChunkRows * kDims[0]);
    reader.read_into({chunk * kChunkRows, kChunkRows}, std::as_writable_bytes(std::span(rows)));
    return rows;
  }
  std::vector<std::int32_t> expected(std::uint64_t chunk) const {
    const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(chunk * kChunkRows * kDims[0]);
    return {begin, begin + kChunkRows * kDims[0]};
  }
  // From now on decoding begins with another program's write to the record of chunk 1.
  void overwrite_while_decoding() {
    const ChunkInfo info = reader()->chunk_info(1);
    while_decoding = [this, at = info.offset + info.stored_bytes - 20] { image_[at] ^= std::byte{1}; };
  }

  const std::vector<std::int32_t> rows_ = steps();
  std::vector<std::byte> image_;
};

TEST_F(ToyCodec, HasItsNames) {
  const std::string names = ", " + scheme_names() + ",";
  for (const char* name : {", toy,", ", toy+zstd,", ", light,"})
    EXPECT_NE(names.find(name), names.npos) << name;
  EXPECT_EQ(schemes_for("toy+zstd", layout()).size(), 1u);
  EXPECT_EQ(schemes_for("toy", layout()).front().codec, &kToyCodec);
  try {
    schemes_for("toy", RowLayout(Kind::Float64, {}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "codec \"toy\" takes rows of int32: it cannot hold rows of float64 ()");
  }
}

TEST_F(ToyCodec, IsWrittenReadAndChosen) {
  for (const char* codec : {"toy", "toy+zstd", "light", "auto"}) {
    write(codec);
    const auto store = reader();
    for (std::uint64_t chunk = 0; chunk < store->chunks(); ++chunk) {
      const std::string name = store->chunk_info(chunk).codec;
      EXPECT_EQ(name, std::string(codec) == "auto" ? "toy" : codec);
      EXPECT_EQ(read(*store, chunk), expected(chunk));
    }
  }
}

TEST_F(ToyCodec, IsNotTakenWhereItDoesNotComeBack) {
  mistake = 1;
  write("auto");
  mistake = 0;
  const auto store = reader();
  for (std::uint64_t chunk = 0; chunk < store->chunks(); ++chunk) {
    EXPECT_NE(store->chunk_info(chunk).codec, "toy");
    EXPECT_EQ(read(*store, chunk), expected(chunk));
  }
}

TEST_F(ToyCodec, ARecordThatIsOverwrittenWhileItIsDecodedIsACopy) {
  for (const Verify verify : {Verify::Stored, Verify::Full}) {
    write("toy");
    const auto store = reader(verify);
    overwrite_while_decoding();
    EXPECT_EQ(read(*store, 1), expected(1));
    while_decoding = nullptr;
    EXPECT_THROW(read(*store, 1), Error) << "what is there now is damaged";
    EXPECT_EQ(read(*store, 2), expected(2));
  }
}

TEST_F(ToyCodec, ARecordThatIsNotCopiedIsCheckedAfterItsRows) {
  for (const Verify verify : {Verify::Stored, Verify::Full}) {
    write("light");
    const auto store = reader(verify);
    overwrite_while_decoding();
    try {
      read(*store, 1);
      FAIL() << "rows of a record that was overwritten";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Checksum);
      EXPECT_EQ(error.place().number, 1u);
    }
    while_decoding = nullptr;
    EXPECT_EQ(read(*store, 2), expected(2));
  }
}

}  // namespace
}  // namespace cdd
