// The runs of rows, each to its tile.
//
// Pure kernels on plain pointers: total, noexcept, no alignment needed. Every SIMD target gives the bytes of
// `reference`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// Cuts each of `rows` rows of `row_bytes`, which follow one another, into runs of `run_bytes` (the last may
// be shorter): run j of row r goes to tiles[j] + offset + r * run_bytes. Where lines of the cache are written
// whole, they go past the caches: nobody reads a tile before it is full.
void scatter_rows(const std::byte* rows_at, std::size_t rows, std::size_t row_bytes, std::size_t run_bytes,
                  std::byte* const* tiles, std::size_t offset) noexcept;

namespace reference {
void scatter_rows(const std::byte* rows_at, std::size_t rows, std::size_t row_bytes, std::size_t run_bytes,
                  std::byte* const* tiles, std::size_t offset) noexcept;
}  // namespace reference

}  // namespace cdd::simd
