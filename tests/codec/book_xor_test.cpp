#include "core/codec/book/xor.h"

#include <cmath>
#include <limits>
#include <string>

#include "core/codec/book/cast.h"
#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"
#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

constexpr std::uint32_t kBookDims[] = {50, 3};

Scheme scheme_of(const Codec& codec, Compressor compressor, Float16Options float16 = {}) {
  Scheme scheme;
  scheme.codec = &codec;
  scheme.compressor = compressor;
  scheme.float16 = float16;
  return scheme;
}

constexpr Compressor kCompressors[] = {Compressor::None, Compressor::Lz4, Compressor::Zstd};

TEST(BookXor, RoundTripsEveryShapeAndItemSize) {
  const std::uint32_t shapes[][2] = {{1, 1}, {1, 3}, {2, 2}, {5, 3}, {25, 2}, {50, 2}, {50, 3}, {51, 3}};
  for (const auto& dims : shapes) {
    for (const Kind kind :
         {Kind::Float16, Kind::Int16, Kind::Float32, Kind::UInt32, Kind::Float64, Kind::Complex64}) {
      const RowLayout layout(kind, dims);
      for (const std::uint32_t n_rows : {1u, 2u, 16u, 17u, 65u}) {
        const Buffer rows = random_bytes(std::size_t{n_rows} * layout.row_bytes(), n_rows);
        const Encoded encoded = encode(kGenericObCodec, layout, rows, n_rows);
        for (const RowRange range : ranges_of(n_rows)) {
          const Buffer got = decode(kGenericObCodec, layout, n_rows, encoded.flags, encoded.payload, range);
          ASSERT_TRUE(same(got, slice(rows, layout, range)));
        }
      }
    }
  }
}

TEST(BookXor, AcceptsOnlyWhatItIsFor) {
  const std::uint32_t other[] = {50, 2};
  const std::uint32_t deep[] = {5, 5, 5};
  EXPECT_TRUE(kOkxObF32Codec.accepts(RowLayout(Kind::Float32, kBookDims)));
  EXPECT_FALSE(kOkxObF32Codec.accepts(RowLayout(Kind::Float64, kBookDims)));
  EXPECT_FALSE(kOkxObF16Codec.accepts(RowLayout(Kind::Float32, other)));
  EXPECT_TRUE(kGenericObCodec.accepts(RowLayout(Kind::Float32, other)));
  EXPECT_FALSE(kGenericObCodec.accepts(RowLayout(Kind::UInt8, other)));
  EXPECT_FALSE(kGenericObCodec.accepts(RowLayout(Kind::Complex128, other)));
  EXPECT_FALSE(kGenericObCodec.accepts(RowLayout(Kind::Float32, deep)));
}

TEST(BookXor, KeepsRealBooksBitForBit) {
  CDD_SKIP_WITHOUT_DATA();
  for (const TestArray& book : load_arrays("lob")) {
    for (const Codec* codec : {&kOkxObF32Codec, &kGenericObCodec}) {
      if (!codec->accepts(book.layout)) continue;
      for (const Compressor compressor : kCompressors) {
        for (std::uint32_t first = 0; first < book.n_rows; first += book.n_rows / 4 + 1) {
          const std::uint32_t n = std::min(200u, book.n_rows - first);
          const Buffer record =
              encode_record(book.layout, book.rows(first, n), n, scheme_of(*codec, compressor));
          for (const RowRange range : ranges_of(n)) {
            EXPECT_TRUE(same(decode_record(book.layout, n, record, range, Verify::Stored),
                             slice(book.rows(first, n), book.layout, range)))
                << book.name;
          }
        }
      }
    }
  }
}

TEST(BookXor, DamageIsAnErrorNeverWorse) {
  const RowLayout layout(Kind::Float32, kBookDims);
  const std::vector<float> book = small_book(20, 50, 3);
  const Encoded exact = encode(kOkxObF32Codec, layout, bytes_of(book), 20);
  damage_payload(kOkxObF32Codec, layout, 20, exact.flags, exact.payload);
  EncodeContext context;
  context.float16 = {true, Normalise::Mid, 4.0f};
  const Encoded half = encode(kOkxObF16Codec, layout, bytes_of(book), 20, context);
  damage_payload(kOkxObF16Codec, layout, 20, half.flags, half.payload);
  for (const Compressor compressor : kCompressors) {
    damage_record(layout, 20,
                  encode_record(layout, bytes_of(book), 20, scheme_of(kOkxObF32Codec, compressor)),
                  bytes_of(book));
  }
}

TEST(BookXor, RefusesHeadersNoWriterMakes) {
  const RowLayout layout(Kind::Float32, kBookDims);
  const std::vector<float> book = small_book(3, 50, 3);
  const Encoded exact = encode(kOkxObF32Codec, layout, bytes_of(book), 3);
  const auto refuses = [&](std::size_t at, unsigned value) {
    Buffer payload = exact.payload;
    payload[at] = static_cast<std::byte>(value);
    EXPECT_THROW(decode(kOkxObF32Codec, layout, 3, 0, payload, {0, 3}), Error) << at << " = " << value;
  };
  refuses(0, 0);  // segments of no rows
  refuses(2, 1);  // lossless, yet normalised
  refuses(2, 2);
  refuses(3, 1);
  EXPECT_THROW(decode(kOkxObF32Codec, layout, 3, chunk_flags::kDownCast16, exact.payload, {0, 3}), Error);
  EXPECT_THROW(decode(kOkxObF16Codec, layout, 3, 0, exact.payload, {0, 3}), Error);
}

// ---------------------------------------------------------------- float16

// What float16 storage must give back, computed without the library's kernels: nearest float16 by searching
// the table of all of them.
double nearest_half(double v) {
  static const std::vector<double> table = [] {
    std::vector<double> values;
    for (int e = 0; e < 31; ++e) {
      for (int m = 0; m < 1024; ++m)
        values.push_back(e == 0 ? std::ldexp(m, -24) : std::ldexp(1024 + m, e - 25));
    }
    return values;
  }();
  const double magnitude = std::fabs(v);
  auto above = std::lower_bound(table.begin(), table.end(), magnitude);
  if (above == table.end()) --above;
  std::size_t i = static_cast<std::size_t>(above - table.begin());
  if (i > 0) {
    const double up = table[i] - magnitude, down = magnitude - table[i - 1];
    if (down < up || (down == up && i % 2 == 1)) --i;
  }
  return std::copysign(table[i], v);
}

// What item k of a book comes back as, from the formulas of docs/formats/codecs/book.md.
double expected_item(const TestArray& book, const Float16Options& options, std::size_t k) {
  const std::size_t features = book.layout.dims()[1];
  const std::size_t row = k / book.layout.row_items() * book.layout.row_items();
  const auto item = [&](std::size_t i) { return double{load<float>(book.data.data() + i * 4)}; };
  const double scale = options.size_scale;
  if (k % features != 0) return static_cast<float>(nearest_half(static_cast<float>(item(k) / scale)) * scale);
  if (options.normalise == Normalise::None) return nearest_half(item(k));
  const std::size_t levels = book.layout.dims()[0];
  const auto price = [&](std::size_t level) { return item(row + level * features); };
  std::vector<std::pair<double, double>> pairs;  // how far apart, and the middle
  for (const std::size_t a : {std::size_t{0}, levels / 2 - 1}) {
    for (const std::size_t b : {levels / 2, levels - 1}) {
      pairs.emplace_back(std::fabs(price(a) - price(b)), (price(a) + price(b)) / 2);
    }
  }
  const auto nearest = std::min_element(pairs.begin(), pairs.end(),
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
  const double mid = static_cast<float>(nearest->second);
  return static_cast<float>((1 + nearest_half(static_cast<float>(item(k) / mid - 1))) * mid);
}

void expect_nearest_halves(const TestArray& book, std::uint32_t n, const Float16Options& options) {
  const Codec& codec = kOkxObF16Codec.accepts(book.layout) ? kOkxObF16Codec : kGenericObCodec;
  EncodedChunk encoded;
  const Buffer record =
      encode_record(book.layout, book.rows(0, n), n, scheme_of(codec, Compressor::Zstd, options), &encoded);
  const Buffer got = decode_record(book.layout, n, record, {0, n}, Verify::Full);
  CastError error;
  for (std::size_t k = 0; k < std::size_t{n} * book.layout.row_items(); ++k) {
    const double given = load<float>(book.data.data() + k * 4);
    const double stored = load<float>(got.data() + k * 4);
    ASSERT_EQ(stored, expected_item(book, options, k)) << book.name << " item " << k << " given " << given;
    error.max_absolute = std::max(error.max_absolute, std::fabs(stored - given));
    if (given != 0)
      error.max_relative = std::max(error.max_relative, std::fabs(stored - given) / std::fabs(given));
  }
  EXPECT_EQ(encoded.cast_error.max_absolute, error.max_absolute) << book.name;
  EXPECT_EQ(encoded.cast_error.max_relative, error.max_relative) << book.name;
  for (const RowRange range : ranges_of(n)) {
    const Buffer part = decode_record(book.layout, n, record, range, Verify::Stored);
    EXPECT_TRUE(same(part, slice(got, book.layout, range))) << book.name;
  }
}

TEST(BookFloat16, RealBooksComeBackAsTheNearestHalves) {
  CDD_SKIP_WITHOUT_DATA();
  for (const TestArray& book : load_arrays("lob")) {
    const std::uint32_t n = std::min(400u, book.n_rows);
    float largest_price = 0, largest_size = 0;
    for (std::size_t k = 0; k < std::size_t{n} * book.layout.row_items(); ++k) {
      float& largest = k % book.layout.dims()[1] == 0 ? largest_price : largest_size;
      largest = std::max(largest, load<float>(book.data.data() + k * 4));
    }
    const float size_scale = largest_size / 30000;
    expect_nearest_halves(book, n, {true, Normalise::Mid, size_scale});
    if (largest_price < 65000) expect_nearest_halves(book, n, {true, Normalise::None, size_scale});
  }
}

TEST(BookFloat16, EveryTargetDecodesTheSameBits) {
  const RowLayout layout(Kind::Float32, kBookDims);
  const std::vector<float> book = small_book(40, 50, 3);
  for (const Normalise normalise : {Normalise::None, Normalise::Mid}) {
    EncodeContext context;
    context.float16 = {true, normalise, 3.0f};
    const Encoded encoded = encode(kOkxObF16Codec, layout, bytes_of(book), 40, context);
    for_each_target([&] {
      EXPECT_EQ(encode(kOkxObF16Codec, layout, bytes_of(book), 40, context).payload, encoded.payload);
      EXPECT_EQ(decode(kOkxObF16Codec, layout, 40, encoded.flags, encoded.payload, {0, 40}),
                encoded.reconstructed);
    });
  }
}

TEST(BookFloat16, KeepsInfinitiesAndNaN) {
  const RowLayout layout(Kind::Float32, kBookDims);
  std::vector<float> book = small_book(2, 50, 3);
  const float infinity = std::numeric_limits<float>::infinity();
  book[4] = infinity;
  book[7] = -infinity;
  book[10] = std::numeric_limits<float>::quiet_NaN();
  book[12] = std::numeric_limits<float>::quiet_NaN();
  for (const Normalise normalise : {Normalise::None, Normalise::Mid}) {
    EncodeContext context;
    context.float16 = {true, normalise, 2.0f};
    const Encoded encoded = encode(kOkxObF16Codec, layout, bytes_of(book), 2, context);
    const Buffer got = decode(kOkxObF16Codec, layout, 2, encoded.flags, encoded.payload, {0, 2});
    EXPECT_EQ(load<float>(got.data() + 4 * 4), infinity);
    EXPECT_EQ(load<float>(got.data() + 7 * 4), -infinity);
    EXPECT_TRUE(std::isnan(load<float>(got.data() + 10 * 4)));
    EXPECT_TRUE(std::isnan(load<float>(got.data() + 12 * 4)));
    EXPECT_TRUE(std::isfinite(encoded.cast_error.max_absolute));
  }
}

std::string refusal(const std::vector<float>& book, Float16Options options,
                    const Codec& codec = kOkxObF16Codec) {
  const RowLayout layout(Kind::Float32, kBookDims);
  EncodeContext context;
  context.float16 = options;
  try {
    encode(codec, layout, bytes_of(book), static_cast<std::uint32_t>(book.size() / 150), context);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
}

TEST(BookFloat16, RefusesWhatItCannotHold) {
  std::vector<float> book = small_book(5, 50, 3);
  book[3 * 150 + 7 * 3 + 1] = 70000.0f;
  const std::string text = refusal(book, {true, Normalise::None, 1.0f});
  EXPECT_NE(text.find("row 3, level 7, feature 1: 70000"), std::string::npos) << text;
  EXPECT_EQ(refusal(book, {true, Normalise::None, 2.0f}), "");
  EXPECT_NE(refusal(book, {true, Normalise::None, 0.0f}), "");
  EXPECT_NE(refusal(book, {true, Normalise::None, std::numeric_limits<float>::infinity()}), "");
  EXPECT_NE(refusal(book, {}), "");  // lossy codec, not asked for

  for (std::size_t level = 0; level < 50; ++level) book[2 * 150 + 3 * level] = 0;
  EXPECT_NE(refusal(book, {true, Normalise::Mid, 2.0f}).find("row 2 has the mid 0"), std::string::npos);
  for (std::size_t level = 0; level < 50; ++level) {
    book[2 * 150 + 3 * level] = std::numeric_limits<float>::quiet_NaN();
  }
  EXPECT_NE(refusal(book, {true, Normalise::Mid, 2.0f}).find("row 2 has the mid"), std::string::npos);
}

TEST(BookFloat16, LosslessCodecsIgnoreIt) {
  const RowLayout layout(Kind::Float32, kBookDims);
  const std::vector<float> book = small_book(5, 50, 3);
  const Buffer record = encode_record(layout, bytes_of(book), 5,
                                      scheme_of(kOkxObF32Codec, Compressor::Lz4, {true, Normalise::Mid, 1}));
  EXPECT_TRUE(same(decode_record(layout, 5, record, {0, 5}), bytes_of(book)));
}

}  // namespace
}  // namespace cdd::test
