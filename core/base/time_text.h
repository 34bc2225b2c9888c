// Times from text and back: ISO 8601 and numbers of units, as nanoseconds since 1970. No locale, no time zone
// of the machine.
//
// As in text.h, the whole of `text` is taken, and false leaves *out alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cdd {

// Nanoseconds since 1970 of an ISO 8601 time: 2024-02-29, 2024-02-29T12:30, 2024-02-29 12:30:15.123456789,
// with Z or an offset as +01:00; without one it is UTC. False for times that int64 nanoseconds do not hold.
bool parse_time_ns(std::string_view text, std::int64_t* out) noexcept;

// Nanoseconds of a number of units since 1970, 1.5 as well; a unit has 1, 10^3, 10^6 or 10^9 nanoseconds.
// False for more decimals than there are, and for what int64 nanoseconds do not hold.
bool parse_epoch_ns(std::string_view text, std::int64_t unit_ns, std::int64_t* out) noexcept;

// ISO 8601 with as many decimals as there are, in groups of three. Writes at most 30 characters, returns how
// many.
std::size_t format_time_ns(std::int64_t value, char* out) noexcept;

}  // namespace cdd
