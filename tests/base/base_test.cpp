#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/row_layout.h"
#include "core/base/scratch.h"

namespace cdd {
namespace {

TEST(Bytes, CheckedArithmeticLeavesOutAloneOnOverflow) {
  std::uint64_t out = 7;
  EXPECT_FALSE(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32, &out));
  EXPECT_FALSE(checked_add(~std::uint64_t{0}, 1, &out));
  EXPECT_EQ(out, 7u);
  EXPECT_TRUE(checked_mul(std::uint64_t{1} << 31, std::uint64_t{1} << 32, &out));
  EXPECT_EQ(out, std::uint64_t{1} << 63);
}

TEST(Error, ThePlaceStandsBeforeTheTextAndTheFirstOneStays) {
  Error error(ErrorCode::Checksum, "no match");
  error.at({Place::Kind::Chunk, 17, Place::kNone, 0x4a10});
  error.at({Place::Kind::Tile, 3});
  EXPECT_STREQ(error.what(), "chunk 17 at 0x4a10: no match");
  EXPECT_STREQ(error.text_without_place(), "no match");
  EXPECT_EQ(error.place().kind, Place::Kind::Chunk);
  EXPECT_EQ(error.place().number, 17u);

  Error named(ErrorCode::Checksum, "no match");
  named.at({Place::Kind::Chunk, 17, Place::kNone, 0x4a10}, "a.cdd");
  EXPECT_STREQ(named.what(), "a.cdd: chunk 17 at 0x4a10: no match");
  EXPECT_STREQ(named.text_without_place(), "no match");

  Error named_already(5, "a.cdd", "cannot read %s");
  const std::string before = named_already.what();
  named_already.at({Place::Kind::Chunk, 17}, "a.cdd");
  EXPECT_EQ(named_already.what(), "chunk 17: " + before);

  Error field(ErrorCode::Corrupt, "no quote");
  field.at({Place::Kind::Row, 5, 2});
  EXPECT_STREQ(field.what(), "row 5, field 2: no quote");

  Error header(ErrorCode::Truncated, "a.cdd: cut");
  header.at({Place::Kind::Header});
  EXPECT_STREQ(header.what(), "a.cdd: cut");
  EXPECT_EQ(header.place().kind, Place::Kind::Header);

  Error missing(ENOENT, "a.cdd", "cannot open %s");
  missing.at({Place::Kind::Index, 1});
  EXPECT_EQ(missing.text_without_path().find("index block 1: cannot open the file"), 0u);
}

TEST(Error, WhoThrowsInAKnownPlaceTellsItInTheText) {
  try {
    fail_at({Place::Kind::Index, 4}, ErrorCode::Truncated, "index block %d ends", 4);
    FAIL();
  } catch (Error& error) {
    error.at({Place::Kind::Chunk, 7});
    EXPECT_STREQ(error.what(), "index block 4 ends");
    EXPECT_EQ(error.place().kind, Place::Kind::Index);
    EXPECT_EQ(error.place().number, 4u);
  }
}

TEST(RowLayout, ReadsAsInNumPy) {
  const std::uint32_t book[] = {50, 3};
  EXPECT_EQ(to_string(RowLayout(Kind::Float32, book)), "float32 (50, 3)");
  EXPECT_EQ(to_string(RowLayout(DType(Kind::Datetime64, 10), {})), "datetime64[ns] ()");
  EXPECT_EQ(to_string(RowLayout(Kind::Timedelta64, std::span(book).first(1))), "timedelta64 (50,)");
  EXPECT_EQ(to_string(RowLayout()), "unset ()");
}

TEST(RowLayout, RefusesWhatCannotBeStored) {
  const std::uint32_t zero[] = {50, 0};
  EXPECT_THROW(RowLayout(Kind::Float32, zero), Error);
  const std::uint32_t huge[] = {1u << 31, 1u << 31, 1u << 31};
  EXPECT_THROW(RowLayout(Kind::UInt8, huge), Error);
  EXPECT_THROW(RowLayout(DType(0x0099), {}), Error);
  const std::uint32_t book[] = {50, 3};
  EXPECT_EQ(RowLayout(Kind::Float32, book).row_bytes(), 600u);
  EXPECT_EQ(RowLayout(Kind::Int64, {}).row_bytes(), 8u);
}

TEST(Hash, Blake3OfNothingIsThePublishedDigest) {
  // First 16 bytes of BLAKE3's test vector for the empty input: af1349b9f5f9a1a6a0404dea36dcc949.
  const Hash128 h = hash128({});
  EXPECT_EQ(h[0], 0xa6a1f9f5b94913afu);
  EXPECT_EQ(h[1], 0x49c9dc36ea4d40a0u);
}

TEST(Hash, Check32IsTheLowHalfOfXxh3AtEveryLength) {
  // The seed mixes salt, domain and key; the value is what XXH3 gives on any CPU.
  std::vector<std::byte> bytes(3000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const std::size_t n : {0u, 1u, 28u, 128u, 240u, 241u, 512u, 1024u, 1025u, 3000u}) {
    const std::uint64_t seed = std::uint64_t{0x0123456789abcdef} ^ std::uint64_t{'R'} << 56 ^ 17;
    EXPECT_EQ(check32(CheckDomain::Record, 0x0123456789abcdef, 17, Bytes(bytes).first(n)),
              static_cast<std::uint32_t>(XXH3_64bits_withSeed(bytes.data(), n, seed)));
  }
}

TEST(Scratch, KeepsAlignmentAndGrows) {
  Scratch s;
  for (const std::size_t n : {0u, 1u, 4096u, 1u << 20}) {
    const MutableBytes b = s.get(n);
    EXPECT_EQ(b.size(), n);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % 64, 0u);
    std::memset(b.data(), 1, n + kScratchPadding);
  }
}

}  // namespace
}  // namespace cdd
