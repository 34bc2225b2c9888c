// Columns of numbers: every SIMD target gives the items, and leaves the rows, that the reference does; and
// what is read is what strtod reads.
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/simd/csv/numbers.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

using namespace cdd::simd;

struct Parsed {
  std::vector<std::int64_t> items;
  std::vector<std::uint32_t> left;
  bool operator==(const Parsed&) const = default;
};

// Fields of two columns, the second one read; 16 bytes stand before the first.
struct Text {
  std::string bytes = std::string(16, '7');
  std::vector<std::uint32_t> ends{15};

  void add(const std::string& field, bool first) {
    if (!first) {
      ends.push_back(static_cast<std::uint32_t>(bytes.size() + 1));
      bytes += "1,";
    }
    bytes += field;
    ends.push_back(static_cast<std::uint32_t>(bytes.size()));
    bytes += '\n';
  }
};

template <class Parse>
Parsed parse(Parse&& parse_column, const std::vector<std::string>& fields, bool minus, bool plain,
             bool first) {
  Text text;
  for (const std::string& field : fields) text.add(field, first);
  const std::vector<std::byte> exact(
      reinterpret_cast<const std::byte*>(text.bytes.data()),
      reinterpret_cast<const std::byte*>(text.bytes.data() + text.bytes.size()));
  const std::size_t stride = first ? 1 : 2;
  const CsvColumn column{exact.data(), exact.size(), text.ends.data() + stride, fields.size(), stride,
                         first,        false};
  Parsed parsed;
  parsed.items.resize(fields.size(), -77);
  parsed.left.resize(fields.size());
  parsed.left.resize(parse_column(CsvNumbers{column, minus, plain},
                                  reinterpret_cast<std::byte*>(parsed.items.data()), parsed.left.data()));
  for (const std::uint32_t row : parsed.left) parsed.items[row] = -77;  // of these nothing is said
  return parsed;
}

std::vector<std::string> random_fields(std::mt19937& random) {
  std::vector<std::string> fields;
  const std::string any = "0123456789.-+eE \"a";
  for (int i = 0; i < 300; ++i) {
    std::string field;
    const std::size_t digits = random() % 18;
    for (std::size_t k = 0; k < digits; ++k) field += static_cast<char>('0' + random() % 10);
    if (random() % 2 == 0) field.insert(random() % (field.size() + 1), 1, '.');
    if (random() % 4 == 0) field.insert(0, 1, '-');
    if (random() % 8 == 0) field.insert(random() % (field.size() + 1), 1, any[random() % any.size()]);
    fields.push_back(field);
  }
  return fields;
}

TEST(CsvNumbers, EveryTargetGivesTheReference) {
  for_each_target([&] {
    std::mt19937 random(3);
    for (int turn = 0; turn < 20; ++turn) {
      const std::vector<std::string> fields = random_fields(random);
      for (const int options : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const bool minus = (options & 1) != 0, plain = (options & 2) != 0, first = (options & 4) != 0;
        ASSERT_EQ(parse(simd::parse_csv_integers, fields, minus, plain, first),
                  parse(reference::parse_csv_integers, fields, minus, plain, first));
        ASSERT_EQ(parse(simd::parse_csv_decimals, fields, minus, plain, first),
                  parse(reference::parse_csv_decimals, fields, minus, plain, first));
      }
    }
  });
}

TEST(CsvNumbers, ValuesAreThoseOfTheLibrary) {
  for_each_target([&] {
    std::mt19937 random(4);
    for (int turn = 0; turn < 20; ++turn) {
      const std::vector<std::string> fields = random_fields(random);
      const Parsed decimals = parse(simd::parse_csv_decimals, fields, true, false, false);
      const Parsed integers = parse(simd::parse_csv_integers, fields, true, false, false);
      std::size_t d = 0, n = 0;
      for (std::uint32_t r = 0; r < fields.size(); ++r) {
        if (d < decimals.left.size() && decimals.left[d] == r) {
          ++d;
        } else {
          const double expected = std::strtod(fields[r].c_str(), nullptr);
          std::int64_t bits = 0;
          std::memcpy(&bits, &expected, sizeof bits);
          ASSERT_EQ(decimals.items[r], bits) << fields[r];
        }
        if (n < integers.left.size() && integers.left[n] == r) {
          ++n;
        } else {
          ASSERT_EQ(integers.items[r], std::strtoll(fields[r].c_str(), nullptr, 10)) << fields[r];
        }
      }
    }
  });
}

// What is usual must not be left: 0.006 is a number, and so is every length up to 15 digits.
TEST(CsvNumbers, TakesWhatIsUsual) {
  for_each_target([&] {
    std::vector<std::string> decimals{"0",
                                      "0.006",
                                      "61800.3",
                                      "-0.5",
                                      "-0",
                                      "5.",
                                      ".5",
                                      "123456789012345",
                                      "1234567.89012345",
                                      "-1234567.89012345"};
    EXPECT_TRUE(parse(simd::parse_csv_decimals, decimals, true, true, false).left.empty());
    std::vector<std::string> integers{
        "0", "7", "-7", "1723161256322", "9999999999999999", "-9999999999999999"};
    EXPECT_TRUE(parse(simd::parse_csv_integers, integers, true, true, true).left.empty());
    const std::vector<std::string> text_of{"",    "-",    ".",   "+1",    "1e5",
                                           "007", "-007", "nan", "1.2.3", "12345678901234567"};
    EXPECT_EQ(parse(simd::parse_csv_decimals, text_of, true, true, false).left.size(), text_of.size());
    EXPECT_EQ(parse(simd::parse_csv_integers, text_of, true, true, false).left.size(), text_of.size());
  });
}

}  // namespace
}  // namespace cdd::test
