// The other way: frames that any writer of blosc made, as far as they hold.
#include <algorithm>
#include <bit>
#include <cstring>

#include "core/codec/blosc/blocks.h"
#include "core/codec/blosc/frame.h"
#include "core/simd/bit_planes.h"
#include "core/simd/planes.h"

namespace cdd::blosc {
namespace {

void join_items(const std::byte* planes, std::size_t n, std::size_t item, std::byte* items) {
  if (item <= 8 && std::has_single_bit(item)) {
    simd::join_planes(planes, n, n, item, items);
  } else {
    simd::reference::join_planes(planes, n, n, item, items);
  }
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
    std::byte* const bytes = from_bytes ? block_buffers().bytes.get(shuffled.size()).data() : out.data();
    for (std::size_t b = 0; b < item; ++b) simd::join_bits(planes + b * n, n, bytes + b * n);
    planes = bytes;
  }
  if (from_bytes) join_items(planes, n, item, out.data());
  // Where a block is no whole number of items, its last bytes are not shuffled.
  std::memcpy(out.data() + n * item, shuffled.data() + n * item, shuffled.size() - n * item);
}

}  // namespace

Decoder::Decoder(Bytes frame, std::size_t bytes) : bytes_(bytes) {
  if (frame.size() < kHeaderBytes) {
    fail(ErrorCode::Corrupt, "a blosc frame of %zu bytes, its header alone has %zu", frame.size(),
         kHeaderBytes);
  }
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(frame[i]); };
  const auto word = [&](std::size_t at) -> std::size_t { return load<std::uint32_t>(frame.data() + at); };
  if (byte(0) != 1 && byte(0) != 2) {
    fail(ErrorCode::Unsupported, "a blosc frame of version %u, read are 1 and 2", byte(0));
  }
  flags_ = byte(2);
  item_ = byte(3);
  block_ = word(8);
  const std::size_t held = word(4), stored = word(12);
  if (held != bytes || stored > frame.size() || stored < kHeaderBytes) {
    fail(ErrorCode::Corrupt, "a blosc frame of %zu bytes that holds %zu, expected are %zu and %zu", stored,
         held, frame.size(), bytes);
  }
  frame_ = frame.first(stored);
  if (flags_ & kStored) {
    if (stored != bytes + kHeaderBytes) {
      fail(ErrorCode::Corrupt, "a stored blosc frame of %zu bytes for %zu", stored, bytes);
    }
    block_ = std::max<std::size_t>(bytes, 1);
    return;
  }
  if (block_ == 0 || block_ > std::max<std::size_t>(bytes, 1) || item_ == 0) {
    fail(ErrorCode::Corrupt, "a blosc frame with blocks of %zu bytes and items of %zu", block_, item_);
  }
  const unsigned format = flags_ >> 5;
  if (format != kLz4Format && format != kZstdFormat) {
    constexpr const char* kFormats[] = {"blosclz", "lz4", "snappy", "zlib", "zstd", "?", "?", "?"};
    fail(ErrorCode::Unsupported, "a blosc frame compressed by %s, read are zstd and lz4", kFormats[format]);
  }
  compressor_ = format == kZstdFormat ? Compressor::Zstd : Compressor::Lz4;
  if (frame_.size() < kHeaderBytes + 4 * blocks()) {
    fail(ErrorCode::Corrupt, "a blosc frame of %zu bytes for %zu blocks", frame_.size(), blocks());
  }
}

void Decoder::decode(std::size_t i, MutableBytes out) const {
  if (flags_ & kStored) {
    std::memcpy(out.data(), frame_.data() + kHeaderBytes, out.size());
    return;
  }
  const Blocks blocks{bytes_, block_, item_, (flags_ & kUnsplit) == 0};
  const std::size_t size = blocks.size_of(i);
  const MutableBytes to = out.subspan(i * blocks.block, size);
  const bool from_bits = (flags_ & kBitShuffle) != 0 && has_bit_planes(size, item_);
  const bool from_bytes =
      item_ > 1 && (from_bits || ((flags_ & kByteShuffle) != 0 && (flags_ & kBitShuffle) == 0));
  const bool is_shuffled = from_bits || from_bytes;
  const MutableBytes streams = is_shuffled ? block_buffers().shuffled.get(size).first(size) : to;
  get_streams(frame_, load<std::uint32_t>(frame_.data() + kHeaderBytes + 4 * i), blocks.streams_of(i),
              compressor_, streams);
  if (is_shuffled) unshuffle(streams, from_bits, from_bytes, item_, to);
}

void decode(Bytes frame, MutableBytes out) {
  const Decoder decoder(frame, out.size());
  for (std::size_t i = 0; i < decoder.blocks(); ++i) decoder.decode(i, out);
}

}  // namespace cdd::blosc
