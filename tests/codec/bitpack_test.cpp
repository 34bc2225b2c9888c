#include "core/simd/bitpack.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/rig/simd_targets.h"

namespace cdd::simd {
namespace {

template <class T>
struct Api;
template <>
struct Api<std::uint32_t> {
  static constexpr auto pack = pack32;
  static constexpr auto unpack = unpack32;
  static constexpr auto reference = simd::reference::unpack32;
};
template <>
struct Api<std::uint64_t> {
  static constexpr auto pack = pack64;
  static constexpr auto unpack = unpack64;
  static constexpr auto reference = simd::reference::unpack64;
};

template <class T>
class Bitpack : public ::testing::Test {};
using Words = ::testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(Bitpack, Words);

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 63, 64, 100, 255, 256, 257, 1000};

TYPED_TEST(Bitpack, EveryWidthAndTargetGivesBackWhatWasPacked) {
  using T = TypeParam;
  std::mt19937_64 random(1);
  test::for_each_target([&] {
    for (unsigned width = 0; width <= sizeof(T) * 8; ++width) {
      const T mask = width == 0 ? T{0} : static_cast<T>(~T{0} >> (sizeof(T) * 8 - width));
      for (const std::size_t n : kCounts) {
        const T base = static_cast<T>(random());
        std::vector<T> values(n);
        for (T& v : values) v = static_cast<T>(base + (static_cast<T>(random()) & mask));
        // The allocation ends with the slack, so a sanitizer sees a read or write behind it.
        std::vector<std::byte> packed(packed_bytes(n, width) + kBitpackSlackBytes, std::byte{0xa5});
        Api<T>::pack(values.data(), n, width, base, packed.data());
        for (std::size_t i = 0; i < kBitpackSlackBytes; ++i) {
          ASSERT_EQ(packed[packed_bytes(n, width) + i], std::byte{0xa5}) << "pack wrote behind its bytes";
        }
        std::vector<T> out(n + kBitpackSlackBytes / sizeof(T));
        Api<T>::unpack(packed.data(), n, width, base, out.data());
        out.resize(n);
        ASSERT_EQ(out, values) << "width " << width << " n " << n;
        std::vector<T> expected(n);
        Api<T>::reference(packed.data(), n, width, base, expected.data());
        ASSERT_EQ(out, expected) << "width " << width << " n " << n;
      }
    }
  });
}

TEST(BitpackLayout, IsTheLittleEndianBitStreamOfTheSpecification) {
  const std::uint32_t values[] = {1, 2, 3, 4, 5};
  std::byte packed[2];
  pack32(values, 5, 3, 0, packed);
  // 101 100 011 010 001 read from the most significant bit of a 16-bit little-endian word.
  EXPECT_EQ(packed[0], std::byte{0xd1});
  EXPECT_EQ(packed[1], std::byte{0x58});
  EXPECT_EQ(reference::unpack_one(packed, 3, 3), 4u);
}

TEST(BitpackLayout, UnusedBitsOfTheLastByteAreZero) {
  const std::uint64_t value = ~std::uint64_t{0};
  std::byte packed[8] = {};
  pack64(&value, 1, 61, 0, packed);
  EXPECT_EQ(packed[7], std::byte{0x1f});
}

}  // namespace
}  // namespace cdd::simd
