#include "core/simd/planes.h"

#include <vector>

#include "core/simd/xor_rows.h"
#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

TEST(Planes, EveryTargetSplitsAndJoinsAsTheReference) {
  for_each_target([] {
    for (const std::size_t item_bytes : {1u, 2u, 4u, 8u}) {
      for (std::size_t n = 0; n < 200; n += n < 70 ? 1 : 13) {
        const Buffer items = random_bytes(n * item_bytes, static_cast<unsigned>(n));
        const std::size_t stride = n + n % 3;
        Buffer planes(stride * item_bytes), expected(stride * item_bytes);
        simd::split_planes(items.data(), n, item_bytes, planes.data(), stride);
        simd::reference::split_planes(items.data(), n, item_bytes, expected.data(), stride);
        ASSERT_EQ(planes, expected) << n << " items of " << item_bytes;
        Buffer back(items.size());
        simd::join_planes(planes.data(), stride, n, item_bytes, back.data());
        ASSERT_EQ(back, items) << n << " items of " << item_bytes;
      }
    }
  });
}

TEST(Planes, ReferenceLayoutIsTheSpecifiedOne) {
  const Buffer items{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  Buffer planes(4), back(4);
  simd::reference::split_planes(items.data(), 2, 2, planes.data(), 2);
  EXPECT_EQ(planes, (Buffer{std::byte{1}, std::byte{3}, std::byte{2}, std::byte{4}}));
  simd::reference::join_planes(planes.data(), 2, 2, 2, back.data());
  EXPECT_EQ(back, items);
}

TEST(XorRows, EveryTargetSplitsAndJoinsAsTheReference) {
  for_each_target([] {
    for (const std::size_t item_bytes : {2u, 4u, 8u}) {
      for (const std::size_t row_items :
           {1u, 2u, 3u, 4u, 7u, 8u, 15u, 16u, 17u, 31u, 33u, 63u, 64u, 100u, 150u, 151u}) {
        for (const std::size_t segment_rows : {1u, 3u, 8u, 100u}) {
          const std::size_t n_rows = 19;
          const simd::XorRows shape{n_rows, row_items, item_bytes, segment_rows};
          const Buffer rows = random_bytes(n_rows * row_items * item_bytes, static_cast<unsigned>(row_items));
          Buffer planes(rows.size()), expected(rows.size());
          simd::split_xor_rows(shape, rows.data(), planes.data());
          simd::reference::split_xor_rows(shape, rows.data(), expected.data());
          ASSERT_EQ(planes, expected) << row_items << " items of " << item_bytes;
          for (std::size_t first = 0; first < n_rows; first += 2) {
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, n_rows - first}) {
              Buffer out(count * row_items * item_bytes), oracle(out.size());
              simd::join_xor_rows(shape, planes.data(), first, count, out.data());
              simd::reference::join_xor_rows(shape, planes.data(), first, count, oracle.data());
              ASSERT_EQ(out, oracle) << first << " + " << count;
              ASSERT_TRUE(same(out, Bytes(rows).subspan(first * row_items * item_bytes, out.size())));
            }
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace cdd::test
