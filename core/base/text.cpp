#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

#if !defined(__cpp_lib_to_chars)
#include <locale>
#include <sstream>
#include <string>
#endif

namespace cdd {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Whether 8 characters are digits, and the number that they are.
bool are_digits(std::uint64_t eight) noexcept {
  return ((eight & 0xf0f0f0f0f0f0f0f0) | ((eight + 0x0606060606060606) & 0xf0f0f0f0f0f0f0f0) >> 4) ==
         0x3333333333333333;
}
std::uint64_t number_of(std::uint64_t eight) noexcept {
  eight = (eight & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
  eight = (eight & 0x00ff00ff00ff00ff) * 6553601 >> 16;
  return (eight & 0x0000ffff0000ffff) * 42949672960001 >> 32;
}

struct Digits {
  std::uint64_t value = 0;
  std::size_t count = 0;  // the value has wrapped where more than 19 count
};

const char* take_digits(const char* at, const char* end, Digits& digits) noexcept {
  const char* const begin = at;
  for (; end - at >= 8; at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, at, sizeof eight);
    if (!are_digits(eight)) break;
    digits.value = digits.value * 100000000 + number_of(eight);
  }
  for (; at < end && is_digit(*at); ++at) digits.value = digits.value * 10 + static_cast<unsigned>(*at - '0');
  digits.count += static_cast<std::size_t>(at - begin);
  return at;
}

// The value of digits alone, false where it is 2^64 or more.
bool parse_digits(std::string_view text, std::uint64_t* out) noexcept {
  if (text.empty()) return false;
  Digits digits;
  const char* const end = text.data() + text.size();
  if (take_digits(text.data(), end, digits) != end) return false;
  if (digits.count > 19) {
    const auto [stop, error] = std::from_chars(text.data(), end, digits.value);
    if (error != std::errc{} || stop != end) return false;
  }
  *out = digits.value;
  return true;
}

bool is_word(std::string_view text, std::string_view word) noexcept {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) { return (a | 0x20) == b; });
}

bool parse_exactly(std::string_view text, double* out) noexcept {
#if defined(__cpp_lib_to_chars)
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range) {
    // Which of both ends it is, from_chars does not say: the exponent of the leading digit does.
    const std::size_t e = text.find_first_of("eE");
    const std::string_view mantissa = text.substr(0, e);
    std::int64_t exponent = 0;
    if (e != std::string_view::npos) {
      const bool plus = text[e + 1] == '+';
      if (!parse_int64(text.substr(e + 1 + plus), &exponent)) {
        exponent = text[e + 1] == '-' ? -1'000'000'000 : 1'000'000'000;
      }
    }
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const std::size_t leading = mantissa.find_first_of("123456789");
    exponent += static_cast<std::int64_t>(point) - static_cast<std::int64_t>(leading);
    value = exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
    if (text[0] == '-') value = -value;
  }
  *out = value;
  return true;
#else
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  double value = 0;
  if (!(stream >> value) && std::isfinite(value) && value != 0 &&
      std::abs(value) != std::numeric_limits<double>::max()) {
    return false;
  }
  if (std::abs(value) == std::numeric_limits<double>::max() && stream.fail()) {
    value = std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  *out = value;
  return true;
#endif
}

}  // namespace

std::size_t utf8_error(Bytes text) noexcept {
  const std::size_t n = text.size();
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::size_t i = 0;
  while (i < n) {
    if (n - i >= 8) {
      if ((load<std::uint64_t>(text.data() + i) & 0x8080808080808080) == 0) {
        i += 8;
        continue;
      }
    }
    const unsigned first = at(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || n - i < bytes) return i;
    const unsigned second = at(i + 1);
    const unsigned least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (second < least || second > most) return i;
    for (std::size_t k = 2; k < bytes; ++k) {
      if ((at(i + k) & 0xc0) != 0x80) return i;
    }
    i += bytes;
  }
  return n;
}

bool parse_int64(std::string_view text, std::int64_t* out) noexcept {
  const bool minus = !text.empty() && text[0] == '-';
  std::uint64_t value = 0;
  if (!parse_digits(text.substr(minus || (!text.empty() && text[0] == '+')), &value)) return false;
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (value > kMost + minus) return false;
  *out = static_cast<std::int64_t>(minus ? 0 - value : value);
  return true;
}

bool parse_uint64(std::string_view text, std::uint64_t* out) noexcept {
  return parse_digits(text.substr(!text.empty() && text[0] == '+'), out);
}

bool parse_float64(std::string_view text, double* out) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool minus = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) ++at;
  const char* const unsigned_begin = at;
  Digits digits;
  at = take_digits(at, end, digits);
  std::int64_t exponent = 0;
  if (at < end && *at == '.') {
    const std::size_t before = digits.count;
    at = take_digits(at + 1, end, digits);
    exponent = -static_cast<std::int64_t>(digits.count - before);
  }
  if (digits.count == 0) {
    const std::string_view word(unsigned_begin, static_cast<std::size_t>(end - unsigned_begin));
    double value = std::numeric_limits<double>::quiet_NaN();
    if (is_word(word, "inf") || is_word(word, "infinity")) {
      value = std::numeric_limits<double>::infinity();
    } else if (!is_word(word, "nan")) {
      return false;
    }
    *out = minus ? -value : value;
    return true;
  }
  if (at < end && (*at | 0x20) == 'e') {
    ++at;
    const bool down = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    Digits power;
    at = take_digits(at, end, power);
    if (power.count == 0) return false;
    const std::int64_t most = power.count > 8 ? 100'000'000 : static_cast<std::int64_t>(power.value);
    exponent += down ? -most : most;
  }
  if (at != end) return false;
  // Both numbers are exact, so one division or product rounds once.
  constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (digits.count <= 19 && digits.value <= std::uint64_t{1} << 53 && exponent >= -22 && exponent <= 22) {
    const auto value = static_cast<double>(digits.value);
    const double scaled = exponent < 0 ? value / kPowers[static_cast<std::size_t>(-exponent)]
                                       : value * kPowers[static_cast<std::size_t>(exponent)];
    *out = minus ? -scaled : scaled;
    return true;
  }
  double value = 0;
  if (!parse_exactly({unsigned_begin, static_cast<std::size_t>(end - unsigned_begin)}, &value)) return false;
  *out = minus ? -value : value;
  return true;
}

bool parse_bool(std::string_view text, bool* out) noexcept {
  const bool value = is_word(text, "true");
  if (!value && !is_word(text, "false")) return false;
  *out = value;
  return true;
}

std::size_t format_int64(std::int64_t value, char* out) noexcept {
  return static_cast<std::size_t>(std::to_chars(out, out + kMaxNumberText, value).ptr - out);
}

std::size_t format_uint64(std::uint64_t value, char* out) noexcept {
  return static_cast<std::size_t>(std::to_chars(out, out + kMaxNumberText, value).ptr - out);
}

namespace {

template <class T>
std::size_t format_float(T value, char* out) noexcept {
  if (std::isnan(value)) {
    std::memcpy(out, "nan", 3);
    return 3;
  }
#if defined(__cpp_lib_to_chars)
  return static_cast<std::size_t>(std::to_chars(out, out + kMaxNumberText, value).ptr - out);
#else
  for (int digits = std::numeric_limits<T>::digits10;; ++digits) {
    std::ostringstream stream;
    stream.imbue(std::locale::classic());
    stream.precision(digits);
    stream << value;
    const std::string text = stream.str();
    double back = 0;
    const bool same = parse_float64(text, &back) && static_cast<T>(back) == value;
    if (same || digits >= std::numeric_limits<T>::max_digits10) {
      std::memcpy(out, text.data(), text.size());
      return text.size();
    }
  }
#endif
}

}  // namespace

std::size_t format_float64(double value, char* out) noexcept { return format_float(value, out); }
std::size_t format_float32(float value, char* out) noexcept { return format_float(value, out); }

}  // namespace cdd
