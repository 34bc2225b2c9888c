// Memory for results: it keeps what it has when it grows, is nobody else's, and serves again.
#include "core/os/pages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace cdd::test {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

std::byte at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 4096); }

TEST(Pages, GrowingKeepsWhatIsThere) {
  Pages pages;
  std::size_t filled = 0;
  for (const std::size_t bytes :
       {std::size_t{100}, kMegabyte, 3 * kMegabyte, 3 * kMegabyte + 1, 40 * kMegabyte, 2 * kMegabyte}) {
    pages.grow(bytes);
    ASSERT_GE(pages.size(), bytes);
    for (std::size_t i = 0; i < filled; i += 97) ASSERT_EQ(pages.data()[i], at(i)) << bytes;
    for (; filled < bytes; ++filled) pages.data()[filled] = at(filled);
  }
  EXPECT_EQ(pages.size(), 40 * kMegabyte);
  const Pages moved = std::move(pages);
  EXPECT_EQ(moved.data()[filled - 1], at(filled - 1));
}

#if defined(__linux__)
TEST(Pages, WhatWasLetGoOfServesAgain) {
  const std::byte* before = nullptr;
  {
    Pages pages(9 * kMegabyte);
    before = pages.data();
    pages.data()[0] = std::byte{1};
  }
  Pages again(9 * kMegabyte - 5);
  EXPECT_EQ(again.data(), before);
  EXPECT_EQ(again.size(), 9 * kMegabyte - 5);
  const Pages other(9 * kMegabyte);
  EXPECT_NE(other.data(), before);
}
#endif

TEST(Pages, ThreadsGetPagesOfTheirOwn) {
  std::vector<std::thread> threads;
  std::atomic<int> shared{0};
  for (unsigned id = 1; id <= 4; ++id) {
    threads.emplace_back([id, &shared] {
      std::mt19937 random(id);
      std::vector<Pages> held;
      for (int turn = 0; turn < 300; ++turn) {
        Pages pages((2 + random() % 6) * kMegabyte);
        pages.data()[0] = pages.data()[pages.size() - 1] = static_cast<std::byte>(id);
        held.push_back(std::move(pages));
        for (const Pages& mine : held) {
          const bool is_mine = mine.data()[0] == static_cast<std::byte>(id) &&
                               mine.data()[mine.size() - 1] == static_cast<std::byte>(id);
          if (!is_mine) ++shared;
        }
        if (held.size() > 5 || random() % 3 == 0) held.erase(held.begin());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0);
}

}  // namespace
}  // namespace cdd::test
