// Streams of uint32 in LEVELS payloads: fixed-width bit packing with exceptions ("patched frame of
// reference").
//
// A stream is a head (2 to 8 bytes, all heads of a segment stand together) and a body. The number of values
// is never stored here: the segment knows it. Specification: docs/formats/codecs/levels.md, "LEVELS",
// "Streams".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/bytes.h"
#include "core/simd/levels/levels.h"

namespace cdd::levels {

inline constexpr std::size_t kMaxStreamHeadBytes = 8;

struct StreamHead {
  std::uint8_t width;       // bits of a value in the main array, 0 to 32
  std::uint8_t high_width;  // bits of the part that did not fit, for exceptions
  bool zigzag;              // values are zigzag-coded; base is then 0
  bool delta;               // values are relative to a parent; what that means is the segment's business
  std::uint16_t n_high;     // exceptions
  std::uint32_t base;
};

struct CodedValues;

// A stream ready to decode; its body is inside the payload.
struct Stream {
  StreamHead head;
  std::uint32_t n;
  const std::byte* body;
  const CodedValues* coded;  // null: the body is packed
};

// Bytes of the body of n values.
std::size_t stream_body_bytes(const StreamHead& head, std::size_t n) noexcept;

// Where reading a segment stands. Its bytes are followed by kScratchPadding readable ones.
struct Cursor {
  const std::byte* next;
  const std::byte* end;

  // The next n bytes.
  const std::byte* take(std::size_t n) {
    if (n > static_cast<std::size_t>(end - next))
      fail(ErrorCode::Corrupt, "levels: a segment ends too early");
    const std::byte* p = next;
    next += n;
    return p;
  }
  template <class T>
  T take() {
    return load<T>(take(sizeof(T)));
  }
};

// Takes the head of a stream of n values; Corrupt when it is not one that encoding makes.
void take_stream_head(Cursor& in, std::size_t n, Stream& stream);
// Points `stream` at its body.
void take_stream_body(Cursor& in, Stream& stream);

// Values [first, first + count) of the stream; `first` is a multiple of 16. May write 64 bytes more.
void read_stream(const simd::LevelsKernels& kernels, const Stream& stream, std::size_t first,
                 std::size_t count, std::uint32_t* out);

struct CodedPlan;

// How encoding would store `values`, and at what cost.
struct StreamPlan {
  std::span<const std::uint32_t> values;
  StreamHead head;
  bool may_be_delta = false;                   // one that may be told by what it adds to others
  std::shared_ptr<CodedPlan> coded = nullptr;  // null: packed, by `head`

  std::size_t head_bytes() const noexcept;
  std::size_t body_bytes() const noexcept { return stream_body_bytes(head, values.size()); }
  std::size_t bytes() const noexcept { return head_bytes() + body_bytes(); }
};

// The cheapest of plain and (when allowed) zigzag coding. Each exception must save `exception_worth` bytes
// more than it takes, for the time that it costs.
StreamPlan plan_stream(std::span<const std::uint32_t> values, bool allow_zigzag, std::size_t exception_worth);

// Each returns where it stopped. The body needs 8 writable bytes behind it.
std::byte* write_stream_head(const StreamPlan& plan, std::byte* out);
std::byte* write_stream_body(const StreamPlan& plan, std::byte* out);

}  // namespace cdd::levels
