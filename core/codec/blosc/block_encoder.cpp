#include "core/codec/blosc/block_encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/of_thread.h"
#include "core/simd/bit_planes.h"
#include "core/simd/planes.h"

namespace cdd::blosc {
namespace {

using zarr::BloscShuffle;

// Items of 16 bytes as two of 8, whose planes have bytes of both halves in turn.
void split_wide_items(Bytes items, std::byte* planes, std::size_t stride) {
  constexpr std::size_t kItem = 16, kHalf = 8, kAtOnce = 512;
  alignas(64) std::byte halves[kAtOnce * kItem];
  for (std::size_t at = 0, n = items.size() / kItem; at < n; at += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, n - at);
    simd::split_planes(items.data() + at * kItem, 2 * count, kHalf, halves, 2 * count);
    for (std::size_t b = 0; b < kHalf; ++b) {
      simd::split_planes(halves + b * 2 * count, count, 2, planes + b * stride + at, kHalf * stride);
    }
  }
}

void split_items(Bytes items, std::size_t item, std::byte* planes, std::size_t stride) {
  const std::size_t n = items.size() / item;
  if (item == 16) {
    split_wide_items(items, planes, stride);
  } else if (item <= 8 && std::has_single_bit(item)) {
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

std::size_t compress_planned(const StreamPlan::OfStream& plan, Bytes stream, MutableBytes out) {
  std::size_t stored = 0;
  if (plan.way == StreamPlan::Way::Runs) stored = stream_encoders().runs.encode(stream, out);
  if (plan.way == StreamPlan::Way::Codes) stored = stream_encoders().literals.encode(stream, out);
  if (stored != 0) return stored;
  return compress_zstd(plan.search, stream, out);
}

}  // namespace

BlockBuffers& block_buffers() {
  thread_local OfThread<BlockBuffers> own;
  return own.value;
}

StreamEncoders& stream_encoders() {
  thread_local OfThread<StreamEncoders> own;
  return own.value;
}

std::size_t stream_bound(std::size_t bytes, const Options& options) {
  return std::max(compress_bound(options.compressor, bytes), literals_bound(bytes));
}

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

// Whether the first stream of the next block is most likely stored as it is.
bool BlockEncoder::first_is_stored() const noexcept {
  if (plan_.is_made) return plan_.of[0].way == StreamPlan::Way::Stored;
  return options_.compressor == Compressor::Lz4 && tries_.may_pass(0);
}

bool BlockEncoder::is_tried(Bytes stream, std::size_t s) noexcept {
  if (plan_.is_made) {
    return plan_.of[s].way != StreamPlan::Way::Stored || watch_.is_compressible(stream, s);
  }
  if (options_.compressor == Compressor::Lz4) return tries_.is_due(stream, s);
  return !options_.skips_noise || is_slow(options_) || !is_noise(stream);
}

// By the plan of the s-th stream, or by a new one, which those after it have, too.
std::size_t BlockEncoder::compressed_by_plan(Bytes stream, std::size_t s, MutableBytes room) {
  if (const std::size_t stored = repeat_frame(stream, room)) return stored;
  StreamPlan::OfStream& plan = plan_.of[s];
  std::size_t stored = stream.size();
  if (plan.way != StreamPlan::Way::Stored) {
    stored = std::min(stored, compress_planned(plan, stream, room));
    if (!watch_.is_unlike(plan, stream, s, stored)) return stored;
  }
  const StreamPlan::OfStream before = plan;
  plan = plan_stream(stream, kShortStreamBytes, options_.skips_noise, stream_encoders());
  if (plan.way != StreamPlan::Way::Stored) stored = compress_planned(plan, stream, room);
  watch_.renewed(plan, before, s, stored);
  return stored;
}

std::size_t BlockEncoder::compressed(Bytes stream, std::size_t s, MutableBytes room) {
  if (plan_.is_made) return compressed_by_plan(stream, s, room);
  const std::size_t stored = compress(options_.compressor, stream, room, options_.level);
  if (options_.compressor == Compressor::Lz4) tries_.note(s, stored < stream.size());
  return stored;
}

// One stream, the s-th of its block: its stored size, then its bytes, as they are where that is no more. It
// may lie there already. Returns the end.
std::byte* BlockEncoder::put_stream(Bytes stream, std::size_t s, std::byte* at) {
  std::size_t stored = stream.size();
  const std::byte* from = stream.data();
  if (is_tried(stream, s)) {
    if (from == at + 4) {
      const MutableBytes aside = block_buffers().bytes.get(stream.size()).first(stream.size());
      std::memcpy(aside.data(), from, stream.size());
      stream = aside;
    }
    stored = std::min(stored, compressed(stream, s, {at + 4, stream_bound(stream.size(), options_)}));
    from = stream.data();
  }
  if (stored == stream.size() && from != at + 4) std::memcpy(at + 4, from, stored);
  store<std::uint32_t>(at, static_cast<std::uint32_t>(stored));
  return at + 4 + stored;
}

// Where the first stream will be stored, it is shuffled to where it goes, and the others to where none is
// written before it has been read.
std::byte* BlockEncoder::put(PartReader& reader, std::size_t size, std::size_t count, MutableBytes out) {
  const std::size_t length = size / count;
  const std::size_t stride = length + 4 + stream_bound(length, options_);
  const bool in_place = options_.shuffle == BloscShuffle::Byte && count > 1 && first_is_stored() &&
                        out.size() >= 4 + count * stride;
  // A last block that is not split is like none of the streams.
  if (plan_.is_made && count < plan_.streams) plan_.of[0] = {};
  std::byte* at = out.data();
  if (in_place) split_next(reader, size, count, at + 4, stride);
  const std::byte* const first = in_place ? at + 4 : shuffled_block(reader, size, options_).data();
  for (std::size_t s = 0; s < count; ++s) {
    at = put_stream({first + s * (in_place ? stride : length), length}, s, at);
  }
  return at;
}

}  // namespace cdd::blosc
