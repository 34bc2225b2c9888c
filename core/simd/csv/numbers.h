// Columns of numbers from CSV text: fields of at most 16 characters, 16 bytes a step whatever their length.
//
// What a field looks like is decided by the data, not by branches: prices of 5 and of 8 characters cost the
// same. A field that is anything else (empty, quoted, longer, with an exponent) is left to the caller, who is
// told which. Every SIMD target gives what `reference` gives.
#pragma once

#include "core/simd/csv/csv.h"

namespace cdd::simd {

struct CsvNumbers {
  CsvColumn column;    // the 16 bytes before the end of each field may be read, whatever they are
  bool minus = true;   // may stand before the digits
  bool plain = false;  // leave 007 and -0, whose text says more than the number
};

// Writes int64 items of the fields that are 1 to 16 digits and a minus; the numbers of the other rows go to
// `left`, which has room for all. Returns how many those are.
std::size_t parse_csv_integers(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept;

// Float64 items of the fields of at most 15 digits with a point or without; correctly rounded.
std::size_t parse_csv_decimals(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept;

namespace reference {
std::size_t parse_csv_integers(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept;
std::size_t parse_csv_decimals(const CsvNumbers& numbers, std::byte* items, std::uint32_t* left) noexcept;
}  // namespace reference

}  // namespace cdd::simd
