// Rows of arrays as text, against each item formatted by itself.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "core/base/text.h"
#include "core/packed/array_text.h"
#include "core/packed/convert.h"

namespace cdd::packed {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string item_text(float value) {
  char text[kMaxNumberText];
  return {text, format_float32(value, text)};
}

TEST(ArrayText, CsvIsEveryItemByItselfWhateverRowsRepeat) {
  std::mt19937 random(7);
  for (const std::uint32_t columns : {1u, 3u, 150u, 5000u}) {  // more than are remembered, too
    const std::size_t rows = 60'000 / columns + 2;
    std::vector<float> items(rows * columns);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool repeats = i >= columns && random() % 4 != 0;
      items[i] = repeats ? items[i - columns] : static_cast<float>(random() % 100'000) / 100 - 300;
    }
    items[items.size() / 2] = -0.0F;
    items[items.size() / 3] = std::numeric_limits<float>::quiet_NaN();
    ArrayRows given{Type::Float32, reinterpret_cast<const std::byte*>(items.data()), rows, {columns}};
    const bool numbered = rows <= 100;
    if (numbered) given.first_number = 100;
    given.number_step = -1;
    std::string wanted;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i % columns == 0 && numbered) wanted += std::to_string(100 - i / columns) + ";";
      wanted += item_text(items[i]);
      wanted += i % columns + 1 == columns ? '\n' : ';';
    }
    std::vector<std::byte> out;
    append_csv({';', '"', true}, given, &out);
    EXPECT_EQ(text_of(out), wanted) << columns;
  }
}

TEST(ArrayText, JsonHasTheBracketsOfTheShape) {
  const std::vector<double> items = {
      1,   -0.0, std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity(),
      0.1, 1e300};
  const auto* const bytes = reinterpret_cast<const std::byte*>(items.data());
  const auto json = [&](std::uint64_t rows, std::vector<std::uint32_t> dims, std::uint64_t first) {
    ArrayRows given{Type::Float64, bytes, rows, std::move(dims)};
    given.first_number = first;
    std::vector<std::byte> out;
    append_json(given, &out);
    return text_of(out);
  };
  EXPECT_EQ(json(1, {3, 2}, kNoNumber), "[[1, -0.0], [NaN, -Infinity], [0.1, 1e+300]]\n");
  EXPECT_EQ(json(1, {1, 3, 2, 1}, kNoNumber), "[[[[1], [-0.0]], [[NaN], [-Infinity]], [[0.1], [1e+300]]]]\n");
  EXPECT_EQ(json(3, {2}, 8),
            "{\"row\": 8, \"values\": [1, -0.0]}\n{\"row\": 9, \"values\": [NaN, "
            "-Infinity]}\n{\"row\": 10, \"values\": [0.1, 1e+300]}\n");
  EXPECT_EQ(json(2, {}, kNoNumber), "1\n-0.0\n");
}

TEST(ArrayText, TimesAndBlankLines) {
  const std::int64_t times[] = {0, std::numeric_limits<std::int64_t>::min()};
  ArrayRows given{Type::Time, reinterpret_cast<const std::byte*>(times), 2, {}};
  std::vector<std::byte> csv;
  std::vector<std::byte> json;
  append_csv({}, given, &csv);
  append_json(given, &json);
  EXPECT_EQ(text_of(csv), "1970-01-01T00:00:00\n\"\"\n");
  EXPECT_EQ(text_of(json), "\"1970-01-01T00:00:00\"\nnull\n");
}

TEST(ArrayText, DialectsThatNumbersNeedQuotesFor) {
  for (const char c : {'.', '-', '+', ':', 'e', 'N', '7'}) {
    EXPECT_FALSE(is_plain_for_numbers({static_cast<std::uint8_t>(c), '"', true})) << c;
    EXPECT_FALSE(is_plain_for_numbers({',', static_cast<std::uint8_t>(c), true})) << c;
    EXPECT_TRUE(is_plain_for_numbers({',', static_cast<std::uint8_t>(c), false})) << c;
  }
  EXPECT_TRUE(is_plain_for_numbers({'\t', '"', true}));
}

}  // namespace
}  // namespace cdd::packed
