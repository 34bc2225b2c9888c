#include "core/simd/byte_repeats.h"

#include "tests/rig/codec_rig.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

TEST(ByteRepeats, EveryTargetMarksAsTheReference) {
  for_each_target([] {
    for (const unsigned kinds : {1u, 2u, 3u, 256u}) {
      for (std::size_t n = 0; n < 1500; n += n < 300 ? 1 : 97) {
        Buffer bytes = random_bytes(n, static_cast<unsigned>(n) + kinds);
        for (std::byte& b : bytes) b = std::byte(std::to_integer<unsigned>(b) % kinds);
        bytes.shrink_to_fit();
        Buffer marks((n + 7) / 8, std::byte{0xa5}), expected(marks.size(), std::byte{0x5a});
        simd::mark_repeats(bytes.data(), n, marks.data());
        simd::reference::mark_repeats(bytes.data(), n, expected.data());
        ASSERT_EQ(marks, expected) << n << " bytes of " << kinds << " kinds";
      }
    }
  });
}

TEST(ByteRepeats, TheReferenceIsTheSpecifiedOne) {
  const Buffer bytes{std::byte{7}, std::byte{7}, std::byte{7}, std::byte{1}, std::byte{2},
                     std::byte{2}, std::byte{1}, std::byte{1}, std::byte{1}, std::byte{3}};
  Buffer marks(2);
  simd::reference::mark_repeats(bytes.data(), bytes.size(), marks.data());
  EXPECT_EQ(marks[0], std::byte{0b10100110});
  EXPECT_EQ(marks[1], std::byte{0b00000001});
}

}  // namespace
}  // namespace cdd::test
