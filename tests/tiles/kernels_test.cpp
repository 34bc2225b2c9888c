#include <string_view>
#include <vector>

#include "core/simd/bit_planes.h"
#include "core/simd/crc32c.h"
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
    for (std::size_t n = 0; n < bytes.size(); n += n < 100 ? 1 : n < 3000 ? 97 : 1013) {
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

}  // namespace
}  // namespace cdd::test
