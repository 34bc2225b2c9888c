#include "core/base/time_text.h"

#include <array>
#include <cstring>
#include <limits>

#include "core/base/text.h"

namespace cdd {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The leap-year rule in days since 1970, for any year (after the civil calendar's 400-year period).
std::int64_t days_of(std::int64_t year, unsigned month, unsigned day) noexcept {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto of_era = static_cast<unsigned>(year - era * 400);
  const unsigned of_year = (153 * (month + (month > 2 ? -3U : 9U)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

bool take_number(std::string_view& text, std::size_t digits, unsigned* out) noexcept {
  if (text.size() < digits) return false;
  unsigned value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (!is_digit(text[i])) return false;
    value = value * 10 + static_cast<unsigned>(text[i] - '0');
  }
  text.remove_prefix(digits);
  *out = value;
  return true;
}

bool take(std::string_view& text, char c) noexcept {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

// Digits after a point as nanoseconds of a unit that has 10^places of them.
bool take_decimals(std::string_view& text, std::size_t places, std::int64_t* out) noexcept {
  std::size_t count = 0;
  std::int64_t value = 0;
  for (; count < text.size() && is_digit(text[count]); ++count) {
    if (count < places) {
      value = value * 10 + (text[count] - '0');
    } else if (text[count] != '0') {
      return false;
    }
  }
  if (count == 0) return false;
  for (std::size_t i = count; i < places; ++i) value *= 10;
  text.remove_prefix(count);
  *out = value;
  return true;
}

constexpr std::int64_t kSecond = 1'000'000'000;

// seconds * unit + part, where that fits; both have the same sign or part is positive.
bool scale(std::int64_t number, std::int64_t unit, std::int64_t part, std::int64_t* out) noexcept {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  if (number < 0 && part > 0) {  // so that the least number does not go below before the part is added
    ++number;
    part -= unit;
  }
  if (number > kMost / unit || number < kLeast / unit) return false;
  const std::int64_t whole = number * unit;
  if ((part > 0 && whole > kMost - part) || (part < 0 && whole < kLeast - part)) return false;
  *out = whole + part;
  return *out != kLeast;  // NumPy's NaT
}

std::size_t put_number(std::uint64_t value, std::size_t digits, char* out) noexcept {
  for (std::size_t i = digits; i-- > 0; value /= 10) out[i] = static_cast<char>('0' + value % 10);
  return digits;
}

}  // namespace

bool parse_time_ns(std::string_view text, std::int64_t* out) noexcept {
  unsigned year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!take_number(text, 4, &year) || !take(text, '-') || !take_number(text, 2, &month) || !take(text, '-') ||
      !take_number(text, 2, &day)) {
    return false;
  }
  constexpr std::array<unsigned, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (month < 1 || month > 12 || day < 1 || day > kDays[month - 1] + (leap && month == 2)) return false;
  std::int64_t part = 0;
  std::int64_t offset = 0;
  if (!text.empty()) {
    if (text[0] != 'T' && text[0] != 't' && text[0] != ' ') return false;
    text.remove_prefix(1);
    if (!take_number(text, 2, &hour) || !take(text, ':') || !take_number(text, 2, &minute)) return false;
    if (take(text, ':')) {
      if (!take_number(text, 2, &second)) return false;
      if ((take(text, '.') || take(text, ',')) && !take_decimals(text, 9, &part)) return false;
    }
    if (!take(text, 'Z') && !take(text, 'z') && !text.empty()) {
      const bool minus = text[0] == '-';
      if (!minus && text[0] != '+') return false;
      text.remove_prefix(1);
      unsigned hours = 0, minutes = 0;
      if (!take_number(text, 2, &hours)) return false;
      take(text, ':');
      if (!text.empty() && !take_number(text, 2, &minutes)) return false;
      if (hours > 23 || minutes > 59) return false;
      offset = static_cast<std::int64_t>(hours * 3600 + minutes * 60) * (minus ? 1 : -1);
    }
    if (!text.empty() || hour > 23 || minute > 59 || second > 59) return false;
  }
  const std::int64_t seconds =
      days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second + offset;
  return scale(seconds, kSecond, part, out);
}

bool parse_epoch_ns(std::string_view text, std::int64_t unit_ns, std::int64_t* out) noexcept {
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::int64_t number = 0;
  std::int64_t part = 0;
  if (!parse_int64(whole, &number)) return false;
  if (point != std::string_view::npos) {
    std::size_t places = 0;
    for (std::int64_t left = unit_ns; left >= 10; left /= 10) ++places;
    std::string_view decimals = text.substr(point + 1);
    if (!take_decimals(decimals, places, &part) || !decimals.empty()) return false;
    if (whole[0] == '-') part = -part;
  }
  return scale(number, unit_ns, part, out);
}

std::size_t format_time_ns(std::int64_t value, char* out) noexcept {
  constexpr std::int64_t kDay = 86400 * kSecond;
  std::int64_t days = value / kDay;
  std::int64_t rest = value % kDay;
  if (rest < 0) {
    rest += kDay;
    --days;
  }
  // Back from days to the calendar, as days_of() goes there.
  const std::int64_t shifted = days + 719468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const auto of_era = static_cast<unsigned>(shifted - era * 146097);
  const unsigned year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const unsigned of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted_month = (5 * of_year + 2) / 153;
  const unsigned day = of_year - (153 * shifted_month + 2) / 5 + 1;
  const unsigned month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const auto year = static_cast<std::uint64_t>(era * 400 + year_of_era + (month <= 2));
  char* at = out;
  at += put_number(year, 4, at);
  *at++ = '-';
  at += put_number(month, 2, at);
  *at++ = '-';
  at += put_number(day, 2, at);
  *at++ = 'T';
  const auto time = static_cast<std::uint64_t>(rest);
  at += put_number(time / (3600 * std::uint64_t{kSecond}), 2, at);
  *at++ = ':';
  at += put_number(time / (60 * std::uint64_t{kSecond}) % 60, 2, at);
  *at++ = ':';
  at += put_number(time / kSecond % 60, 2, at);
  if (const std::uint64_t part = time % kSecond; part != 0) {
    *at++ = '.';
    const std::size_t digits = part % 1'000'000 == 0 ? 3 : part % 1'000 == 0 ? 6 : 9;
    std::uint64_t scaled = part;
    for (std::size_t i = digits; i < 9; ++i) scaled /= 10;
    at += put_number(scaled, digits, at);
  }
  return static_cast<std::size_t>(at - out);
}

}  // namespace cdd
