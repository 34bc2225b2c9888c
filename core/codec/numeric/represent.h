// NUMERIC, items to integers: loads one stream of a chunk and finds the representation that makes it small.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codec/numeric/format.h"

namespace cdd::numeric {

// How a stream's items became integers; with them, what a decoder needs.
struct Represented {
  Representation representation = Representation::Integer;
  unsigned exponent = 0;
  std::uint64_t step = 1;
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> table;            // if any, integers are indices into it
  std::vector<std::uint64_t> patch_positions;  // values that the integers do not give, ascending
  std::vector<std::uint64_t> patch_bits;

  // Whether differences between integers of the two are meaningful.
  bool comparable(const Represented& other) const noexcept {
    return table.empty() && other.table.empty() && representation == other.representation &&
           exponent == other.exponent && step == other.step && offset == other.offset;
  }
};

// Fills values[0, n) from the items at rows, rows + stride items, ... T as in decode.cpp.
template <class T>
Represented represent(const Items& items, const std::byte* rows, std::size_t stride, std::size_t n,
                      T* values);

extern template Represented represent(const Items&, const std::byte*, std::size_t, std::size_t,
                                      std::uint32_t*);
extern template Represented represent(const Items&, const std::byte*, std::size_t, std::size_t,
                                      std::uint64_t*);

}  // namespace cdd::numeric
