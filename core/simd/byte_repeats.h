// Where bytes are those before them: what runs are found by.
//
// A pure kernel: total, noexcept, no alignment needed. Every SIMD target gives the bytes of `reference`.
#pragma once

#include <cstddef>

namespace cdd::simd {

// Bit i % 8 of marks[i / 8] says whether bytes[i] is bytes[i - 1], for i from 1 to n - 1; all other bits of
// the (n + 7) / 8 bytes are 0.
void mark_repeats(const std::byte* bytes, std::size_t n, std::byte* marks) noexcept;

namespace reference {
void mark_repeats(const std::byte* bytes, std::size_t n, std::byte* marks) noexcept;
}  // namespace reference

}  // namespace cdd::simd
