#include "core/store/chunk_sizer.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace cdd {
namespace {

constexpr std::uint32_t kTarget = 4096;

RowLayout books() {
  const std::uint32_t dims[] = {50, 3};
  return {Kind::Float32, dims};
}

// Rows of the first chunk that is kept, when records come to bytes(rows); fails when that takes too long.
std::uint32_t first_kept(ChunkSizer& sizer, const std::function<std::uint32_t(std::uint32_t)>& bytes) {
  for (int refused = 0; refused < 100; ++refused) {
    const std::uint32_t rows = sizer.rows();
    EXPECT_GE(rows, 1u);
    if (sizer.accept(bytes(rows))) return rows;
  }
  ADD_FAILURE() << "refused 100 times";
  return 0;
}

TEST(ChunkSizer, FindsTheTarget) {
  for (const std::uint32_t bytes_a_row : {1u, 10u, 80u, 400u, 600u, 4000u}) {
    ChunkSizer sizer(books(), 0, kTarget, 1 << 30);
    const std::uint32_t rows = first_kept(sizer, [&](std::uint32_t n) { return 90 + n * bytes_a_row; });
    EXPECT_GE(90 + rows * bytes_a_row, kTarget * 0.6) << bytes_a_row;
    EXPECT_LE(90 + rows * bytes_a_row, kTarget * 2.0) << bytes_a_row;
  }
}

TEST(ChunkSizer, FixedRowsStay) {
  ChunkSizer sizer(books(), 37, kTarget, 1 << 30);
  for (const std::uint32_t bytes : {1u, 1u << 30, 100u}) {
    EXPECT_TRUE(sizer.accept(bytes));
    EXPECT_EQ(sizer.rows(), 37u);
  }
}

// Rows that begin with a quiet time: what is nothing up to one size is far too much at twice that.
TEST(ChunkSizer, EndsWhereRecordsJump) {
  for (std::uint32_t quiet = 0; quiet < 200; ++quiet) {
    for (const std::uint32_t bytes_a_row : {30u, 100u, 600u, 100000u}) {
      ChunkSizer sizer(books(), 0, kTarget, 1 << 30);
      first_kept(sizer, [&](std::uint32_t n) { return 100 + (n > quiet ? n - quiet : 0) * bytes_a_row; });
    }
  }
}

// Rows that were nothing for long, until a feed began: the first chunk of those is cut at once.
TEST(ChunkSizer, CutsAChunkThatIsFarTooLong) {
  ChunkSizer sizer(books(), 0, kTarget, 1 << 20);
  first_kept(sizer, [](std::uint32_t) { return 100; });
  const std::uint32_t quiet = sizer.rows();
  EXPECT_GT(quiet, 1000u);
  EXPECT_TRUE(sizer.accept(100));
  EXPECT_FALSE(sizer.accept(quiet * 80));
  const std::uint32_t kept = first_kept(sizer, [](std::uint32_t n) { return 90 + n * 80; });
  EXPECT_LE(kept * 80, 2 * kTarget);
  EXPECT_GE(kept * 80, kTarget / 2);
}

// A record a little too short or long moves the size within a few groups, down to the grain of sizes.
TEST(ChunkSizer, FollowsSmallDifferences) {
  for (const std::uint32_t bytes_a_row : {70u, 90u, 110u, 150u}) {
    ChunkSizer sizer(books(), 0, kTarget, 1 << 20);
    first_kept(sizer, [](std::uint32_t n) { return n * 170; });
    for (int i = 0; i < 10 * 16; ++i) sizer.accept(sizer.rows() * bytes_a_row);
    EXPECT_NEAR(sizer.rows() * bytes_a_row, kTarget, 8 * bytes_a_row) << bytes_a_row;
  }
}

TEST(ChunkSizer, EndsWhateverRecordsComeTo) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    ChunkSizer sizer(books(), 0, 1 + static_cast<std::uint32_t>(random() % 20000), 1 << 30);
    first_kept(sizer,
               [&](std::uint32_t) { return 1 + (static_cast<std::uint32_t>(random()) >> random() % 32); });
  }
}

}  // namespace
}  // namespace cdd
