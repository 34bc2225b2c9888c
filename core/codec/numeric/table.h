// NUMERIC, few distinct integers: values become indices into an ascending table of those that occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cdd::numeric {

// Replaces values[0, n), `width` of them to a row, by indices if that promises to be clearly smaller, table
// included. Returns the table, ascending as signed numbers; empty, with the values untouched, if it does not.
template <class T>
std::vector<T> take_table(std::size_t n, std::size_t width, T* values);

extern template std::vector<std::uint32_t> take_table(std::size_t, std::size_t, std::uint32_t*);
extern template std::vector<std::uint64_t> take_table(std::size_t, std::size_t, std::uint64_t*);

// Bits a value takes by the best of a few simple predictors, from some runs of neighbours.
template <class T>
double rough_bits(std::size_t n, std::size_t width, const T* values) noexcept;

extern template double rough_bits(std::size_t, std::size_t, const std::uint32_t*) noexcept;
extern template double rough_bits(std::size_t, std::size_t, const std::uint64_t*) noexcept;

}  // namespace cdd::numeric
