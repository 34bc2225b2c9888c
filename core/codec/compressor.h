// The general-purpose compressors: bytes to bytes, no knowledge of arrays. zstd and LZ4 are seen only here.
// Contexts live as long as their thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"

namespace cdd {

enum class Compressor : std::uint8_t { None = 0, Lz4 = 1, Zstd = 2 };

// Most bytes that compress may write. InvalidArgument when `bytes` is over what the compressor can take.
std::size_t compress_bound(Compressor compressor, std::size_t bytes);

// Compresses `in` into `out` (at least compress_bound bytes) and returns the size. `level` is zstd's, -7 to
// 22. LZ4 has negative ones alone, its accelerations: all others are -1. `in` and `out` do not overlap.
// `checksum` adds zstd's own content checksum.
std::size_t compress(Compressor compressor, Bytes in, MutableBytes out, int level, bool checksum = false);

// Bytes of the context that a thread keeps for compress() with zstd, once it had contents of `bytes`.
std::size_t zstd_context_bytes(int level, std::size_t bytes);

// How zstd's fastest level looks for what came before.
enum class Search : std::uint8_t {
  Level1,    // as level 1 does
  Long,      // for matches of 7 bytes: fewer of them, and less to write down
  Literals,  // hardly: bytes are given codes, as their frequencies ask for
  // For streams of 64 KB: it remembers more places, so that fewer looks are in vain. As level 1 from every
  // second place on; for matches of 7 bytes from every third to fifth.
  Every2nd,
  Every3rd,
  Every4th,
  Every5th,
};
// A frame of zstd, at about level 1.
std::size_t compress_zstd(Search search, Bytes in, MutableBytes out);

// Decompresses exactly out.size() bytes; anything else is Error{Corrupt}. Safe for untrusted input.
void decompress(Compressor compressor, Bytes in, MutableBytes out);

// Decompresses the first out.size() bytes of an LZ4 block that holds at least as many, and looks no further.
void decompress_lz4_front(Bytes in, MutableBytes out);

// The decompressed size that a zstd frame promises; Error{Corrupt} when it promises none.
std::uint64_t zstd_content_bytes(Bytes frame);

// Writes a zstd skippable frame of exactly `out.size()` bytes, 8 or more: padding that decompress passes
// over.
void put_zstd_padding(MutableBytes out) noexcept;

}  // namespace cdd
