#include "core/codec/blosc/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/of_thread.h"
#include "core/codec/blosc/blocks.h"
#include "core/simd/bit_planes.h"
#include "core/simd/planes.h"

namespace cdd::blosc {
namespace {

using zarr::BloscShuffle;

constexpr std::size_t kBlockBytes = 256 << 10;
// Others give LZ4 streams of 128 KB, up to blocks of 1 MB. Blocks that are cut equal may be a little shorter
// than wanted.
constexpr std::size_t kLz4StreamBytes = 192 << 10, kWideBlockBytes = 1536 << 10;
constexpr std::size_t kShortStreamBytes = 16 << 10, kLongStreamBytes = 64 << 10;
constexpr std::size_t kWholeBlockBytes = 256 << 10;
constexpr std::size_t kSlowBlockBytes = 2 << 20;  // above level 1, where zstd is to find what it can

// Levels of zstd that are tried above 1: those that blosc's have, and one before them. One that takes longer
// is not always smaller, so that a level tries all up to it.
constexpr int kSlowLevels[] = {2, 3, 5, 7, 9, 11, 13, 15, 22};

// Each stream of zstd has headers: several shorter ones take more than all their bytes as one.
constexpr std::size_t kLeastSplitZstd = 4096;

// A look at a tile pays where it is as large as this.
constexpr std::size_t kLeastTriedBytes = 32 << 10, kLeastPlannedBytes = 256 << 10;
constexpr std::size_t kLeastLongBytes = 1 << 20;  // and one for longer streams

StreamEncoders& encoders() {
  thread_local OfThread<StreamEncoders> own;
  return own.value;
}

bool is_slow(const Options& options) { return options.compressor == Compressor::Zstd && options.level > 1; }

Options at_level_1(Options options) {
  options.level = std::min(options.level, 1);
  return options;
}

bool splits(std::size_t block, const Options& options, Layout layout) {
  // What is found in one byte of the items helps with the next.
  if (is_slow(options) || layout == Layout::Whole) return false;
  if (options.shuffle == BloscShuffle::None || options.item_bytes == 1) return false;
  return options.compressor == Compressor::Lz4 || block / options.item_bytes >= kLeastSplitZstd;
}

// Equal blocks, since shorter ones are not split, and of a multiple of 8 items, since others have no bits to
// shuffle. Where the size cannot be cut so, a last one of few items is shorter.
Blocks cut(std::size_t bytes, const Options& options, Layout layout = Layout::Short) {
  const std::size_t unit = 8 * options.item_bytes;
  std::size_t most = kBlockBytes;
  if (options.compressor == Compressor::Lz4) {
    const std::size_t wide = std::min(kLz4StreamBytes * options.item_bytes, kWideBlockBytes);
    const std::size_t least = options.item_bytes > 2 ? wide : kBlockBytes;
    const std::size_t count = std::max<std::size_t>(bytes / least, 1);
    most = ((bytes + count - 1) / count + unit - 1) / unit * unit;
  } else {
    const std::size_t stream = layout == Layout::Short ? kShortStreamBytes : kLongStreamBytes;
    most = is_slow(options) ? kSlowBlockBytes
           : layout == Layout::Whole
               ? kWholeBlockBytes
               : std::clamp(stream * options.item_bytes, 2 * kShortStreamBytes, kBlockBytes);
  }
  const std::size_t fewest = (bytes + most - 1) / most;
  const bool is_one = bytes <= most && (options.shuffle != BloscShuffle::Bit || bytes < unit);
  std::size_t block = is_one ? bytes : bytes / fewest / unit * unit;
  for (std::size_t n = fewest; n <= 2 * fewest; ++n) {
    if (bytes % n != 0 || bytes / n % unit != 0) continue;
    block = bytes / n;
    break;
  }
  return {bytes, block, options.item_bytes, splits(block, options, layout)};
}

// Walks the parts, which are read from front to back.
class PartReader {
 public:
  explicit PartReader(std::span<const Bytes> parts) : parts_(parts) {}

  // Calls visit(piece) for the next `bytes` bytes, in pieces that lie together.
  template <class Visit>
  void next(std::size_t bytes, Visit&& visit) {
    while (bytes != 0) {
      const Bytes piece = parts_.front().subspan(at_, std::min(bytes, parts_.front().size() - at_));
      if (!piece.empty()) visit(piece);
      bytes -= piece.size();
      at_ += piece.size();
      if (at_ == parts_.front().size()) {
        parts_ = parts_.subspan(1);
        at_ = 0;
      }
    }
  }
  std::size_t left_together() const noexcept { return parts_.front().size() - at_; }

 private:
  std::span<const Bytes> parts_;
  std::size_t at_ = 0;
};

void split_items(Bytes items, std::size_t item, std::byte* planes, std::size_t stride) {
  const std::size_t n = items.size() / item;
  if (item <= 8 && std::has_single_bit(item)) {
    simd::split_planes(items.data(), n, item, planes, stride);
  } else {
    simd::reference::split_planes(items.data(), n, item, planes, stride);
  }
}

// The next `size` bytes, shuffled: each stream begins `stride` bytes after the one before.
void split_next(PartReader& parts, std::size_t size, std::size_t item, std::byte* streams,
                std::size_t stride) {
  std::size_t done = 0;
  parts.next(size, [&](Bytes piece) {
    split_items(piece, item, streams + done / item, stride);
    done += piece.size();
  });
}

// The bytes of the next block, shuffled; parts hold whole items.
Bytes shuffled_block(PartReader& parts, std::size_t size, const Options& options) {
  const std::size_t item = options.item_bytes;
  const bool to_bits = options.shuffle == BloscShuffle::Bit && has_bit_planes(size, item);
  const bool to_bytes = (to_bits || options.shuffle == BloscShuffle::Byte) && item > 1;
  if (!to_bits && !to_bytes && parts.left_together() >= size) {
    Bytes block;
    parts.next(size, [&](Bytes piece) { block = piece; });
    return block;
  }
  const MutableBytes planes = block_buffers().bytes.get(size).first(size);
  if (to_bytes) {
    split_next(parts, size, item, planes.data(), size / item);
  } else {
    std::size_t done = 0;
    parts.next(size, [&](Bytes piece) {
      std::memcpy(planes.data() + done, piece.data(), piece.size());
      done += piece.size();
    });
  }
  if (!to_bits) return planes;
  const MutableBytes bits = block_buffers().shuffled.get(size).first(size);
  const std::size_t n = size / item;
  for (std::size_t b = 0; b < item; ++b) simd::split_bits(planes.data() + b * n, n, bits.data() + b * n);
  return bits;
}

std::size_t stream_bound(std::size_t bytes, const Options& options) {
  return std::max(compress_bound(options.compressor, bytes), literals_bound(bytes));
}

std::size_t compress_planned(const StreamPlan::OfStream& plan, Bytes stream, MutableBytes out) {
  if (const std::size_t stored = repeat_frame(stream, out)) return stored;
  std::size_t stored = 0;
  if (plan.way == StreamPlan::Way::Runs) stored = encoders().runs.encode(stream, out);
  if (plan.way == StreamPlan::Way::Codes) stored = encoders().literals.encode(stream, out);
  if (stored != 0) return stored;
  return compress_zstd(plan.search, stream, out);
}

// The smallest of all levels up to this one.
std::size_t compress_slowly(int level, Bytes stream, MutableBytes out) {
  const MutableBytes other = block_buffers().tried.get(out.size()).first(out.size());
  std::size_t least = out.size();
  for (const int tried : kSlowLevels) {
    if (tried > level) break;
    const std::size_t stored = compress(Compressor::Zstd, stream, other, tried);
    if (stored >= least) continue;
    least = stored;
    std::memcpy(out.data(), other.data(), stored);
  }
  return least;
}

// How the streams of one frame are compressed, and whether they are at all.
struct Streams {
  const Options& options;
  StreamPlan plan;
  Lz4Tries tries;

  // Whether the first stream of the next block is most likely stored as it is.
  bool first_is_stored() const noexcept {
    if (plan.is_made) return plan.of[0].way == StreamPlan::Way::Stored;
    return options.compressor == Compressor::Lz4 && tries.may_pass(0);
  }
  bool is_tried(Bytes stream, std::size_t s) noexcept {
    if (plan.is_made) return plan.of[s].way != StreamPlan::Way::Stored;
    if (options.compressor == Compressor::Lz4) return tries.is_due(stream, s);
    return !options.skips_noise || is_slow(options) || !is_noise(stream);
  }
  std::size_t compressed(Bytes stream, std::size_t s, MutableBytes room) {
    if (plan.is_made) return compress_planned(plan.of[s], stream, room);
    if (is_slow(options)) return compress_slowly(options.level, stream, room);
    const std::size_t stored = compress(options.compressor, stream, room, options.level);
    if (options.compressor == Compressor::Lz4) tries.note(s, stored < stream.size());
    return stored;
  }

  // One stream, the s-th of its block: its stored size, then its bytes, as they are where that is no more.
  // It may lie there already. Returns the end.
  std::byte* put(Bytes stream, std::size_t s, std::byte* at) {
    std::size_t stored = stream.size();
    const std::byte* from = stream.data();
    if (is_tried(stream, s)) {
      if (from == at + 4) {
        const MutableBytes aside = block_buffers().bytes.get(stream.size()).first(stream.size());
        std::memcpy(aside.data(), from, stream.size());
        stream = aside;
      }
      stored = std::min(stored, compressed(stream, s, {at + 4, stream_bound(stream.size(), options)}));
      from = stream.data();
    }
    if (stored == stream.size() && from != at + 4) std::memcpy(at + 4, from, stored);
    store<std::uint32_t>(at, static_cast<std::uint32_t>(stored));
    return at + 4 + stored;
  }

  // All streams of the next block. Where the first one will be stored, it is shuffled to where it goes, and
  // the others to where none is written before it has been read. Returns the end.
  std::byte* put_block(PartReader& reader, std::size_t size, std::size_t count, MutableBytes out) {
    const std::size_t length = size / count;
    const std::size_t stride = length + 4 + stream_bound(length, options);
    const bool in_place = options.shuffle == BloscShuffle::Byte && count > 1 && first_is_stored() &&
                          out.size() >= 4 + count * stride;
    std::byte* at = out.data();
    if (in_place) split_next(reader, size, count, at + 4, stride);
    const std::byte* const first = in_place ? at + 4 : shuffled_block(reader, size, options).data();
    for (std::size_t s = 0; s < count; ++s) {
      at = put({first + s * (in_place ? stride : length), length}, s, at);
    }
    return at;
  }
};

// Bytes of a block that begins at `first`, shuffled.
Bytes block_at(std::span<const Bytes> parts, std::size_t first, std::size_t size, const Options& options) {
  PartReader reader(parts);
  reader.next(first, [](Bytes) {});
  return shuffled_block(reader, size, options);
}

// Bytes that `size` bytes from `first` on take, in blocks of a plan.
std::size_t tried_size(std::span<const Bytes> parts, std::size_t first, std::size_t size, std::size_t block,
                       const Options& options, const StreamPlan& plan) {
  Streams streams{options, plan, {}};
  PartReader reader(parts);
  reader.next(first, [](Bytes) {});
  encoders().literals.forget();
  const Blocks blocks{size, block, options.item_bytes, splits(block, options, plan.layout)};
  std::size_t stored = 0;
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    const std::size_t n = blocks.size_of(i);
    const std::size_t room = n + 4 * kMaxStreams + stream_bound(n, options);
    const MutableBytes out = block_buffers().tried.get(room).first(room);
    stored += static_cast<std::size_t>(streams.put_block(reader, n, blocks.streams_of(i), out) - out.data());
  }
  return stored;
}

StreamPlan whole_plan() {
  StreamPlan plan;
  plan.is_made = true;
  plan.layout = Layout::Whole;
  return plan;
}

// From streams of the middle of a tile; none where a look does not pay. A try of whole blocks takes a tenth
// of the time of a large tile, which only one that shrinks much gains back.
StreamPlan make_plan(std::span<const Bytes> parts, std::size_t bytes, const Options& options) {
  if (options.compressor != Compressor::Zstd || options.level != 1 || bytes < kLeastTriedBytes) return {};
  StreamPlan plan;
  const Blocks blocks = cut(bytes, options, bytes >= kLeastLongBytes ? Layout::Long : Layout::Short);
  const std::size_t middle = blocks.size_of(blocks.count() / 2) == blocks.block ? blocks.count() / 2 : 0;
  const Bytes block = block_at(parts, middle * blocks.block, blocks.size_of(middle), options);
  const std::size_t streams = blocks.streams_of(middle);
  const bool tries_whole =
      options.shuffle != BloscShuffle::Byte || may_be_whole(block, streams, bytes < kLeastLongBytes ? 2 : 6);
  if (bytes >= kLeastPlannedBytes && blocks.size_of(middle) == blocks.block) {
    plan = plan_streams(block, streams, kShortStreamBytes, options.skips_noise, encoders());
  }
  if (!tries_whole) return plan;
  const Blocks wholes = cut(bytes, options, Layout::Whole);
  const std::size_t middle_whole =
      wholes.size_of(wholes.count() / 2) == wholes.block ? wholes.count() / 2 : 0;
  const std::size_t first = middle_whole * wholes.block;
  const std::size_t tried = wholes.size_of(middle_whole);
  const std::size_t whole = tried_size(parts, first, tried, tried, options, whole_plan());
  const std::size_t split =
      tried_size(parts, first, tried, cut(bytes, options, plan.layout).block, options, plan);
  return whole < split ? whole_plan() : plan;
}

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
                          const Options& options, MutableBytes out) {
  Streams streams{options, make_plan(parts, bytes, options), {}};
  const Blocks blocks = cut(bytes, options, streams.plan.layout);
  unsigned flags = blocks.is_split ? 0 : kUnsplit;
  if (options.shuffle == BloscShuffle::Byte && options.item_bytes > 1) flags |= kByteShuffle;
  if (options.shuffle == BloscShuffle::Bit) flags |= kBitShuffle;
  PartReader reader(parts);
  encoders().literals.forget();
  std::byte* at = out.data() + kHeaderBytes + 4 * blocks.count();
  const std::byte* const most = out.data() + most_bytes;
  for (std::size_t i = 0; i < blocks.count() && at < most; ++i) {
    store<std::uint32_t>(out.data() + kHeaderBytes + 4 * i, static_cast<std::uint32_t>(at - out.data()));
    at = streams.put_block(reader, blocks.size_of(i), blocks.streams_of(i),
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
  return std::max(cut(bytes, options, Layout::Long).block, cut(bytes, options, Layout::Whole).block);
}

}  // namespace

BlockBuffers& block_buffers() {
  thread_local OfThread<BlockBuffers> own;
  return own.value;
}

std::size_t encode_bound(std::size_t bytes, const Options& options) {
  const std::size_t of_block = 4 + 4 * kMaxStreams;
  return kHeaderBytes + bytes + cut(bytes, at_level_1(options)).count() * of_block +
         stream_bound(longest_block(bytes, options), options);
}

std::size_t scratch_bytes(std::size_t bytes, const Options& options) {
  const std::size_t block = longest_block(bytes, options);
  return (options.shuffle == BloscShuffle::Bit ? 2 : 1) * block +
         (options.compressor == Compressor::Zstd ? block + stream_bound(block, options) : 0) +
         plan_scratch_bytes(std::min(block, kLongStreamBytes)) +
         run_scratch_bytes(std::min(block, kMostLiterals));
}

std::size_t encode(std::span<const Bytes> parts, std::size_t bytes, const Options& options,
                   MutableBytes out) {
  const std::size_t most = encode_within(bytes + kHeaderBytes, parts, bytes, at_level_1(options), out);
  if (!is_slow(options)) return most;
  const std::size_t stored = encode_within(most, parts, bytes, options, out);
  if (stored < most) return stored;
  return encode_within(bytes + kHeaderBytes, parts, bytes, at_level_1(options), out);
}

}  // namespace cdd::blosc
