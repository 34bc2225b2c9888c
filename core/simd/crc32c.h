// CRC-32C (Castagnoli), the check of zarr's crc32c codec and of shard indexes.
//
// Total and noexcept; every SIMD target gives the value of `reference`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cdd::simd {

// The CRC of `before`'s bytes followed by these; `before` is the CRC so far, 0 of nothing.
std::uint32_t crc32c(const std::byte* bytes, std::size_t n, std::uint32_t before = 0) noexcept;

namespace reference {
std::uint32_t crc32c(const std::byte* bytes, std::size_t n, std::uint32_t before = 0) noexcept;
}

}  // namespace cdd::simd
