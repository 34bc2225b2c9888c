// The two hashes of the format. check32 guards against damage and torn writes (XXH3, keyed by the file's
// salt); hash128 names content (BLAKE3). Neither is a defence against somebody who can rewrite the file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace cdd {

// What a check32 covers. A record can never pass for a slot, nor chunk 3 for chunk 4, nor this file's bytes
// for another's: the domain, the key and the salt all enter the seed.
enum class CheckDomain : std::uint8_t { Slot = 'S', Record = 'R' };

// Low 32 bits of XXH3_64bits_withSeed(bytes, salt ^ domain << 56 ^ key); `salt` is the first 8 bytes of the
// file's salt, `key` the chunk number.
std::uint32_t check32(CheckDomain domain, std::uint64_t salt, std::uint64_t key, Bytes bytes) noexcept;

// XXH3_64bits of the bytes, for formats without a salt.
std::uint64_t hash64(Bytes bytes) noexcept;

using Hash128 = std::array<std::uint64_t, 2>;

// The first 16 bytes of BLAKE3, as two little-endian integers.
Hash128 hash128(Bytes bytes) noexcept;

// Two hexadecimal digits a byte, as names are shown.
std::string hex(Bytes bytes);
// The bytes of such a text, as many as `out` has. False, with `out` in any state, for anything else.
bool parse_hex(std::string_view text, MutableBytes out) noexcept;

}  // namespace cdd
