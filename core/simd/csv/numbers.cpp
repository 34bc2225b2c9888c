#include "core/simd/csv/numbers.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/csv/numbers.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "core/simd/csv/numbers-inl.h"

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(ParseCsvIntegers);
HWY_EXPORT(ParseCsvDecimals);

std::size_t parse_csv_integers(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept {
  return HWY_DYNAMIC_DISPATCH(ParseCsvIntegers)(numbers, items, left);
}

std::size_t parse_csv_decimals(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept {
  return HWY_DYNAMIC_DISPATCH(ParseCsvDecimals)(numbers, items, left);
}

namespace reference {
namespace {

struct Read {
  std::uint64_t digits = 0;
  std::size_t count = 0;     // of the digits
  std::size_t decimals = 0;  // those after the point
  bool minus = false;
  bool whole = false;  // the field is nothing else
};

Read read_field(const CsvNumbers& numbers, std::size_t row, bool with_point) noexcept {
  const CsvColumn& column = numbers.column;
  const std::uint32_t* const ends = column.ends + row * column.stride;
  const auto* const text = reinterpret_cast<const char*>(column.text);
  std::uint32_t at = ends[-1] + 1;
  while (column.first && at < ends[0] && (text[at] == '\n' || text[at] == '\r')) ++at;
  Read read;
  read.minus = numbers.minus && at < ends[0] && text[at] == '-';
  at += read.minus;
  const std::uint32_t begin = at;
  if (ends[0] - begin > 16) return read;
  bool point = false;
  for (; at < ends[0]; ++at) {
    const bool is_point = with_point && !point && text[at] == '.';
    if (!is_point && (text[at] < '0' || text[at] > '9')) return read;
    point = point || is_point;
    if (is_point) continue;
    read.digits = read.digits * 10 + static_cast<std::uint64_t>(text[at] - '0');
    ++read.count;
    read.decimals += point;
  }
  const bool zero = ends[0] - begin > 1 && text[begin] == '0' && !(with_point && text[begin + 1] == '.');
  const bool minus_zero = !with_point && read.minus && ends[0] > begin && text[begin] == '0';
  read.whole = read.count > 0 && !(numbers.plain && (zero || minus_zero));
  return read;
}

}  // namespace

std::size_t parse_csv_integers(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept {
  std::size_t others = 0;
  for (std::size_t r = 0; r < numbers.column.rows; ++r) {
    const Read read = read_field(numbers, r, false);
    const auto value = static_cast<std::int64_t>(read.digits);
    const std::int64_t item = read.minus ? -value : value;
    if (read.whole) std::memcpy(items + 8 * r, &item, sizeof item);
    if (!read.whole) left[others++] = static_cast<std::uint32_t>(r);
  }
  return others;
}

std::size_t parse_csv_decimals(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept {
  std::size_t others = 0;
  for (std::size_t r = 0; r < numbers.column.rows; ++r) {
    const Read read = read_field(numbers, r, true);
    double power = 1;
    for (std::size_t i = 0; i < read.decimals; ++i) power *= 10;
    const double value = static_cast<double>(read.digits) / power;
    const double item = read.minus ? -value : value;
    const bool done = read.whole && read.count <= 15;
    if (done) std::memcpy(items + 8 * r, &item, sizeof item);
    if (!done) left[others++] = static_cast<std::uint32_t>(r);
  }
  return others;
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
