#include "core/codec/choose.h"

#include <algorithm>
#include <map>
#include <span>

#include "core/codec/plain/raw.h"
#include "core/codec/scheme.h"
#include "tests/rig/codec_rig.h"
#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

constexpr std::uint32_t kBookDims[] = {50, 3};
const RowLayout kBook(Kind::Float32, kBookDims);

std::vector<std::string> names_of(const std::vector<Scheme>& schemes) {
  std::vector<std::string> names;
  for (const Scheme& scheme : schemes) {
    std::uint64_t flags = scheme.byte_planes ? chunk_flags::kBytePlanes : 0;
    if (scheme.compressor == Compressor::Lz4) flags |= chunk_flags::kLz4;
    if (scheme.compressor == Compressor::Zstd) flags |= chunk_flags::kZstd;
    names.push_back(codec_name(static_cast<std::uint16_t>(scheme.codec->id), flags));
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::string name_of_record(Bytes record) {
  Bytes payload;
  const RecordHeader header = parse_record(record, &payload);
  return codec_name(header.type, header.flags);
}

using Names = std::vector<std::string>;

// A chunk as a writer makes it, behind what is in `out`.
EncodedChunk encode(Chooser& chooser, Bytes rows, std::uint32_t n_rows, std::vector<std::byte>& out) {
  const std::size_t before = out.size();
  const EncodedChunk chunk = chooser.encode({rows, n_rows}, out);
  seal_record(MutableBytes(out).subspan(before), {7, 3}, false);
  return chunk;
}

// What does not come back as the rows, or not at all, is never stored.
TEST(EncodeChunk, DeclinesWhatDoesNotComeBack) {
  const std::vector<float> items(3000, 1.5f);
  const Bytes rows = std::as_bytes(std::span(items));
  const auto record_bytes = [&](const Codec& codec) {
    Scheme scheme;
    scheme.codec = &codec;
    Buffer out(record_bound(kBook, 20, scheme) + kScratchPadding);
    const MutableBytes room = MutableBytes(out).first(out.size() - kScratchPadding);
    return encode_chunk(kBook, rows, 20, scheme, {7, 3}, room).record_bytes;
  };
  for (const Codec* sound : {find_codec(5), find_codec(6)}) {
    EXPECT_GT(record_bytes(*sound), 0u);
    Codec wrong = *sound, broken = *sound;
    wrong.decode_rows_into = [](const RowLayout& layout, std::uint32_t, std::uint64_t, Bytes, RowRange range,
                                std::byte* out) {
      std::fill_n(out, range.count * layout.row_bytes(), std::byte{1});
    };
    broken.decode_rows_into = [](const RowLayout&, std::uint32_t, std::uint64_t, Bytes, RowRange,
                                 std::byte*) {
      fail(ErrorCode::Corrupt, "a payload that this codec has made");
    };
    EXPECT_EQ(record_bytes(wrong), 0u);
    EXPECT_EQ(record_bytes(broken), 0u);
  }
}

TEST(Scheme, NamesMeanWhatTheySay) {
  EXPECT_EQ(names_of(schemes_for("raw", kBook)), Names{"raw"});
  EXPECT_EQ(names_of(schemes_for("zstd", kBook)), Names{"zstd"});
  EXPECT_EQ(names_of(schemes_for("planes+lz4", kBook)), Names{"planes+lz4"});
  EXPECT_EQ(names_of(schemes_for("planes", kBook)), (Names{"planes+lz4", "planes+zstd"}));
  EXPECT_EQ(names_of(schemes_for("okx_ob_f32", kBook)), (Names{"okx_ob_f32+lz4", "okx_ob_f32+zstd"}));
  EXPECT_EQ(names_of(schemes_for("generic_ob+zstd", kBook)), Names{"generic_ob+zstd"});
  EXPECT_EQ(schemes_for("zstd", kBook, 7).front().level, 7);
  for (const char* unknown :
       {"", "zst", "okx", "raw+zstd", "zstd+", "+zstd", "planes+", "okx_ob_f32+lz5", "bytes"}) {
    EXPECT_THROW(schemes_for(unknown, kBook), Error) << unknown;
  }
}

TEST(Scheme, EveryPublishedNameWorks) {
  std::string names = scheme_names() + ", ";
  int count = 0;
  for (std::size_t at; (at = names.find(", ")) != std::string::npos; names.erase(0, at + 2), ++count) {
    EXPECT_FALSE(schemes_for(names.substr(0, at), kBook).empty()) << names.substr(0, at);
  }
  EXPECT_GE(count, 15);
}

TEST(Scheme, AutoIsEveryLosslessSchemeThatSuits) {
  const Names book = names_of(schemes_for("auto", kBook));
  for (const char* name : {"raw", "levels", "levels+zstd", "numeric+zstd", "lz4", "zstd", "planes+zstd"}) {
    EXPECT_TRUE(has(book, name)) << name;
  }
  // Books of XORed rows only by name: on recorded ones they are larger than zstd alone.
  for (const char* name : {"okx_ob_f32+lz4", "okx_ob_f32+zstd", "generic_ob+zstd"}) {
    EXPECT_FALSE(has(book, name)) << name;
  }
  const std::uint32_t other[] = {50, 2};
  EXPECT_FALSE(has(names_of(schemes_for("auto", RowLayout(Kind::Float32, other))), "generic_ob+zstd"));
  const Names series = names_of(schemes_for("auto", RowLayout(Kind::Int64, {})));
  EXPECT_TRUE(has(series, "planes+zstd"));
  EXPECT_FALSE(has(series, "generic_ob+zstd"));
  for (const Scheme& scheme : schemes_for("auto", kBook)) EXPECT_FALSE(scheme.float16.enabled);
}

TEST(Scheme, LossIsOnlyEverAskedFor) {
  const Float16Options cast{true, Normalise::Mid, 2};
  EXPECT_EQ(names_of(schemes_for("auto", kBook, 3, cast)), (Names{"okx_ob_f16+lz4", "okx_ob_f16+zstd"}));
  const std::uint32_t other[] = {50, 2};
  EXPECT_EQ(names_of(schemes_for("auto", RowLayout(Kind::Float32, other), 3, cast)),
            (Names{"generic_ob+lz4", "generic_ob+zstd"}));
  EXPECT_TRUE(schemes_for("okx_ob_f16", kBook).front().float16.enabled);
  EXPECT_FALSE(schemes_for("generic_ob", kBook).front().float16.enabled);
  EXPECT_THROW(schemes_for("zstd", kBook, 3, cast), Error);
  EXPECT_THROW(schemes_for("okx_ob_f32", kBook, 3, cast), Error);
  EXPECT_THROW(schemes_for("auto", RowLayout(Kind::Float64, other), 3, cast), Error);
  EXPECT_THROW(schemes_for("auto", RowLayout(Kind::Float32, {}), 3, cast), Error);
  EXPECT_THROW(schemes_for("okx_ob_f16", RowLayout(Kind::Float32, other)), Error);
}

TEST(Chooser, DenseKeepsTheSmallestAndEveryRecordDecodes) {
  CDD_SKIP_WITHOUT_DATA();
  for (const char* folder : {"lob", "series"}) {
    for (const TestArray& array : load_arrays(folder)) {
      const std::vector<Scheme> schemes = schemes_for("auto", array.layout);
      Chooser chooser(array.layout, schemes, Profile::Dense);
      std::vector<std::byte> out;
      const std::uint32_t n = std::min(128u, array.n_rows);
      for (std::uint32_t first = 0; first + n <= array.n_rows && first < 40 * n; first += n) {
        const std::size_t before = out.size();
        const EncodedChunk chunk = encode(chooser, array.rows(first, n), n, out);
        const Bytes record = Bytes(out).subspan(before);
        ASSERT_EQ(record.size(), chunk.record_bytes);
        ASSERT_TRUE(same(decode_record(array.layout, n, record, {0, n}), array.rows(first, n))) << array.name;
        if (first != 0) continue;
        for (const Scheme& scheme : schemes) {
          EncodedChunk tried;
          encode_record(array.layout, array.rows(0, n), n, scheme, &tried);
          EXPECT_TRUE(tried.record_bytes == 0 || tried.record_bytes >= chunk.record_bytes) << array.name;
        }
      }
    }
  }
}

TEST(Chooser, StoresRawWhatNothingShrinks) {
  for (const char* name : {"auto", "zstd", "planes+lz4", "okx_ob_f32"}) {
    for (const Profile profile : {Profile::Fast, Profile::Dense}) {
      Chooser chooser(kBook, schemes_for(name, kBook), profile);
      std::vector<std::byte> out;
      for (unsigned i = 0; i < 40; ++i) {
        out.clear();
        const Buffer noise = random_bytes(20 * kBook.row_bytes(), i);
        encode(chooser, noise, 20, out);
        EXPECT_EQ(name_of_record(out), "raw");
        EXPECT_TRUE(same(decode_record(kBook, 20, out, {0, 20}), noise));
      }
    }
  }
}

TEST(Chooser, NeverLeavesTheCastOutWhenAskedForIt) {
  const std::uint32_t tiny[] = {1, 1};
  const RowLayout layout(Kind::Float32, tiny);
  const float third = 1.0f / 3;
  Chooser chooser(layout, schemes_for("generic_ob", layout, 3, {true, Normalise::None, 1}), Profile::Dense);
  std::vector<std::byte> out;
  const EncodedChunk chunk = encode(chooser, {as_bytes(&third), 4}, 1, out);
  EXPECT_GT(chunk.cast_error.max_absolute, 0);
  EXPECT_EQ(load<float>(decode_record(layout, 1, out, {0, 1}).data()), 0.333251953125f);
}

TEST(Chooser, ComesBackToAnotherPlanWhenTheDataChanges) {
  // First rows whose planes are constant but one, then rows that repeat as wholes.
  const RowLayout layout(Kind::UInt32, {});
  Chooser chooser(layout, schemes_for("auto", layout), Profile::Dense);
  std::map<std::string, int> before, after;
  for (unsigned i = 0; i < 200; ++i) {
    Buffer rows = random_bytes(4000, i);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (i < 100 && k % 4 != 0) rows[k] = std::byte{1};
      if (i >= 100 && k >= 400) rows[k] = rows[k - 400];
    }
    std::vector<std::byte> out;
    encode(chooser, rows, 1000, out);
    ++(i < 100 ? before : after)[name_of_record(out)];
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  EXPECT_NE(std::ranges::max_element(before, by_count)->first,
            std::ranges::max_element(after, by_count)->first);
  EXPECT_EQ(before.size(), 1u);
}

TEST(Chooser, LeavesTheOutputAloneWhenItThrows) {
  Buffer rows(kBook.row_bytes() * 2);
  store<float>(rows.data() + 40, 1e9f);
  Chooser chooser(kBook, schemes_for("okx_ob_f16", kBook), Profile::Fast);
  std::vector<std::byte> out(5);
  EXPECT_THROW(chooser.encode({rows, 2}, out), Error);
  EXPECT_EQ(out.size(), 5u);
  store<float>(rows.data() + 40, 1.0f);
  EXPECT_GT(chooser.encode({rows, 2}, out).record_bytes, 0u);
}

TEST(Chooser, FastWeighsBytesAgainstDecoding) {
  EncodedChunk chunk;
  chunk.record_bytes = 1000;
  chunk.transformed_bytes = 38400;
  const Scheme zstd = schemes_for("zstd", kBook).front(), lz4 = schemes_for("lz4", kBook).front();
  const auto cost = [&](Profile profile, const Scheme& scheme) {
    return reading_cost(profile, scheme, chunk, 38400, 64);
  };
  EXPECT_EQ(cost(Profile::Dense, zstd), 1000);
  EXPECT_EQ(cost(Profile::Dense, lz4), 1000);
  EXPECT_LT(cost(Profile::Fast, lz4), cost(Profile::Fast, zstd));
}

// A window of few bytes must not make all of a long chunk, even where that is a little smaller.
TEST(Chooser, FastThinksOfWindowsOfLongChunks) {
  const RowLayout series(Kind::Float64, {});
  const std::uint32_t n_rows = 36000;
  const Scheme lz4 = schemes_for("lz4", series).front(), numeric = schemes_for("numeric", series).front();
  EncodedChunk whole, parts;
  whole.record_bytes = 7000;
  whole.transformed_bytes = 8 * n_rows;
  parts.record_bytes = parts.transformed_bytes = 7500;
  const auto cost = [&](const Scheme& scheme, const EncodedChunk& chunk, std::uint32_t rows) {
    return reading_cost(Profile::Fast, scheme, chunk, 8 * n_rows, rows);
  };
  EXPECT_LT(cost(numeric, parts, n_rows), cost(lz4, whole, n_rows));
  EXPECT_LT(cost(lz4, whole, 256), cost(numeric, parts, 256));  // all of it is decoded anyhow
}

// What is made beyond a core's own cache waits for the next.
TEST(Chooser, FastKnowsThatLongChunksAreMadeSlowly) {
  const Scheme lz4 = schemes_for("lz4", kBook).front();
  const auto cost = [&](std::uint32_t n_rows) {
    EncodedChunk chunk;
    chunk.record_bytes = 100;
    chunk.transformed_bytes = n_rows * kBook.row_bytes();
    return reading_cost(Profile::Fast, lz4, chunk, chunk.transformed_bytes, n_rows) - 273;
  };
  EXPECT_NEAR(cost(1744) / (1744 * 600), 0.12, 0.01);
  EXPECT_NEAR(cost(64) / (64 * 600), 0.02, 0.01);
}

// One kind of chunk does not decide for another, as many rows though it has; and each finds its own again.
TEST(Chooser, ChoosesAgainWhereAChunkIsUnlike) {
  const RowLayout series(Kind::Float64, {});
  for (const Profile profile : {Profile::Fast, Profile::Dense}) {
    Chooser chooser(series, schemes_for("auto", series), profile);
    for (unsigned i = 0; i < 30; ++i) {
      Buffer rows = random_bytes(8 * 500, i);
      if (i % 3 != 0) {
        for (std::size_t k = 0; k < 500; ++k)
          store<double>(rows.data() + 8 * k, i % 3 == 1 ? 0.0 : static_cast<double>(k * k % 1000) / 100);
      }
      std::vector<std::byte> out;
      encode(chooser, rows, 500, out);
      EXPECT_LT(out.size(), i % 3 == 0 ? 4100u : i % 3 == 1 ? 150u : 1200u) << i;
      EXPECT_TRUE(same(decode_record(series, 500, out, {0, 500}), rows));
    }
  }
}

// Chunks that were encoded ahead stand until a decision overtakes them; then they are asked for anew.
TEST(Chooser, ADecisionOvertakesWhatWasEncodedAhead) {
  const RowLayout series(Kind::UInt32, {});
  const Buffer zeros(4000), noise = random_bytes(4000, 1);
  Chooser chooser(series, schemes_for("auto", series), Profile::Fast);
  std::vector<std::byte> out;
  chooser.encode({zeros, 1000}, out);
  ASSERT_GT(chooser.ahead(1000), 2u);
  EXPECT_EQ(chooser.ahead(100), 1u);  // of so few rows there was none yet
  Encoding one, two;
  chooser.encode_ahead({noise, 1000}, one);
  chooser.encode_ahead({zeros, 1000}, two);
  ASSERT_TRUE(chooser.stands({noise, 1000}, one));
  chooser.take({noise, 1000}, one, out);
  EXPECT_FALSE(chooser.stands({zeros, 1000}, two));
  EXPECT_EQ(chooser.ahead(1000), 1u);
}

}  // namespace
}  // namespace cdd::test
