#include "core/base/first_above.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cdd {
namespace {

TEST(FirstAbove, FindsWhatBisectingFindsFromAnyGuess) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0, 1, 2, 7, 40}) {
    std::vector<std::uint64_t> ends(count);
    for (std::uint64_t& end : ends) end = random() % 30;
    std::sort(ends.begin(), ends.end());  // some are equal, as those of damaged slots
    for (std::uint64_t value = 0; value < 32; ++value) {
      const auto wanted = std::upper_bound(ends.begin(), ends.end(), value) - ends.begin();
      for (std::size_t guess = 0; guess < 50; ++guess) {
        EXPECT_EQ(first_above(ends, value, guess), static_cast<std::size_t>(wanted)) << value << ' ' << guess;
      }
      EXPECT_EQ(first_above(ends, value, ~std::size_t{0}), static_cast<std::size_t>(wanted));
    }
  }
}

}  // namespace
}  // namespace cdd
