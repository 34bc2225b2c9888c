#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "core/simd/bit_planes.h"
#include "core/simd/crc32c.h"
#include "core/simd/tiles/downsample.h"
#include "core/simd/tiles/scatter.h"
#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

TEST(Crc32c, KnownValues) {
  constexpr std::string_view kDigits = "123456789";
  const auto* const digits = reinterpret_cast<const std::byte*>(kDigits.data());
  const Buffer zeros(32, std::byte{0}), ones(32, std::byte{0xff});
  for_each_target([&] {
    EXPECT_EQ(simd::crc32c(digits, 9), 0xe3069283u);
    EXPECT_EQ(simd::crc32c(zeros.data(), 32), 0x8a9136aau);  // these two are of RFC 3720
    EXPECT_EQ(simd::crc32c(ones.data(), 32), 0x62a8ab43u);
    EXPECT_EQ(simd::crc32c(nullptr, 0), 0u);
  });
  EXPECT_EQ(simd::reference::crc32c(digits, 9), 0xe3069283u);
}

TEST(Crc32c, EveryTargetGivesTheReferencesValueWhereverItIsCut) {
  const Buffer bytes = random_bytes(10000, 1);
  for_each_target([&] {
    for (std::size_t n = 0; n < bytes.size(); n += n < 100 || (n > 1000 && n < 1400) ? 1 : 97) {
      const std::uint32_t expected = simd::reference::crc32c(bytes.data() + 1, n);
      ASSERT_EQ(simd::crc32c(bytes.data() + 1, n), expected) << n;
      const std::size_t cut = n / 3;
      const std::uint32_t first = simd::crc32c(bytes.data() + 1, cut);
      ASSERT_EQ(simd::crc32c(bytes.data() + 1 + cut, n - cut, first), expected) << n;
    }
  });
}

TEST(BitPlanes, EveryTargetSplitsAndJoinsAsTheReference) {
  for_each_target([] {
    for (std::size_t n = 0; n < 1200; n += n < 600 ? 8 : 136) {
      const Buffer bytes = random_bytes(n, static_cast<unsigned>(n));
      Buffer planes(n), expected(n), back(n);
      simd::split_bits(bytes.data(), n, planes.data());
      simd::reference::split_bits(bytes.data(), n, expected.data());
      ASSERT_EQ(planes, expected) << n;
      simd::join_bits(planes.data(), n, back.data());
      ASSERT_EQ(back, bytes) << n;
      simd::reference::join_bits(planes.data(), n, back.data());
      ASSERT_EQ(back, bytes) << n;
    }
  });
}

TEST(BitPlanes, ReferenceLayoutIsTheSpecifiedOne) {
  Buffer bytes(8), planes(8);
  bytes[3] = std::byte{0x81};
  simd::reference::split_bits(bytes.data(), 8, planes.data());
  Buffer expected(8);
  expected[0] = expected[7] = std::byte{1 << 3};
  EXPECT_EQ(planes, expected);
}

// Tiles that may begin anywhere, or at a line of the cache, with bytes between them that stay as they were.
void check_scatter(std::size_t rows, std::size_t row_bytes, std::size_t run_bytes, std::size_t misaligned) {
  const Buffer source = random_bytes(rows * row_bytes, static_cast<unsigned>(row_bytes + rows));
  const std::size_t tiles = (row_bytes + run_bytes - 1) / run_bytes;
  const std::size_t stride = ((rows * run_bytes + 64) / 64 + 2) * 64;
  Buffer got(tiles * stride + 128, std::byte{0xee}), expected = got;
  const auto places = [&](Buffer& memory) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    std::byte* const first = memory.data() + (64 - address % 64) % 64 + misaligned;
    std::vector<std::byte*> out;
    for (std::size_t t = 0; t < tiles; ++t) out.push_back(first + t * stride);
    return out;
  };
  const auto got_tiles = places(got), expected_tiles = places(expected);
  simd::scatter_rows(source.data(), rows, row_bytes, run_bytes, got_tiles.data(), 64);
  simd::reference::scatter_rows(source.data(), rows, row_bytes, run_bytes, expected_tiles.data(), 64);
  for (std::size_t t = 0; t < tiles; ++t) {
    ASSERT_TRUE(same(Bytes(got_tiles[t], stride - 64), Bytes(expected_tiles[t], stride - 64)))
        << "tile " << t << ", " << rows << " rows of " << row_bytes << ", runs of " << run_bytes;
  }
}

TEST(Scatter, EveryTargetPutsRunsWhereTheReferenceDoes) {
  for_each_target([] {
    for (const std::size_t run : {1u, 2u, 7u, 16u, 48u, 64u, 100u, 128u, 192u, 256u, 320u, 512u}) {
      for (const std::size_t row : {1u, 63u, 64u, 500u, 512u, 1024u, 1100u}) {
        for (const std::size_t rows : {1u, 2u, 5u}) {
          check_scatter(rows, row, run, 0);
          check_scatter(rows, row, run, 8);
        }
      }
    }
  });
}

// Items of any bits: floats among them are NaN, infinite, subnormal, more often than they would be.
Buffer any_items(std::size_t bytes, unsigned seed) {
  Buffer items = random_bytes(bytes, seed);
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    if (std::to_integer<unsigned>(items[i]) % 7 == 0) items[i + 3] = std::byte{0x7f};
    if (std::to_integer<unsigned>(items[i]) % 7 == 1) items[i + 2] = items[i + 3] = std::byte{0xff};
  }
  return items;
}

// One NaN for all: which of two comes out of a sum is the machine's affair.
template <class T>
void make_nans_alike(MutableBytes items) {
  for (std::size_t at = 0; at + sizeof(T) <= items.size(); at += sizeof(T)) {
    T item;
    std::memcpy(&item, items.data() + at, sizeof item);
    if (item == item) continue;
    item = std::numeric_limits<T>::quiet_NaN();
    std::memcpy(items.data() + at, &item, sizeof item);
  }
}

// What two rows come to: what is held of them, then items, then those of two_rows.
Buffer reduced_rows(const simd::RowKernels& kernels, Kind kind, std::size_t n, std::size_t pairs) {
  const std::size_t item = DType(kind).item_bytes();
  const Buffer row0 = any_items(2 * n * item + 1, static_cast<unsigned>(n)),
               row1 = any_items(2 * n * item + 1, static_cast<unsigned>(n + 1));
  const std::size_t held_bytes = n * kernels.held_bytes, out_bytes = n * item;
  Buffer all(held_bytes + 2 * out_bytes + 1, std::byte{0xee});
  std::byte* const held = all.data();
  std::byte* const out = held + held_bytes;
  kernels.begin[pairs](row0.data() + 1, n, held);
  if (kernels.add[pairs] != nullptr) kernels.add[pairs](row1.data() + 1, n, held);
  if (kernels.end != nullptr) kernels.end(held, n, 1 + static_cast<unsigned>(pairs), out);
  if (kernels.two_rows != nullptr) kernels.two_rows(row0.data() + 1, row1.data() + 1, n, out + out_bytes);
  if (kernels.end == nullptr) return all;
  const MutableBytes items = MutableBytes(all).subspan(held_bytes, 2 * out_bytes);
  if (kind >= Kind::Float16 && kind <= Kind::Complex128)
    make_nans_alike<double>(MutableBytes(all).first(held_bytes));
  if (kind == Kind::Float32 || kind == Kind::Complex64) make_nans_alike<float>(items);
  if (kind == Kind::Float64 || kind == Kind::Complex128) make_nans_alike<double>(items);
  return all;
}

TEST(Downsample, EveryTargetMakesRowsAsTheReference) {
  for_each_target([] {
    for (unsigned k = 0; k < 18; ++k) {
      for (const auto reduction :
           {simd::Reduction::Mean, simd::Reduction::Min, simd::Reduction::Max, simd::Reduction::First}) {
        const Kind kind = static_cast<Kind>(k);
        const simd::RowKernels expected = simd::reference::row_kernels(kind, reduction);
        const simd::RowKernels kernels = simd::row_kernels(kind, reduction);
        if (expected.held_bytes == 0) {
          EXPECT_EQ(kernels.held_bytes, 0u);
          continue;
        }
        SCOPED_TRACE(testing::Message() << "kind " << k << ", reduction " << int(reduction));
        ASSERT_EQ(kernels.held_bytes, expected.held_bytes);
        for (std::size_t n = 0; n < 200; n += n < 70 ? 1 : 37) {
          for (const std::size_t pairs : {0u, 1u}) {
            ASSERT_EQ(reduced_rows(kernels, kind, n, pairs), reduced_rows(expected, kind, n, pairs))
                << n << " items, pairs " << pairs;
          }
        }
      }
    }
  });
}

TEST(Downsample, TheReferenceRoundsHalfUpAndKeepsNaN) {
  const auto mean = [](std::int8_t a, std::int8_t b) {
    const std::int8_t row[2] = {a, b};
    const simd::RowKernels kernels = simd::reference::row_kernels(Kind::Int8, simd::Reduction::Mean);
    std::byte held[2], out;
    kernels.begin[1](reinterpret_cast<const std::byte*>(row), 1, held);
    kernels.end(held, 1, 1, &out);
    return static_cast<std::int8_t>(out);
  };
  EXPECT_EQ(mean(1, 2), 2);
  EXPECT_EQ(mean(-1, -2), -1);
  EXPECT_EQ(mean(-128, -127), -127);
  EXPECT_EQ(mean(127, 126), 127);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float rows[4] = {1, nan, -3, 2};
  for (const auto reduction : {simd::Reduction::Min, simd::Reduction::Max}) {
    const simd::RowKernels kernels = simd::reference::row_kernels(Kind::Float32, reduction);
    float out[2];
    kernels.begin[1](reinterpret_cast<const std::byte*>(rows), 2, reinterpret_cast<std::byte*>(out));
    EXPECT_NE(out[0], out[0]);
    EXPECT_EQ(out[1], reduction == simd::Reduction::Min ? -3 : 2);
  }
}

}  // namespace
}  // namespace cdd::test
