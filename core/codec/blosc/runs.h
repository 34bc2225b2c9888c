// Frames of zstd that look for nothing but a byte that comes again and again: what the high bytes of pixels
// are like. Every reader of zstd takes them.
//
// zstd tries every place for something that came before. Here a mask of all bytes that are the one before
// them says where runs are: each is a match at distance 1, what lies between them gets codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/scratch.h"
#include "core/codec/blosc/literal_code.h"

namespace cdd::blosc {

class RunEncoder {
 public:
  // A frame in `out`, of literals_bound(stream.size()) bytes. Returns its size, 0 where there is none of this
  // kind or it would be over a quarter of the stream: zstd may have a smaller one.
  std::size_t encode(Bytes stream, MutableBytes out);

 private:
  struct Run {
    std::uint32_t literals, repeats;  // bytes before it, and of it
  };
  struct Found {
    Bytes literals;
    const std::byte* runs;
    std::size_t count;
  };

  Found find(Bytes stream);
  static std::byte* put_runs(const Found& found, std::byte* out) noexcept;

  Scratch marks_, literals_, runs_;
  LiteralCode code_;
};

// Bytes that an encoder keeps for streams of this size.
std::size_t run_scratch_bytes(std::size_t stream) noexcept;

}  // namespace cdd::blosc
