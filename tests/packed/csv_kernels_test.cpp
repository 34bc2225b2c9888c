// The kernels of CSV: every SIMD target gives what the reference gives, for texts that cross its steps in
// every way.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/simd/csv/csv.h"
#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

using namespace cdd::simd;

const std::byte* bytes_of(const std::string& text) { return reinterpret_cast<const std::byte*>(text.data()); }

struct Tokens {
  CsvTokens tokens;
  std::vector<std::string> cells;
  std::vector<std::uint32_t> ends;

  bool operator==(const Tokens& other) const {
    return tokens.rows == other.tokens.rows && tokens.consumed == other.tokens.consumed &&
           tokens.bad == other.tokens.bad && tokens.full == other.tokens.full && cells == other.cells &&
           ends == other.ends;
  }
};

template <class Tokenise>
Tokens tokens_of(Tokenise&& tokenise, const CsvDialect& dialect, const std::string& text, bool last,
                 std::size_t max_cells) {
  std::vector<CsvCell> cells(max_cells);
  std::vector<std::uint32_t> ends(max_cells);
  Tokens result;
  result.tokens = tokenise(dialect, bytes_of(text), text.size(), last,
                           CsvCells{cells.data(), max_cells, ends.data(), max_cells});
  ends.resize(result.tokens.rows);
  for (std::uint32_t i = 0; i < (ends.empty() ? 0 : ends.back()); ++i) {
    result.cells.emplace_back(reinterpret_cast<const char*>(cells[i].data), cells[i].bytes);
    result.cells.back() += cells[i].quoted != 0 ? "q" : "u";
    result.cells.back() += cells[i].doubled != 0 ? "d" : "s";
  }
  result.ends = ends;
  return result;
}

struct Packed {
  CsvPackedRows rows;
  std::vector<std::byte> fields;
  std::vector<std::byte> offsets;
};

template <class Pack>
Packed pack(Pack&& pack_csv, const CsvDialect& dialect, const std::string& text, std::uint32_t columns,
            std::size_t room, std::size_t max_rows) {
  Packed result{{}, std::vector<std::byte>(room), std::vector<std::byte>(4 * max_rows)};
  std::byte* const out = result.fields.data();
  result.rows = pack_csv(dialect, bytes_of(text), text.size(), text.size(),
                         CsvPackTarget{out, out + room, result.offsets.data(), max_rows, 1000, columns});
  return result;
}

// Fields of text in memory of its exact size, and what gathering its columns gives.
struct Fields {
  CsvFields fields;
  std::vector<std::uint32_t> ends;
  std::vector<std::string> columns;
  std::vector<std::int64_t> offsets;
};

template <class Find, class Gather>
Fields fields_of(Find&& find, Gather&& gather, const CsvDialect& dialect, const std::string& given, bool last,
                 std::uint32_t columns) {
  const std::vector<std::byte> text(bytes_of(given), bytes_of(given) + given.size());
  std::vector<std::uint32_t> ends(text.size() + 73);
  Fields result;
  result.fields = find(dialect, text.data(), text.size(), last, columns, ends.data() + 1);
  if (!result.fields.regular) return result;
  const std::size_t rows = result.fields.rows;
  result.ends.assign(ends.begin(), ends.begin() + 1 + static_cast<std::ptrdiff_t>(rows * columns));
  for (std::uint32_t c = 0; c < columns; ++c) {
    std::vector<std::byte> out(text.size() + kCsvSlack);
    std::vector<std::int64_t> offsets(rows);
    const CsvColumn column{text.data(), text.size(), ends.data() + 1 + c, rows,
                           columns,     c == 0,      result.fields.quotes};
    const std::size_t bytes =
        gather(dialect, column, out.data(), 7, reinterpret_cast<std::byte*>(offsets.data()));
    result.columns.emplace_back(reinterpret_cast<const char*>(out.data()), bytes);
    result.offsets.insert(result.offsets.end(), offsets.begin(), offsets.end());
  }
  return result;
}

void expect_same_fields(const CsvDialect& dialect, const std::string& text, bool last,
                        std::uint32_t columns) {
  const auto of_target = [&](auto&&... of) { return simd::find_csv_fields(of...); };
  const Fields found = fields_of(of_target, simd::gather_csv_column, dialect, text, last, columns);
  const Fields expected =
      fields_of(reference::find_csv_fields, reference::gather_csv_column, dialect, text, last, columns);
  ASSERT_EQ(found.fields.regular, expected.fields.regular) << testing::PrintToString(text) << columns;
  if (!found.fields.regular) return;
  ASSERT_EQ(found.fields.rows, expected.fields.rows) << testing::PrintToString(text) << columns;
  ASSERT_EQ(found.fields.consumed, expected.fields.consumed) << testing::PrintToString(text) << columns;
  ASSERT_EQ(found.fields.quotes, expected.fields.quotes) << testing::PrintToString(text);
  ASSERT_EQ(found.ends, expected.ends) << testing::PrintToString(text);
  ASSERT_EQ(found.columns, expected.columns) << testing::PrintToString(text);
  ASSERT_EQ(found.offsets, expected.offsets) << testing::PrintToString(text);
}

void expect_same(const CsvDialect& dialect, const std::string& text) {
  for (const bool inside : {false, true}) {
    const CsvState state = csv_state_after(dialect, ',', inside);
    ASSERT_EQ(scan_csv(dialect, bytes_of(text), text.size(), state),
              reference::scan_csv(dialect, bytes_of(text), text.size(), state))
        << testing::PrintToString(text);
  }
  for (const bool last : {false, true}) {
    const std::size_t cells = text.size() + 200;
    ASSERT_EQ(tokens_of(simd::tokenise_csv, dialect, text, last, cells),
              tokens_of(reference::tokenise_csv, dialect, text, last, cells))
        << testing::PrintToString(text);
    ASSERT_EQ(tokens_of(simd::tokenise_csv, dialect, text, last, 100),
              tokens_of(reference::tokenise_csv, dialect, text, last, 100))
        << testing::PrintToString(text);
  }
  const std::size_t first_row = text.find_first_of("\r\n");
  const auto columns = static_cast<std::uint32_t>(
      1 + std::count(text.begin(),
                     text.begin() + static_cast<std::ptrdiff_t>(std::min(first_row, text.size())),
                     static_cast<char>(dialect.delimiter)));
  for (const bool last : {false, true}) {
    for (const std::uint32_t fields : {1u, columns}) expect_same_fields(dialect, text, last, fields);
  }
  const Packed expected =
      pack(reference::pack_csv, dialect, text, columns, 4 * text.size() + 8, text.size() + 1);
  // Exactly the room that is needed, so that a sanitizer or a wrong byte shows what goes over the end.
  for (const std::size_t slack : {0, 1, 500}) {
    const std::size_t room = expected.rows.bytes + slack;
    const Packed found = pack(simd::pack_csv, dialect, text, columns, room, text.size() + 1);
    ASSERT_EQ(found.rows.whole, expected.rows.whole) << testing::PrintToString(text) << slack;
    if (!expected.rows.whole) break;
    ASSERT_EQ(found.rows.rows, expected.rows.rows) << testing::PrintToString(text);
    ASSERT_EQ(found.rows.bytes, expected.rows.bytes) << testing::PrintToString(text);
    ASSERT_TRUE(std::equal(found.fields.begin(),
                           found.fields.begin() + static_cast<std::ptrdiff_t>(found.rows.bytes),
                           expected.fields.begin()))
        << testing::PrintToString(text);
    ASSERT_EQ(found.offsets, expected.offsets) << testing::PrintToString(text);
    if (expected.rows.bytes == 0) continue;
    ASSERT_FALSE(
        pack(simd::pack_csv, dialect, text, columns, expected.rows.bytes - 1, text.size() + 1).rows.whole);
  }
}

std::string random_text(std::mt19937& random, const std::string& alphabet, std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += alphabet[random() % alphabet.size()];
  return text;
}

TEST(CsvKernels, EveryTargetGivesTheReferenceOnShortTexts) {
  const std::string alphabet = "a,\"\r\n";
  std::vector<std::string> texts{""};
  for (std::size_t begin = 0, length = 0; length < 4; ++length) {
    const std::size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : alphabet) texts.push_back(texts[begin] + c);
    }
  }
  for_each_target([&] {
    for (const std::string& text : texts) {
      for (const std::size_t shift : {0u, 60u, 61u, 62u, 63u}) {
        expect_same({}, std::string(shift, 'b') + text);
        if (shift != 0) expect_same({}, std::string(shift - 1, 'b') + "," + text);
      }
    }
  });
}

TEST(CsvKernels, EveryTargetGivesTheReferenceOnRandomTexts) {
  for_each_target([&] {
    std::mt19937 random(1);
    for (const std::string alphabet :
         {"ab,\n", "abcdefgh,,\r\n", "aaaaaaaa,\"\r\n", "aaaaaaaaaaaaaaaaaaaaaaa,\"\n", "a\xc3\xa9,"}) {
      for (int i = 0; i < 120; ++i) expect_same({}, random_text(random, alphabet, random() % 400));
    }
    expect_same({';', '\'', true}, random_text(random, "ab;'\n,\"", 300));
    expect_same({'\t', 0, false}, random_text(random, "ab\t\"\n", 300));
    expect_same({0, '"', true}, random_text(random, std::string("ab\0\"\n", 5), 300));
  });
}

// Rows that the reference packs whole, unlike most random ones, with quotes in place and long fields.
TEST(CsvKernels, EveryTargetPacksRowsAsTheReference) {
  for_each_target([&] {
    std::mt19937 random(2);
    for (int i = 0; i < 60; ++i) {
      std::string text;
      const std::size_t columns = 1 + random() % 5;
      const std::size_t longest = i % 3 == 0 ? 100 : 12;
      for (std::size_t row = random() % 40; row > 0; --row) {
        for (std::size_t c = 0; c < columns; ++c) {
          const std::size_t bytes = random() % longest;
          if (random() % 3 == 0) {
            text += '"';
            for (std::size_t k = 0; k < bytes; ++k)
              text += random() % 9 == 0 ? "\"\"" : random() % 9 == 0 ? "\n" : "x";
            text += '"';
          } else {
            text += std::string(bytes, static_cast<char>('a' + random() % 26));
          }
          if (c + 1 < columns) text += ',';
        }
        text += random() % 2 == 0 ? "\n" : "\r\n";
      }
      expect_same({}, text);
    }
    std::string longest(0xffff, 'x');
    expect_same({}, longest + "\n");
    expect_same({}, longest + "x\n");
    expect_same({}, "\"" + longest + "\"\n");
    expect_same({}, "\"" + longest + "x\"\n");
  });
}

}  // namespace
}  // namespace cdd::test
