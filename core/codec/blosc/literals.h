// Frames of zstd that give every byte a code and look for nothing that came before: what is left of noise.
// Every reader of zstd takes them.
//
// zstd itself counts each stream and makes its codes anew, which takes as long as writing them. Streams of
// one tile are most often alike: a sample of each says whether codes that were made for another are as good.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/codec/blosc/literal_code.h"

namespace cdd::blosc {

// Streams of other sizes are left to zstd: a frame here is one block of it.
inline constexpr std::size_t kLeastLiterals = 4096, kMostLiterals = 128 << 10;

class LiteralEncoder {
 public:
  // As new: what comes does not depend on what was. Bytes of a tile are the same wherever it is packed.
  void forget() noexcept { known_ = next_ = 0; }

  // A frame in `out`, of literals_bound(stream.size()) bytes. Returns its size, stream.size() where that
  // would be no less, 0 where there is no frame of this kind: zstd may have one.
  std::size_t encode(Bytes stream, MutableBytes out);

 private:
  const LiteralCode* best_known(const ByteCounts& sample, std::uint32_t wanted) const;
  const LiteralCode* make(Bytes stream);

  static constexpr std::size_t kMostKnown = 8;
  std::array<LiteralCode, kMostKnown> codes_;
  std::size_t known_ = 0, next_ = 0;
};

// Whether bytes are of so many kinds, as often each, that a search for bytes that came before would hardly
// find four in a row by chance: by a sample, of kLeastLiterals bytes at least.
bool is_spread(Bytes stream) noexcept;

// Whether a stream is one byte again and again.
bool is_repeated(Bytes stream) noexcept;

// A frame of a stream that is one byte again and again; 0 for any other, and where encode() has none for its
// size.
std::size_t repeat_frame(Bytes stream, MutableBytes out);

// Most bytes that encode() writes, its working room included.
std::size_t literals_bound(std::size_t bytes) noexcept;

}  // namespace cdd::blosc
