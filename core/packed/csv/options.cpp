#include "core/packed/csv/options.h"

#include "core/base/error.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

}  // namespace

void check_options(const CsvOptions& options) {
  const auto check = [](const char* name, std::uint8_t byte) {
    if (byte >= 0x80 || byte == '\r' || byte == '\n') {
      fail(ErrorCode::InvalidArgument, "%s is one ASCII character other than CR and LF, not byte 0x%02x",
           name, byte);
    }
  };
  const simd::CsvDialect& dialect = options.dialect;
  check("delimiter", dialect.delimiter);
  if (dialect.quotes) check("quote", dialect.quote);
  if (options.has_comment) check("comment", options.comment);
  if (dialect.quotes && dialect.quote == dialect.delimiter) {
    fail(ErrorCode::InvalidArgument, "delimiter and quote are the same character, 0x%02x", dialect.quote);
  }
  if (options.has_comment &&
      (options.comment == dialect.delimiter || (dialect.quotes && options.comment == dialect.quote))) {
    fail(ErrorCode::InvalidArgument, "comment is the same character as delimiter or quote, 0x%02x",
         options.comment);
  }
}

void check_row_bytes(const CsvOptions& options, std::size_t bytes, std::uint64_t row, std::uint64_t offset) {
  if (bytes <= options.max_row_bytes) return;
  fail_at({Place::Kind::Row, row, Place::kNone, offset}, ErrorCode::Limit,
          "row %llu at 0x%llx has more than %llu bytes: is a quote never closed? max_row_bytes allows more",
          static_cast<ull>(row), static_cast<ull>(offset), static_cast<ull>(options.max_row_bytes));
}

std::size_t csv_begin(const CsvOptions& options, Bytes text, bool last) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(text[i]); };
  if (text.size() < 3 && !last) return simd::kCsvNone;
  if (text.size() >= 2 && ((byte(0) == 0xff && byte(1) == 0xfe) || (byte(0) == 0xfe && byte(1) == 0xff))) {
    fail(ErrorCode::Unsupported,
         "the text begins with the mark of UTF-16: it must be UTF-8, decode it first");
  }
  std::size_t at = text.size() >= 3 && byte(0) == 0xef && byte(1) == 0xbb && byte(2) == 0xbf ? 3 : 0;
  for (std::uint64_t line = 0; line < options.skip_lines; ++line) {
    while (at < text.size() && byte(at) != '\n' && byte(at) != '\r') ++at;
    if (at + 1 >= text.size() && !last) return simd::kCsvNone;
    if (at == text.size()) {
      fail(ErrorCode::OutOfRange, "%llu lines are to be skipped, there are %llu",
           static_cast<ull>(options.skip_lines), static_cast<ull>(line));
    }
    at += byte(at) == '\r' && at + 1 < text.size() && byte(at + 1) == '\n' ? 2 : 1;
  }
  return at;
}

}  // namespace cdd::packed
