// The rows of a writer that do not fill a chunk, against a vector that just grows.
#include "core/store/tail.h"

#include <gtest/gtest.h>

#include <random>
#include <span>

namespace cdd {
namespace {

constexpr std::size_t kRowBytes = 6;

std::vector<std::byte> random_rows(std::size_t rows, std::mt19937& random) {
  std::vector<std::byte> bytes(rows * kRowBytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

std::vector<std::byte> copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

TEST(Tail, RunsAreThoseOfOneArray) {
  std::mt19937 random(7);
  Tail tail(kRowBytes);
  std::vector<std::byte> all;  // what the tail holds
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = random() % 20;
    const std::vector<std::byte> more = random_rows(n, random);
    RowSource source{Bytes(more), kRowBytes};
    std::vector<std::byte> both = all;
    both.insert(both.end(), more.begin(), more.end());
    const std::size_t total = both.size() / kRowBytes;
    std::size_t first = 0;
    for (int run = 0; run < 5; ++run) {
      first += random() % (total - first + 1);
      const std::size_t count = random() % (total - first + 1);
      const Bytes expected = Bytes(both).subspan(first * kRowBytes, count * kRowBytes);
      ASSERT_EQ(copy(tail.run(source, first, count)), copy(expected));
      ASSERT_EQ(copy(tail.bytes()), all) << "copies are no part of it";
    }
    switch (random() % 4) {
      case 0:
        tail.drop_copies();
        break;
      case 1:
        tail.extend(source, n);
        all = both;
        break;
      case 2: {
        const std::size_t from = random() % (total + 1);
        tail = tail.rest(source, from, total - from);
        all.assign(both.begin() + static_cast<std::ptrdiff_t>(from * kRowBytes), both.end());
        break;
      }
      default:
        tail.clear();
        all.clear();
    }
    ASSERT_EQ(tail.rows(), all.size() / kRowBytes);
    ASSERT_EQ(copy(tail.bytes()), all);
  }
}

}  // namespace
}  // namespace cdd
