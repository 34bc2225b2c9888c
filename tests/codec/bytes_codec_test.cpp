#include "core/codec/plain/bytes_codec.h"

#include "tests/rig/codec_rig.h"
#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

Scheme scheme_of(Compressor compressor, bool byte_planes) {
  Scheme scheme;
  scheme.codec = &kBytesCodec;
  scheme.compressor = compressor;
  scheme.byte_planes = byte_planes;
  return scheme;
}

const std::vector<Scheme> kSchemes{scheme_of(Compressor::None, false), scheme_of(Compressor::Lz4, false),
                                   scheme_of(Compressor::Zstd, false), scheme_of(Compressor::None, true),
                                   scheme_of(Compressor::Lz4, true),   scheme_of(Compressor::Zstd, true)};

TEST(BytesCodec, RoundTripsEveryDtypeAndRange) {
  const std::uint32_t dims[] = {5, 3};
  for (unsigned kind = 1; kind <= 17; ++kind) {
    const RowLayout layout(static_cast<Kind>(kind), dims);
    const std::uint32_t n_rows = 37;
    Buffer rows = random_bytes(std::size_t{n_rows} * layout.row_bytes(), kind);
    for (std::size_t i = 0; i < rows.size(); i += 2) rows[i] = std::byte{3};
    for (const Scheme& scheme : kSchemes) {
      const Buffer record = encode_record(layout, rows, n_rows, scheme);
      for (const RowRange range : ranges_of(n_rows)) {
        for (const Verify verify : {Verify::None, Verify::Stored, Verify::Full}) {
          EXPECT_TRUE(same(decode_record(layout, n_rows, record, range, verify), slice(rows, layout, range)));
        }
      }
    }
  }
}

TEST(BytesCodec, ComplexPlanesAreThoseOfItsFloats) {
  const Buffer rows = random_bytes(16 * 11, 4);
  EncodeContext planes;
  planes.byte_planes = true;
  const Encoded complex = encode(kBytesCodec, RowLayout(Kind::Complex128, {}), rows, 11, planes);
  const std::uint32_t two[] = {2};
  const Encoded floats = encode(kBytesCodec, RowLayout(Kind::Float64, two), rows, 11, planes);
  EXPECT_EQ(complex.payload, floats.payload);
  EXPECT_EQ(complex.flags, chunk_flags::kBytePlanes);
}

TEST(BytesCodec, KeepsRealDataBitForBit) {
  CDD_SKIP_WITHOUT_DATA();
  for (const char* folder : {"lob", "series"}) {
    for (const TestArray& array : load_arrays(folder)) {
      for (const Scheme& scheme : kSchemes) {
        for (std::uint32_t first = 0; first < array.n_rows; first += array.n_rows / 5 + 1) {
          const std::uint32_t n = std::min(300u, array.n_rows - first);
          const Buffer record = encode_record(array.layout, array.rows(first, n), n, scheme);
          EXPECT_TRUE(same(decode_record(array.layout, n, record, {0, n}), array.rows(first, n)))
              << array.name;
          EXPECT_TRUE(same(decode_record(array.layout, n, record, {n / 3, n / 2}, Verify::Stored),
                           array.rows(first + n / 3, n / 2)))
              << array.name;
        }
      }
    }
  }
}

TEST(BytesCodec, DamageIsAnErrorNeverWorse) {
  const std::uint32_t dims[] = {5, 2};
  const RowLayout layout(Kind::Float32, dims);
  Buffer rows = random_bytes(20 * layout.row_bytes(), 5);
  std::fill(rows.begin() + 100, rows.begin() + 600, std::byte{7});
  for (const Scheme& scheme : kSchemes)
    damage_record(layout, 20, encode_record(layout, rows, 20, scheme), rows);
}

TEST(BytesCodec, LastRowsOfALz4ChunkAreNotReadInVain) {
  // Damage behind the rows asked for goes unseen when nothing is verified: proof that decoding stopped there.
  const RowLayout layout(Kind::UInt64, {});
  const Buffer rows = random_bytes(8 * 5000, 6);
  Buffer record = encode_record(layout, rows, 5000, scheme_of(Compressor::Lz4, false));
  for (std::size_t i = record.size() - 5000; i < record.size() - 4; ++i) record[i] = std::byte{0xff};
  for (const RowRange range : {RowRange{0, 4000}, RowRange{3000, 1000}, RowRange{0, 1}}) {
    EXPECT_TRUE(same(decode_record(layout, 5000, record, range, Verify::None), slice(rows, layout, range)));
  }
}

TEST(BytesCodec, RefusesAPayloadOfTheWrongSize) {
  const RowLayout layout(Kind::Int32, {});
  const Buffer payload(4 * 10 + 1);
  EXPECT_THROW(decode(kBytesCodec, layout, 10, 0, payload, {0, 1}), Error);
  EXPECT_THROW(decode(kBytesCodec, layout, 10, chunk_flags::kBytePlanes, payload, {0, 1}), Error);
}

}  // namespace
}  // namespace cdd::test
