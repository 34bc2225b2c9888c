#include "core/codec/blosc/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/of_thread.h"
#include "core/base/scratch.h"
#include "core/codec/blosc/literals.h"
#include "core/codec/blosc/stream_plan.h"
#include "core/simd/bit_planes.h"
#include "core/simd/planes.h"

namespace cdd::blosc {
namespace {

using zarr::BloscShuffle;

constexpr std::uint8_t kVersion = 2, kCodecVersion = 1;
constexpr std::uint8_t kByteShuffle = 1, kStored = 2, kBitShuffle = 4, kUnsplit = 16;
constexpr unsigned kLz4Format = 1, kZstdFormat = 4;

constexpr std::size_t kLeastStreamBytes = 128;  // shorter streams are not split
constexpr std::size_t kBlockBytes = 256 << 10;
constexpr std::size_t kShortStreamBytes = 16 << 10;  // where frequencies change, short streams follow them
constexpr std::size_t kLongStreamBytes = 64 << 10;   // where what came before comes again, long ones have it
constexpr std::size_t kSlowBlockBytes = 1 << 20;     // where the level asks for size
constexpr int kSlowLevel = 5;

// A look at a tile pays where it is as large as this.
constexpr std::size_t kLeastPlannedBytes = 256 << 10;
constexpr std::size_t kLeastLongBytes = 1 << 20;  // and one for longer streams

struct Buffers {
  Scratch shuffled, bytes;
  LiteralEncoder literals;
};
Buffers& buffers() {
  thread_local OfThread<Buffers> own;
  return own.value;
}

// The blocks of one frame. A last block that is shorter than the others is never split.
struct Blocks {
  std::size_t bytes, block, item;
  bool is_split;

  std::size_t count() const noexcept { return (bytes + block - 1) / block; }
  std::size_t size_of(std::size_t i) const noexcept { return std::min(block, bytes - i * block); }
  std::size_t streams_of(std::size_t i) const noexcept {
    return is_split && size_of(i) == block && item <= kMaxStreams && block / item >= kLeastStreamBytes ? item
                                                                                                       : 1;
  }
};

// Equal blocks where the size can be cut so, since shorter ones are not split.
Blocks cut(std::size_t bytes, const Options& options, bool has_long_streams = false) {
  std::size_t most = kBlockBytes;
  if (options.compressor == Compressor::Zstd) {
    const std::size_t stream = has_long_streams ? kLongStreamBytes : kShortStreamBytes;
    most = options.level >= kSlowLevel
               ? kSlowBlockBytes
               : std::clamp(stream * options.item_bytes, 2 * kShortStreamBytes, kBlockBytes);
  }
  const std::size_t unit = 8 * options.item_bytes;
  const std::size_t fewest = (bytes + most - 1) / most;
  std::size_t block = bytes <= most ? bytes : most / unit * unit;
  for (std::size_t n = fewest; n <= 2 * fewest; ++n) {
    if (bytes % n != 0 || bytes / n % unit != 0) continue;
    block = bytes / n;
    break;
  }
  return {bytes, block, options.item_bytes, options.shuffle != BloscShuffle::None && options.item_bytes > 1};
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
void join_items(const std::byte* planes, std::size_t n, std::size_t item, std::byte* items) {
  if (item <= 8 && std::has_single_bit(item)) {
    simd::join_planes(planes, n, n, item, items);
  } else {
    simd::reference::join_planes(planes, n, n, item, items);
  }
}

// Whether blosc shuffles the bits of a block of this size at all.
bool has_bit_planes(std::size_t block, std::size_t item) { return block / item % 8 == 0 && block >= item; }

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
  const MutableBytes planes = buffers().bytes.get(size).first(size);
  std::size_t done = 0;
  parts.next(size, [&](Bytes piece) {
    if (to_bytes) {
      split_items(piece, item, planes.data() + done / item, size / item);
    } else {
      std::memcpy(planes.data() + done, piece.data(), piece.size());
    }
    done += piece.size();
  });
  if (!to_bits) return planes;
  const MutableBytes bits = buffers().shuffled.get(size).first(size);
  const std::size_t n = size / item;
  for (std::size_t b = 0; b < item; ++b) simd::split_bits(planes.data() + b * n, n, bits.data() + b * n);
  return bits;
}

// From streams of the middle of a tile; none where a look does not pay.
StreamPlan make_plan(std::span<const Bytes> parts, std::size_t bytes, const Options& options) {
  if (options.compressor != Compressor::Zstd || options.level != 1 || bytes < kLeastPlannedBytes) return {};
  const Blocks blocks = cut(bytes, options, bytes >= kLeastLongBytes);
  const std::size_t middle = blocks.count() / 2;
  if (blocks.size_of(middle) != blocks.block) return {};
  PartReader reader(parts);
  reader.next(middle * blocks.block, [](Bytes) {});
  return plan_streams(shuffled_block(reader, blocks.block, options), blocks.streams_of(middle),
                      kShortStreamBytes, options.skips_noise, buffers().literals);
}

std::size_t stream_bound(std::size_t bytes, const Options& options) {
  return std::max(compress_bound(options.compressor, bytes), literals_bound(bytes));
}

std::size_t compress_planned(const StreamPlan::OfStream& plan, Bytes stream, MutableBytes out) {
  if (const std::size_t stored = repeat_frame(stream, out)) return stored;
  if (plan.has_codes_alone) {
    if (const std::size_t stored = buffers().literals.encode(stream, out)) return stored;
  }
  return compress_zstd(plan.search, stream, out);
}

// One stream, the s-th of its block: its stored size, then its bytes, as they are where that is no more.
// Returns the end.
std::byte* put_stream(Bytes stream, std::size_t s, const StreamPlan& plan, const Options& options,
                      std::byte* at) {
  std::size_t stored = stream.size();
  const MutableBytes room{at + 4, stream_bound(stream.size(), options)};
  if (plan.is_made) {
    if (!plan.of[s].is_stored) stored = compress_planned(plan.of[s], stream, room);
  } else if (!options.skips_noise || !is_noise(stream)) {
    stored = compress(options.compressor, stream, room, options.level);
  }
  if (stored >= stream.size()) {
    stored = stream.size();
    std::memcpy(at + 4, stream.data(), stored);
  }
  store<std::uint32_t>(at, static_cast<std::uint32_t>(stored));
  return at + 4 + stored;
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

}  // namespace

std::size_t encode_bound(std::size_t bytes, const Options& options) {
  const std::size_t of_block = 4 + 4 * kMaxStreams;
  return kHeaderBytes + bytes + cut(bytes, options).count() * of_block +
         stream_bound(cut(bytes, options, true).block, options);
}

std::size_t scratch_bytes(std::size_t bytes, const Options& options) {
  const std::size_t block = cut(bytes, options, true).block;
  return (options.shuffle == BloscShuffle::Bit ? 2 : 1) * block +
         plan_scratch_bytes(std::min(block, kLongStreamBytes));
}

std::size_t encode(std::span<const Bytes> parts, std::size_t bytes, const Options& options,
                   MutableBytes out) {
  const StreamPlan plan = make_plan(parts, bytes, options);
  const Blocks blocks = cut(bytes, options, plan.has_long_streams);
  unsigned flags = blocks.is_split ? 0 : kUnsplit;
  if (options.shuffle == BloscShuffle::Byte && options.item_bytes > 1) flags |= kByteShuffle;
  if (options.shuffle == BloscShuffle::Bit) flags |= kBitShuffle;
  PartReader reader(parts);
  buffers().literals.forget();
  std::byte* at = out.data() + kHeaderBytes + 4 * blocks.count();
  const std::byte* const most = out.data() + kHeaderBytes + bytes;
  for (std::size_t i = 0; i < blocks.count() && at < most; ++i) {
    store<std::uint32_t>(out.data() + kHeaderBytes + 4 * i, static_cast<std::uint32_t>(at - out.data()));
    const Bytes block = shuffled_block(reader, blocks.size_of(i), options);
    const std::size_t streams = blocks.streams_of(i);
    const std::size_t stream = block.size() / streams;
    for (std::size_t s = 0; s < streams; ++s) {
      at = put_stream(block.subspan(s * stream, stream), s, plan, options, at);
    }
  }
  if (at < most) {
    const auto stored = static_cast<std::size_t>(at - out.data());
    put_header(out.data(), flags, options, bytes, blocks.block, stored);
    return stored;
  }
  put_header(out.data(), flags | kStored, options, bytes, blocks.block, bytes + kHeaderBytes);
  at = out.data() + kHeaderBytes;
  for (const Bytes part : parts) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  return bytes + kHeaderBytes;
}

// ---------------------------------------------------------------- decoding

namespace {

struct Header {
  unsigned flags;
  std::size_t item, bytes, block, stored;
  Compressor compressor;
};

Header parse_header(Bytes frame, std::size_t wanted) {
  if (frame.size() < kHeaderBytes) {
    fail(ErrorCode::Corrupt, "a blosc frame of %zu bytes, its header alone has %zu", frame.size(),
         kHeaderBytes);
  }
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(frame[i]); };
  if (byte(0) != 1 && byte(0) != 2) {
    fail(ErrorCode::Unsupported, "a blosc frame of version %u, read are 1 and 2", byte(0));
  }
  Header header{byte(2),
                byte(3),
                load<std::uint32_t>(frame.data() + 4),
                load<std::uint32_t>(frame.data() + 8),
                load<std::uint32_t>(frame.data() + 12),
                Compressor::None};
  if (header.bytes != wanted || header.stored > frame.size() || header.stored < kHeaderBytes) {
    fail(ErrorCode::Corrupt, "a blosc frame of %zu bytes that holds %zu, expected are %zu and %zu",
         header.stored, header.bytes, frame.size(), wanted);
  }
  if (header.flags & kStored) return header;
  if (header.block == 0 || header.block > std::max<std::size_t>(header.bytes, 1) || header.item == 0) {
    fail(ErrorCode::Corrupt, "a blosc frame with blocks of %zu bytes and items of %zu", header.block,
         header.item);
  }
  const unsigned format = header.flags >> 5;
  if (format != kLz4Format && format != kZstdFormat) {
    constexpr const char* kFormats[] = {"blosclz", "lz4", "snappy", "zlib", "zstd", "?", "?", "?"};
    fail(ErrorCode::Unsupported, "a blosc frame compressed by %s, read are zstd and lz4", kFormats[format]);
  }
  header.compressor = format == kZstdFormat ? Compressor::Zstd : Compressor::Lz4;
  return header;
}

// All streams of a block, one after the other, into `out`.
void get_streams(Bytes frame, std::size_t start, std::size_t streams, Compressor compressor,
                 MutableBytes out) {
  if (start < kHeaderBytes || start > frame.size()) {
    fail(ErrorCode::Corrupt, "a blosc block at %zu of a frame of %zu bytes", start, frame.size());
  }
  if (out.size() % streams != 0) {
    fail(ErrorCode::Corrupt, "a blosc block of %zu bytes in %zu streams", out.size(), streams);
  }
  ByteReader reader(frame.subspan(start));
  const std::size_t stream = out.size() / streams;
  for (std::size_t s = 0; s < streams; ++s) {
    const MutableBytes to = out.subspan(s * stream, stream);
    const Bytes stored = reader.take(reader.take<std::uint32_t>());
    if (stored.size() == stream) {
      std::memcpy(to.data(), stored.data(), stream);
    } else {
      decompress(compressor, stored, to);
    }
  }
}

void unshuffle(Bytes shuffled, bool from_bits, bool from_bytes, std::size_t item, MutableBytes out) {
  const std::size_t n = shuffled.size() / item;
  const std::byte* planes = shuffled.data();
  if (from_bits) {
    std::byte* const bytes = from_bytes ? buffers().bytes.get(shuffled.size()).data() : out.data();
    for (std::size_t b = 0; b < item; ++b) simd::join_bits(planes + b * n, n, bytes + b * n);
    planes = bytes;
  }
  if (from_bytes) join_items(planes, n, item, out.data());
  // Where a block is no whole number of items, its last bytes are not shuffled.
  std::memcpy(out.data() + n * item, shuffled.data() + n * item, shuffled.size() - n * item);
}

}  // namespace

void decode(Bytes frame, MutableBytes out) {
  const Header header = parse_header(frame, out.size());
  frame = frame.first(header.stored);
  if (header.flags & kStored) {
    if (header.stored != header.bytes + kHeaderBytes) {
      fail(ErrorCode::Corrupt, "a stored blosc frame of %zu bytes for %zu", header.stored, header.bytes);
    }
    if (!out.empty()) std::memcpy(out.data(), frame.data() + kHeaderBytes, out.size());
    return;
  }
  if (out.empty()) return;
  const Blocks blocks{header.bytes, header.block, header.item, (header.flags & kUnsplit) == 0};
  if (frame.size() < kHeaderBytes + 4 * blocks.count()) {
    fail(ErrorCode::Corrupt, "a blosc frame of %zu bytes for %zu blocks", frame.size(), blocks.count());
  }
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    const std::size_t size = blocks.size_of(i);
    const MutableBytes to = out.subspan(i * blocks.block, size);
    const bool from_bits = (header.flags & kBitShuffle) != 0 && has_bit_planes(size, header.item);
    const bool from_bytes =
        header.item > 1 &&
        (from_bits || ((header.flags & kByteShuffle) != 0 && (header.flags & kBitShuffle) == 0));
    const bool is_shuffled = from_bits || from_bytes;
    const MutableBytes streams = is_shuffled ? buffers().shuffled.get(size).first(size) : to;
    get_streams(frame, load<std::uint32_t>(frame.data() + kHeaderBytes + 4 * i), blocks.streams_of(i),
                header.compressor, streams);
    if (is_shuffled) unshuffle(streams, from_bits, from_bytes, header.item, to);
  }
}

}  // namespace cdd::blosc
