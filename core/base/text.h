// Numbers from text and back, and whether bytes are UTF-8. No locale, no allocation.
//
// Each parse_ function takes the whole of `text`, no spaces around, and returns false, leaving *out alone,
// where it is not one value of the type. What is read is exact or correctly rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/bytes.h"

namespace cdd {

inline std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where the first byte lies that does not belong to UTF-8; text.size() where there is none. Surrogates and
// overlong forms are no UTF-8.
std::size_t utf8_error(Bytes text) noexcept;

// A sign and digits.
bool parse_int64(std::string_view text, std::int64_t* out) noexcept;
bool parse_uint64(std::string_view text, std::uint64_t* out) noexcept;

// Digits with a point or without, an exponent; nan, inf and infinity in any case. Beyond the largest number
// it is inf, below the least 0.
bool parse_float64(std::string_view text, double* out) noexcept;

// true or false, in any case.
bool parse_bool(std::string_view text, bool* out) noexcept;

// Each writes at most kMaxNumberText characters and returns how many. Floats: the shortest text that reads
// back the same.
inline constexpr std::size_t kMaxNumberText = 40;
std::size_t format_int64(std::int64_t value, char* out) noexcept;
std::size_t format_uint64(std::uint64_t value, char* out) noexcept;
std::size_t format_float64(double value, char* out) noexcept;
std::size_t format_float32(float value, char* out) noexcept;

}  // namespace cdd
