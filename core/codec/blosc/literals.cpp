#include "core/codec/blosc/literals.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/codec/blosc/zstd_frame.h"

namespace cdd::blosc {
namespace {

constexpr std::size_t kSamplePieces = 16, kPieceBytes = 128;
constexpr std::uint32_t kSampleBytes = kSamplePieces * kPieceBytes;
// Bytes so near to one that came may come, too, in streams after this one: a code of 11 bits for each of 24
// takes 0.02 bits of every other byte; a stream that has a byte without a code is written twice.
constexpr std::size_t kMostTail = 12;
constexpr std::size_t kBytesForTail = 1024;  // of the stream, for each of them
constexpr std::size_t kParts = 4;            // in which streams are coded
constexpr std::size_t kSectionHeaderBytes = 5;

ByteCounts sample_of(Bytes stream) noexcept {
  Counting counting;
  for (std::size_t p = 0; p < kSamplePieces; ++p) {
    counting.add(stream.subspan((stream.size() - kPieceBytes) * p / (kSamplePieces - 1), kPieceBytes));
  }
  return counting.sums<std::uint16_t>();
}

// 16 log2(n), rounded, for n from 1 on.
std::uint32_t log2_16(std::uint32_t n) noexcept {
  constexpr std::uint8_t kParts[16] = {0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 14, 15};
  const unsigned whole = static_cast<unsigned>(std::bit_width(n)) - 1;
  const unsigned part = whole >= 4 ? n >> (whole - 4) & 15 : n << (4 - whole) & 15;
  return 16 * whole + kParts[part];
}

// Bits that the sampled bytes take at least. A sample looks as if it had fewer than the whole, by 0.72 for
// each kind of byte.
std::uint32_t fewest_bits(const ByteCounts& sample) noexcept {
  const std::uint32_t whole = log2_16(kSampleBytes);
  std::uint32_t sixteenths = 0, kinds = 0;
  for (const std::uint32_t count : sample) {
    if (count == 0) continue;
    sixteenths += count * (whole - log2_16(count));
    ++kinds;
  }
  return sixteenths / 16 + kinds * 3 / 4;
}

}  // namespace

// One that takes hardly more than `wanted` bits; new ones would need a description, too.
const LiteralCode* LiteralEncoder::best_known(const ByteCounts& sample, std::uint32_t wanted) const {
  const LiteralCode* best = nullptr;
  std::uint32_t fewest = ~0u;
  for (std::size_t k = 0; k < known_; ++k) {
    const std::uint32_t bits = codes_[k].bits(sample);
    if (bits >= fewest) continue;
    fewest = bits;
    best = &codes_[k];
  }
  return fewest <= wanted + wanted / 64 + kSampleBytes / 16 ? best : nullptr;
}

const LiteralCode* LiteralEncoder::make(Bytes stream) {
  Counting counting;
  counting.add(stream);
  LiteralCode& code = codes_[next_];
  const std::size_t tail = std::min(stream.size() / kBytesForTail, kMostTail);
  if (!code.make(counting.sums<std::uint32_t>(), tail)) {
    known_ = next_ = 0;
    return nullptr;
  }
  next_ = (next_ + 1) % kMostKnown;
  known_ = std::min(known_ + 1, kMostKnown);
  return &code;
}

std::size_t LiteralEncoder::encode(Bytes stream, MutableBytes out) {
  const std::size_t n = stream.size();
  if (n < kLeastLiterals || n > kMostLiterals) return 0;
  const ByteCounts sample = sample_of(stream);
  const std::uint32_t wanted = fewest_bits(sample);
  // As zstd has it, less than a 64th is no gain.
  if (wanted > 8 * kSampleBytes - kSampleBytes / 8) return n;
  std::byte* const block = put_frame_header(n, out.data());
  std::byte* const literals = block + kBlockHeaderBytes + kSectionHeaderBytes;
  std::byte* end = nullptr;
  if (const LiteralCode* const known = best_known(sample, wanted)) end = known->put(stream, kParts, literals);
  if (end == nullptr) {
    const LiteralCode* const made = make(stream);
    if (made == nullptr) return 0;
    end = made->put(stream, kParts, literals);
  }
  const auto stored = static_cast<std::uint64_t>(end - literals);
  *end++ = std::byte{0};  // no sequences
  if (static_cast<std::size_t>(end - out.data()) >= n) return n;
  const std::uint64_t section = 2 | 3 << 2 | std::uint64_t{n} << 4 | stored << 22;
  std::memcpy(block + kBlockHeaderBytes, &section, kSectionHeaderBytes);
  put_block_header(Block::Compressed, kSectionHeaderBytes + stored + 1, block);
  return static_cast<std::size_t>(end - out.data());
}

bool is_spread(Bytes stream) noexcept {
  constexpr std::uint32_t kSpreadBits = 5;  // a byte
  return stream.size() >= kLeastLiterals && fewest_bits(sample_of(stream)) >= kSpreadBits * kSampleBytes;
}

bool is_repeated(Bytes stream) noexcept {
  return std::memcmp(stream.data(), stream.data() + 1, stream.size() - 1) == 0;
}

std::size_t repeat_frame(Bytes stream, MutableBytes out) {
  const std::size_t n = stream.size();
  if (n < kLeastLiterals || n > kMostLiterals) return 0;
  if (!is_repeated(stream)) return 0;
  std::byte* const block = put_frame_header(n, out.data());
  put_block_header(Block::Repeat, n, block);
  block[kBlockHeaderBytes] = stream[0];
  return static_cast<std::size_t>(block + kBlockHeaderBytes + 1 - out.data());
}

std::size_t literals_bound(std::size_t bytes) noexcept {
  return kFrameHeaderMost + kBlockHeaderBytes + kSectionHeaderBytes + 128 + 2 * (kParts - 1) +
         bytes * simd::kMostByteCodeBits / 8 + 4 * 16;
}

}  // namespace cdd::blosc
