// How the blocks of a frame are shuffled and compressed.
#pragma once

#include <span>

#include "core/codec/blosc/blocks.h"
#include "core/codec/blosc/plan_watch.h"

namespace cdd::blosc {

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

// The bytes of the next block, shuffled; parts hold whole items.
Bytes shuffled_block(PartReader& parts, std::size_t size, const Options& options);

// This thread's.
StreamEncoders& stream_encoders();

// Most bytes that are written for a stream of this length, working room included.
std::size_t stream_bound(std::size_t bytes, const Options& options);

// The blocks of one frame, one after the other.
class BlockEncoder {
 public:
  BlockEncoder(const Options& options, const StreamPlan& plan) : options_(options), plan_(plan) {
    stream_encoders().literals.forget();
  }

  // All `count` streams of the next block, of `size` bytes. Returns the end.
  std::byte* put(PartReader& reader, std::size_t size, std::size_t count, MutableBytes out);

 private:
  bool first_is_stored() const noexcept;
  bool is_tried(Bytes stream, std::size_t s) noexcept;
  std::size_t compressed_by_plan(Bytes stream, std::size_t s, MutableBytes room);
  std::size_t compressed(Bytes stream, std::size_t s, MutableBytes room);
  std::byte* put_stream(Bytes stream, std::size_t s, std::byte* at);

  Options options_;
  StreamPlan plan_;  // of the blocks so far; a stream that is not like them gets a new one
  PlanWatch watch_;
  Lz4Tries tries_;
};

}  // namespace cdd::blosc
