#include "core/codec/blosc/frame.h"

#include <algorithm>
#include <cstring>

#include "core/codec/blosc/block_encoder.h"
#include "core/codec/blosc/ways.h"

namespace cdd::blosc {
namespace {

using zarr::BloscShuffle;

void put_header(std::byte* at, unsigned flags, const Options& options, std::size_t bytes, std::size_t block,
                std::size_t stored) {
  const unsigned format = options.compressor == Compressor::Zstd ? kZstdFormat : kLz4Format;
  at[0] = std::byte{kVersion};
  at[1] = std::byte{kCodecVersion};
  at[2] = static_cast<std::byte>(flags | format << 5);
  at[3] = static_cast<std::byte>(options.item_bytes);
  store<std::uint32_t>(at + 4, static_cast<std::uint32_t>(bytes));
  store<std::uint32_t>(at + 8, static_cast<std::uint32_t>(block));
  store<std::uint32_t>(at + 12, static_cast<std::uint32_t>(stored));
}

// As encode() does; returns `most_bytes`, with something in `out`, where the frame would be no smaller.
std::size_t encode_within(std::size_t most_bytes, std::span<const Bytes> parts, std::size_t bytes,
                          const Way& way, MutableBytes out) {
  const Options& options = way.options;
  BlockEncoder encoder(options, way.plan);
  const Blocks blocks = cut(bytes, options, way.plan.layout);
  unsigned flags = blocks.is_split ? 0 : kUnsplit;
  if (options.shuffle == BloscShuffle::Byte && options.item_bytes > 1) flags |= kByteShuffle;
  if (options.shuffle == BloscShuffle::Bit) flags |= kBitShuffle;
  PartReader reader(parts);
  std::byte* at = out.data() + kHeaderBytes + 4 * blocks.count();
  const std::byte* const most = out.data() + most_bytes;
  for (std::size_t i = 0; i < blocks.count() && at < most; ++i) {
    store<std::uint32_t>(out.data() + kHeaderBytes + 4 * i, static_cast<std::uint32_t>(at - out.data()));
    at = encoder.put(reader, blocks.size_of(i), blocks.streams_of(i),
                     out.subspan(static_cast<std::size_t>(at - out.data())));
  }
  if (at < most) {
    const auto stored = static_cast<std::size_t>(at - out.data());
    put_header(out.data(), flags, options, bytes, blocks.block, stored);
    return stored;
  }
  if (most_bytes < bytes + kHeaderBytes) return most_bytes;
  put_header(out.data(), flags | kStored, options, bytes, blocks.block, bytes + kHeaderBytes);
  at = out.data() + kHeaderBytes;
  for (const Bytes part : parts) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return bytes + kHeaderBytes;
}

// Of any layout.
std::size_t longest_block(std::size_t bytes, const Options& options) {
  return std::max({cut(bytes, options, Layout::Long).block, cut(bytes, options, Layout::Whole).block,
                   cut(bytes, options, Layout::Plain).block});
}

// One context has all levels in turn, and stays as large as any of them needs. It grows from samples to
// blocks, and the system does not get back what it had for samples.
std::size_t slow_context_bytes(std::size_t block, const Options& options) {
  std::size_t of_block = 0, of_sample = 0;
  for (const int level : kSlowLevels) {
    if (level > options.level) break;
    of_block = std::max(of_block, zstd_context_bytes(level, block));
    of_sample = std::max(of_sample, zstd_context_bytes(level, kSampledBytes));
  }
  return block > kSampledBytes ? of_block + of_sample : of_block;
}

}  // namespace

std::size_t encode_bound(std::size_t bytes, const Options& options) {
  const Options fast = at_level_1(options);
  const std::size_t blocks = std::max(cut(bytes, fast).count(), cut(bytes, fast, Layout::Plain).count());
  const std::size_t of_block = 4 + 4 * kMaxStreams;
  return kHeaderBytes + bytes + blocks * of_block + stream_bound(longest_block(bytes, options), options);
}

std::size_t scratch_bytes(std::size_t bytes, const Options& options) {
  const std::size_t block = longest_block(bytes, options), tried = std::min(block, kSampledBytes);
  return (is_slow(options) ? slow_context_bytes(block, options) : 0) +
         (options.shuffle == BloscShuffle::Bit ? 2 : 1) * block +
         (options.compressor == Compressor::Zstd ? tried + stream_bound(tried, options) : 0) +
         plan_scratch_bytes(std::min(block, std::size_t{64 << 10})) +
         run_scratch_bytes(std::min(block, kMostLiterals));
}

std::size_t encode(std::span<const Bytes> parts, std::size_t bytes, const Options& options,
                   MutableBytes out) {
  const Ways ways = ways_of(parts, bytes, options);
  std::size_t best = 0, least = bytes + kHeaderBytes;
  for (std::size_t i = 0; i < ways.count; ++i) {
    const std::size_t stored = encode_within(least, parts, bytes, ways.of[i], out);
    if (stored >= least && i != 0) continue;
    best = i;
    least = stored;
  }
  if (best + 1 == ways.count) return least;
  return encode_within(bytes + kHeaderBytes, parts, bytes, ways.of[best], out);
}

}  // namespace cdd::blosc
