// Rows of any strides and byte order, copied: against a copy item by item.
#include "core/base/strided.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace cdd {
namespace {

std::vector<std::byte> one_by_one(const StridedRows& from, std::uint64_t first, std::uint64_t count) {
  std::vector<std::byte> out;
  std::size_t items = 1;
  for (std::size_t i = 0; i < from.ndim; ++i) items *= from.dims[i];
  for (std::uint64_t row = first; row < first + count; ++row) {
    for (std::size_t item = 0; item < items; ++item) {
      const std::byte* at = from.first + static_cast<std::ptrdiff_t>(row) * from.row_stride;
      std::size_t rest = item;
      for (std::size_t i = from.ndim; i-- > 0; rest /= from.dims[i]) {
        at += static_cast<std::ptrdiff_t>(rest % from.dims[i]) * from.strides[i];
      }
      for (std::size_t b = 0; b < from.item_bytes; ++b) {
        const std::size_t swap = from.swap_bytes;
        out.push_back(at[swap == 0 ? b : b / swap * swap + swap - 1 - b % swap]);
      }
    }
  }
  return out;
}

TEST(Strided, EveryStrideAndByteOrderIsTheItemsOneByOne) {
  std::vector<std::byte> memory(std::size_t{1} << 16);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 31 + i / 256);
  for (const std::size_t item : {1u, 2u, 4u, 8u, 16u}) {
    const auto bytes = static_cast<std::ptrdiff_t>(item);
    for (const std::ptrdiff_t row_stride : {bytes * 6, bytes * 7, -bytes * 6, std::ptrdiff_t{0}, -bytes}) {
      for (const std::ptrdiff_t level_stride : {bytes * 3, bytes * 4, -bytes * 3, std::ptrdiff_t{0}}) {
        for (const std::ptrdiff_t feature_stride : {bytes, -bytes, bytes * 2, std::ptrdiff_t{0}}) {
          StridedRows rows{memory.data() + memory.size() / 2, 20, row_stride, 2, {2, 3}, {}, item, 0};
          rows.strides = {level_stride, feature_stride};
          for (const std::size_t swap : {std::size_t{0}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
            if (swap > item) continue;
            rows.swap_bytes = swap;
            std::vector<std::byte> out(15 * 6 * item);
            copy_rows(rows, 3, 15, out);
            EXPECT_EQ(out, one_by_one(rows, 3, 15)) << item << " " << row_stride << " " << swap;
          }
        }
      }
    }
  }
}

TEST(Strided, ASourceGivesTheSameRowsInPieces) {
  std::vector<std::uint32_t> items(300'000 * 10);
  std::iota(items.begin(), items.end(), 0u);
  const Bytes plain(as_bytes(static_cast<const void*>(items.data())), items.size() * 4);
  const StridedRows reversed{plain.data() + plain.size() - 40, 300'000, -40, 1, {10}, {4}, 4, 0};
  RowSource there(plain, 40);
  RowSource copied(reversed, 40);
  EXPECT_EQ(there.at(7, 5).data(), plain.data() + 7 * 40);
  std::uint64_t rows = 0;
  std::uint64_t calls = 0;
  copied.in_pieces(300'000, [&](Bytes some, std::uint64_t count) {
    EXPECT_LE(some.size(), RowSource::kPieceBytes);
    EXPECT_EQ(some.size(), count * 40);
    EXPECT_EQ(load<std::uint32_t>(some.data()), 10 * (299'999 - rows));
    rows += count;
    ++calls;
  });
  EXPECT_EQ(rows, 300'000u);
  EXPECT_GT(calls, 1u);
}

}  // namespace
}  // namespace cdd
