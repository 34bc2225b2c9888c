// Packed rows of version 1: the bytes, packing from CSV by each way, reading and its checks.
#include "core/packed/pack.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/format/packed/rows.h"
#include "core/packed/csv/plan.h"
#include "core/packed/csv/rows.h"
#include "core/threads/for_each.h"

namespace cdd::test {
namespace {

using namespace cdd::packed;
using Buffer = std::vector<std::byte>;
using Rows = std::vector<std::vector<std::string>>;

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

Buffer packed(const std::string& text, const CsvOptions& options = {}) {
  Buffer out;
  pack_csv(options, bytes_of(text), [&](std::uint64_t bytes) {
    out.assign(bytes, std::byte{0xaa});
    return MutableBytes(out);
  });
  return out;
}

Rows rows_of(const Buffer& bytes) {
  const RowsView view = open_version1(bytes);
  Rows rows;
  for (std::uint32_t i = 0; i < view.rows; ++i) {
    std::vector<Bytes> fields(view.columns);
    read_row(view, i, fields);
    rows.emplace_back();
    for (const Bytes f : fields) rows.back().emplace_back(reinterpret_cast<const char*>(f.data()), f.size());
  }
  return rows;
}

Buffer golden() {
  const unsigned char bytes[] = {
      0x56, 0x53, 0x43, 0x4f, 0x01, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x52,
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x24, 0x00, 0x00, 0x00, 0x35, 0x00, 0x00, 0x00, 0x45, 0x00,
      0x00, 0x00, 0x04, 0x00, 0x6e, 0x61, 0x6d, 0x65, 0x03, 0x00, 0x61, 0x67, 0x65, 0x04, 0x00, 0x63, 0x69,
      0x74, 0x79, 0x05, 0x00, 0x41, 0x6c, 0x69, 0x63, 0x65, 0x02, 0x00, 0x33, 0x30, 0x03, 0x00, 0x4e, 0x59,
      0x43, 0x03, 0x00, 0x42, 0x6f, 0x62, 0x02, 0x00, 0x32, 0x35, 0x02, 0x00, 0x4c, 0x41};
  Buffer result;
  for (const unsigned char b : bytes) result.push_back(std::byte{b});
  return result;
}

TEST(Packed1, TheGoldenBytes) {
  EXPECT_EQ(golden().size(), 82u);
  EXPECT_EQ(packed("name,age,city\nAlice,30,NYC\nBob,25,LA\n"), golden());
  EXPECT_EQ(packed("name,age,city\r\n\"Alice\",30,NYC\r\n\r\nBob,25,\"LA\""), golden());
  EXPECT_EQ(rows_of(golden()), (Rows{{"name", "age", "city"}, {"Alice", "30", "NYC"}, {"Bob", "25", "LA"}}));
  check_rows(open_version1(golden()), Check::Utf8);
}

TEST(Packed1, NoRowsAreAHeader) {
  for (const std::string text : {"", "\n", "\r\n\r\n", "\xef\xbb\xbf"}) {
    const Buffer bytes = packed(text);
    EXPECT_EQ(bytes.size(), 24u);
    EXPECT_EQ(open_version1(bytes).columns, 0u);
  }
}

TEST(Packed1, EachPrefixAndEachFlippedBitIsAnErrorOrRightlyBounded) {
  const Buffer whole = golden();
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const Buffer part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));  // exactly sized
    EXPECT_THROW(open_version1(part), Error) << n;
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Buffer damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    try {
      const RowsView view = open_version1(damaged);
      for (std::uint32_t i = 0; i < view.rows; ++i) {
        for (std::uint32_t j = 0; j < view.columns; ++j) {
          try {
            const Bytes field = read_field(view, i, j);
            ASSERT_GE(field.data(), damaged.data());
            ASSERT_LE(field.data() + field.size(), damaged.data() + damaged.size());
          } catch (const Error& error) {
            EXPECT_EQ(error.place().number, i);
          }
        }
      }
      const bool of_an_offset = bit >= 24 * 8 && bit < 36 * 8;
      if (of_an_offset) {
        EXPECT_THROW(check_rows(view, Check::Full), Error);
      }
    } catch (const Error&) {
    }
  }
}

Error error_of(const std::string& text, const CsvOptions& options = {}) {
  try {
    packed(text, options);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::InvalidArgument, "no error"};
}

void expect_error(const Error& error, ErrorCode code, std::uint64_t row, std::uint64_t field,
                  std::uint64_t offset) {
  EXPECT_EQ(error.code(), code) << error.what();
  EXPECT_EQ(error.place().number, row) << error.what();
  EXPECT_EQ(error.place().field, field) << error.what();
  EXPECT_EQ(error.place().offset, offset) << error.what();
}

TEST(PackCsv, BadTextSaysWhere) {
  expect_error(error_of("a,b\nc,d\"e\n"), ErrorCode::Corrupt, 1, 1, 7);
  expect_error(error_of("a,b\nc,\"d\"e\n"), ErrorCode::Corrupt, 1, 1, 9);
  expect_error(error_of("a,b\nc,\"d\n"), ErrorCode::Corrupt, 1, 1, 6);
  expect_error(error_of("a,b\nc\nd,e\n"), ErrorCode::Corrupt, 1, 1, 4);
  expect_error(error_of("a,b\nc,d,e\n"), ErrorCode::Corrupt, 1, 2, 4);
  expect_error(error_of("a,b\nc,d\n\xff,e\n"), ErrorCode::Corrupt, 2, 0, 8);
  expect_error(error_of("\xef\xbb\xbf"
                        "a,b\nc,d\ne,\xc3\n"),
               ErrorCode::Corrupt, 2, 1, 13);
  EXPECT_EQ(error_of(std::string("\xff\xfe"
                                 "a\0",
                                 4))
                .code(),
            ErrorCode::Unsupported);
  const std::string wide(65536, 'x');
  expect_error(error_of("a,b\nc," + wide + "\n"), ErrorCode::Corrupt, 1, 1, 6);
}

TEST(PackCsv, OptionsAcceptWhatCanBe) {
  CsvOptions lenient;
  lenient.strict = false;
  EXPECT_EQ(rows_of(packed("a,b\"c\nd,\"e\"f\"\n\"g\",\"h\n", lenient)),
            (Rows{{"a", "b\"c"}, {"d", "ef\""}, {"g", "h\n"}}));
  CsvOptions pad;
  pad.ragged = Ragged::Pad;
  EXPECT_EQ(rows_of(packed("a,b\nc\nd,e\n", pad)), (Rows{{"a", "b"}, {"c", ""}, {"d", "e"}}));
  EXPECT_EQ(error_of("a,b\nc,d,e\n", pad).place().number, 1u);
  CsvOptions skip;
  skip.ragged = Ragged::Skip;
  EXPECT_EQ(rows_of(packed("a,b\nc\nd,e\nf,g,h\n", skip)), (Rows{{"a", "b"}, {"d", "e"}}));
  CsvOptions comment;
  comment.has_comment = true;
  EXPECT_EQ(rows_of(packed("#x\"\na,b\n#\nc,#d\n#", comment)), (Rows{{"a", "b"}, {"c", "#d"}}));
  CsvOptions some;
  some.columns = {2, 0};
  EXPECT_EQ(rows_of(packed("a,b,c\nd,e,\"f\"\"\"\n", some)), (Rows{{"c", "a"}, {"f\"", "d"}}));
  CsvOptions lines;
  lines.skip_lines = 2;
  EXPECT_EQ(rows_of(packed("junk\"\r\n\r\na,b\n", lines)), (Rows{{"a", "b"}}));
  CsvOptions blank;
  blank.blank = Blank::Field;
  EXPECT_EQ(rows_of(packed("a\n\nb\r\n\r\nc", blank)), (Rows{{"a"}, {""}, {"b"}, {""}, {"c"}}));
  CsvOptions bytes;
  bytes.utf8 = false;
  EXPECT_EQ(rows_of(packed("\xff,a\n", bytes)), (Rows{{"\xff", "a"}}));
}

// Text with everything in it, longer than several blocks, quotes open across their edges.
std::string long_text(std::mt19937& random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) {
    for (int c = 0; c < 4; ++c) {
      const std::size_t n = random() % 500 == 0 ? random() % 20000 : random() % 24;
      if (random() % 3 == 0) {
        text += '"';
        for (std::size_t k = 0; k < n; ++k) {
          constexpr const char* kParts[] = {"\"\"", "\r\n", ",", "\n", "x", "\xc3\xa9", "\xf0\x9f\x98\x80",
                                            "yz"};
          text += kParts[random() % 8];
        }
        text += '"';
      } else {
        text += std::string(n, static_cast<char>('a' + random() % 26));
      }
      text += c < 3 ? "," : random() % 2 == 0 ? "\n" : "\r\n";
    }
  }
  return text;
}

TEST(PackCsv, ThreadsAndWaysGiveTheSameBytes) {
  std::mt19937 random(3);
  const std::string text = long_text(random, 3 << 20);
  ASSERT_TRUE(plan_csv({}, bytes_of(text)).has_value());
  set_threads(1);
  const Buffer expected = packed(text);
  check_rows(open_version1(expected), Check::Utf8);
  for (unsigned threads = 2; threads <= 8; ++threads) {
    set_threads(threads);
    ASSERT_TRUE(packed(text) == expected) << threads;
  }
  set_threads(0);
  CsvOptions by_kernel;  // with something to fit, so that the plan is not taken
  by_kernel.columns = {0, 1, 2, 3};
  EXPECT_TRUE(packed(text, by_kernel) == expected);
  CsvOptions by_machine;
  by_machine.has_comment = true;
  by_machine.comment = 1;
  EXPECT_TRUE(packed(text, by_machine) == expected);
  // One quote out of place: all before and after it is as it was.
  CsvOptions lenient;
  lenient.strict = false;
  const Rows rows = rows_of(packed("a,b,c,d\"\n" + text, lenient));
  EXPECT_EQ(rows[0], (std::vector<std::string>{"a", "b", "c", "d\""}));
  EXPECT_TRUE(Rows(rows.begin() + 1, rows.end()) == rows_of(expected));
}

TEST(CsvRows, TextMayComeInParts) {
  std::mt19937 random(4);
  const std::string text = long_text(random, 400000);
  const Rows expected = rows_of(packed(text));
  for (const bool machine : {false, true}) {
    CsvOptions options;
    options.has_comment = machine;
    options.comment = 1;
    Rows rows;
    CsvProgress progress;
    std::size_t at = 0;
    for (std::size_t end = 0; at < text.size();) {
      end = std::min(text.size(), end + 1 + random() % 90000);
      const Bytes part = bytes_of(text).subspan(at, end - at);
      progress.text_offset = at;
      CsvRows reader(options, part, end == text.size(), progress);
      for (CsvBlock block; reader.next(&block);) {
        ASSERT_EQ(block.first_row, rows.size());
        for (std::size_t r = 0, i = 0; r < block.rows; ++r) {
          rows.emplace_back();
          for (; i < block.ends[r]; ++i) {
            rows.back().emplace_back(reinterpret_cast<const char*>(block.cells[i].data),
                                     block.cells[i].bytes);
          }
        }
      }
      at += reader.consumed();
      if (end == text.size()) break;
    }
    EXPECT_TRUE(rows == expected);
  }
}

TEST(CsvRows, LimitsAreBeforeMemory) {
  CsvOptions options;
  options.max_columns = 1000;
  EXPECT_EQ(error_of(std::string(300000, ','), options).code(), ErrorCode::Limit);
  options.max_row_bytes = 1 << 20;
  CsvProgress progress;
  const std::string open = "\"" + std::string(8 << 20, 'x');
  CsvRows reader(options, bytes_of(open), false, progress);
  CsvBlock block;
  EXPECT_THROW(reader.next(&block), Error);
}

TEST(RowPacker, GivesTheGoldenBytes) {
  RowPacker packer;
  for (const auto& row : Rows{{"name", "age", "city"}, {"Alice", "30", "NYC"}, {"Bob", "25", "LA"}}) {
    for (const std::string& field : row) packer.add_field(bytes_of(field));
    packer.end_row();
  }
  Buffer out(packer.bytes());
  packer.write(out);
  EXPECT_EQ(out, golden());
}

}  // namespace
}  // namespace cdd::test
