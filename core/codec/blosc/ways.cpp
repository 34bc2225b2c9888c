#include "core/codec/blosc/ways.h"

#include <algorithm>

#include "core/codec/blosc/block_encoder.h"

namespace cdd::blosc {
namespace {

using zarr::BloscShuffle;

// Tiles up to this size are packed in every way. A look at larger ones pays where they are as large as these.
constexpr std::size_t kMostPackedBytes = 128 << 10, kLeastPlannedBytes = 256 << 10;
constexpr std::size_t kLeastLongBytes = 1 << 20;  // and one for longer streams

// LZ4 remembers twice as many places of streams that are shorter.
constexpr std::size_t kManyPlacesBytes = (64 << 10) + 11;

// Bytes of one of these blocks, shuffled.
Bytes block_at(std::span<const Bytes> parts, const Blocks& blocks, std::size_t i, const Options& options) {
  PartReader reader(parts);
  reader.next(i * blocks.block, [](Bytes) {});
  return shuffled_block(reader, blocks.size_of(i), options);
}

// Bytes that one of these blocks takes by a plan.
std::size_t tried_size(std::span<const Bytes> parts, const Blocks& of, std::size_t tried,
                       const Options& options, const StreamPlan& plan) {
  BlockEncoder encoder(options, plan);
  PartReader reader(parts);
  reader.next(tried * of.block, [](Bytes) {});
  Blocks blocks = cut(of.bytes, options, plan.layout);
  blocks.bytes = of.size_of(tried);
  blocks.block = std::min(blocks.block, blocks.bytes);
  std::size_t stored = 0;
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    const std::size_t n = blocks.size_of(i);
    const std::size_t room = n + 4 * kMaxStreams + stream_bound(n, options);
    const MutableBytes out = block_buffers().tried.get(room).first(room);
    stored += static_cast<std::size_t>(encoder.put(reader, n, blocks.streams_of(i), out) - out.data());
  }
  return stored;
}

// Of a search of every stream.
StreamPlan search_plan(Layout layout) {
  StreamPlan plan;
  plan.is_made = true;
  plan.layout = layout;
  return plan;
}

// The block that says what the others are like.
std::size_t middle_of(const Blocks& blocks) {
  return blocks.size_of(blocks.count() / 2) == blocks.block ? blocks.count() / 2 : 0;
}

// Of two plans the one that gives some of these blocks fewer bytes, one of the middle at least.
StreamPlan smaller_of(const StreamPlan& a, const StreamPlan& b, std::span<const Bytes> parts,
                      const Blocks& blocks, const Options& options) {
  // Without planes of bytes tiles are less alike from end to end.
  const std::size_t tries =
      options.shuffle == BloscShuffle::Byte ? 1 : std::min<std::size_t>(3, blocks.count());
  std::size_t of_a = 0, of_b = 0;
  for (std::size_t k = 0; k < tries; ++k) {
    const std::size_t i = tries == 1 ? middle_of(blocks) : blocks.count() * (2 * k + 1) / (2 * tries);
    of_a += tried_size(parts, blocks, i, options, a);
    of_b += tried_size(parts, blocks, i, options, b);
  }
  return of_b < of_a ? b : a;
}

// For zstd's first level, from streams of the middle of a tile. A try of whole blocks takes a tenth of the
// time of a large tile, which only one that shrinks much gains back.
StreamPlan make_plan(std::span<const Bytes> parts, std::size_t bytes, const Options& options) {
  StreamPlan plan;
  const Blocks blocks = cut(bytes, options, bytes >= kLeastLongBytes ? Layout::Long : Layout::Short);
  const std::size_t middle = middle_of(blocks), streams = blocks.streams_of(middle);
  const Bytes block = block_at(parts, blocks, middle, options);
  const bool is_by_bytes = options.shuffle == BloscShuffle::Byte;
  const bool tries_whole = !is_by_bytes || may_be_whole(block, streams, bytes < kLeastLongBytes ? 2 : 6);
  if (bytes >= kLeastPlannedBytes && blocks.size_of(middle) == blocks.block) {
    plan = plan_streams(block, streams, kShortStreamBytes, options.skips_noise, stream_encoders());
  }
  if (!is_by_bytes || !plan.is_made || plan.may_be_plain) {
    plan = smaller_of(plan, search_plan(Layout::Plain), parts, cut(bytes, options, plan.layout), options);
  }
  if (!tries_whole) return plan;
  return smaller_of(plan, search_plan(Layout::Whole), parts, cut(bytes, options, Layout::Whole), options);
}

// The level of zstd from 2 to the one asked that packs a part of the tile best by a plan; 1 where none does
// better than level 1 with its own.
int best_level(std::span<const Bytes> parts, std::size_t bytes, const Options& options,
               const StreamPlan& fast, const StreamPlan& plan) {
  const std::size_t unit = 8 * options.item_bytes;
  const Blocks blocks{bytes, std::min(bytes, kSampledBytes / unit * unit), options.item_bytes, false};
  const std::size_t tried = middle_of(blocks);
  std::size_t least = tried_size(parts, blocks, tried, at_level_1(options), fast);
  int best = 1;
  Options of_level = options;
  for (const int level : kSlowLevels) {
    if (level > options.level) break;
    of_level.level = level;
    const std::size_t size = tried_size(parts, blocks, tried, of_level, plan);
    if (size > least) continue;
    least = size;
    best = level;
  }
  return best;
}

// Of whole blocks, as c-blosc has them.
StreamPlan plain_plan() {
  StreamPlan plan;
  plan.layout = Layout::Plain;
  return plan;
}

// c-blosc shuffles no bits of a block that is no multiple of 8 items.
bool leaves_bits(std::size_t bytes, const Options& options) {
  return options.shuffle == BloscShuffle::Bit && bytes / options.item_bytes % 8 != 0;
}

// Longer blocks are mostly smaller, but not always where planes of bits, or of items of 16 bytes, lie far
// apart in them: there, and where c-blosc splits items without a shuffle, its cut is tried, too.
Ways lz4_ways(std::size_t bytes, const Options& options) {
  Ways ways;
  const std::size_t item = options.item_bytes;
  const bool splits_short =
      options.shuffle == BloscShuffle::None && item > 1 && bytes < kManyPlacesBytes * item;
  const bool is_wide = options.shuffle != BloscShuffle::None && item > 8;
  if (options.shuffle == BloscShuffle::Bit || is_wide || splits_short) ways.add(options, plain_plan());
  ways.add(options, {});
  return ways;
}

}  // namespace

Ways ways_of(std::span<const Bytes> parts, std::size_t bytes, const Options& options) {
  if (options.compressor == Compressor::Lz4) return lz4_ways(bytes, options);
  Ways ways;
  const Options fast = at_level_1(options);
  if (fast.level < 1) {
    ways.add(fast, {});
  } else if (bytes > kMostPackedBytes) {
    ways.add(fast, make_plan(parts, bytes, fast));
  } else {
    ways.add(fast, search_plan(Layout::Plain));
    ways.add(fast, search_plan(Layout::Whole));
    ways.add(fast, {});
  }
  if (!is_slow(options)) return ways;
  Options slow = options;
  const StreamPlan of_fast = ways.of[0].plan;
  slow.level = best_level(parts, bytes, options, of_fast, {});
  if (slow.level > 1) ways.add(slow, {});
  if (leaves_bits(bytes, options) && cut(bytes, options, Layout::Plain).count() == 1) {
    // All of a larger tile is tried: a part of it would be of whole planes.
    slow.level =
        bytes > kSampledBytes ? options.level : best_level(parts, bytes, options, of_fast, plain_plan());
    if (slow.level > 1) ways.add(slow, plain_plan());
  }
  return ways;
}

}  // namespace cdd::blosc
