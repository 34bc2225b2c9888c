#include "core/simd/byte_codes.h"

#include <random>

#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

// Any codes at all, of 1 to 11 bits: what they mean is nothing to the kernel.
simd::ByteCodes random_codes(unsigned kinds, unsigned seed) {
  std::mt19937 random(seed);
  simd::ByteCodes codes{};
  for (std::size_t b = 0; b < 256; ++b) {
    const unsigned length = b < kinds ? 1 + static_cast<unsigned>(random() % simd::kMostByteCodeBits) : 0;
    codes.set(b, length == 0 ? 0 : static_cast<unsigned>(random()) & ((1u << length) - 1), length);
  }
  return codes;
}

TEST(ByteCodes, EveryTargetPacksAsTheReference) {
  for_each_target([] {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const simd::ByteCodes codes = random_codes(256, seed);
      for (std::size_t n = 0; n < 1500; n += n < 200 ? 1 : 97) {
        const Buffer bytes = random_bytes(n, seed + static_cast<unsigned>(n));
        Buffer out(simd::byte_codes_bound(n)), expected(out.size());
        const std::byte* const end = simd::pack_byte_codes(codes, bytes.data(), n, out.data());
        const std::byte* const last =
            simd::reference::pack_byte_codes(codes, bytes.data(), n, expected.data());
        ASSERT_NE(end, nullptr);
        ASSERT_EQ(end - out.data(), last - expected.data());
        out.resize(static_cast<std::size_t>(end - out.data()));
        expected.resize(out.size());
        ASSERT_EQ(out, expected) << n;
      }
    }
  });
}

TEST(ByteCodes, EveryTargetSeesByteWithoutCode) {
  for_each_target([] {
    for (const unsigned kinds : {1u, 100u, 128u, 200u, 255u}) {
      const simd::ByteCodes codes = random_codes(kinds, kinds);
      for (const std::size_t n : {1u, 3u, 4u, 63u, 64u, 65u, 300u}) {
        for (std::size_t at = 0; at < n; ++at) {
          Buffer bytes = random_bytes(n, static_cast<unsigned>(at));
          for (std::byte& b : bytes) b = std::byte(std::to_integer<unsigned>(b) % kinds);
          Buffer out(simd::byte_codes_bound(n));
          ASSERT_NE(simd::pack_byte_codes(codes, bytes.data(), n, out.data()), nullptr);
          bytes[at] = std::byte(kinds + at % (256 - kinds));
          ASSERT_EQ(simd::pack_byte_codes(codes, bytes.data(), n, out.data()), nullptr) << n << ' ' << at;
          ASSERT_EQ(simd::reference::pack_byte_codes(codes, bytes.data(), n, out.data()), nullptr);
        }
      }
    }
  });
}

TEST(ByteCodes, TheReferenceIsTheSpecifiedOne) {
  simd::ByteCodes codes{};
  codes.set(0, 0b1, 1);
  codes.set(1, 0b01, 2);
  codes.set(2, 0b00110101001, 11);
  const Buffer bytes{std::byte{2}, std::byte{0}, std::byte{1}};
  Buffer out(simd::byte_codes_bound(3));
  // From the lowest bit on: 01, 1, 00110101001, and the last 1.
  EXPECT_EQ(simd::reference::pack_byte_codes(codes, bytes.data(), 3, out.data()), out.data() + 2);
  EXPECT_EQ(out[0], std::byte{0b01001101});
  EXPECT_EQ(out[1], std::byte{0b01001101});
}

}  // namespace
}  // namespace cdd::test
