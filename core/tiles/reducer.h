// Frames of one scale of a pyramid into those of the next: blocks of two along some dimensions become one
// item. At odd edges a block has what is there.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/dtype.h"

namespace cdd::tiles {

enum class Reduce : std::uint8_t {
  Mean,  // integers rounded half up, exactly; floats summed in double
  Min,   // NaN where a NaN is first compared, as of operator<
  Max,
  First,  // the item with the lowest indexes
};

class Reducer {
 public:
  virtual ~Reducer() = default;

  // `frame` is a frame's sizes, `halves` says of each of its dimensions whether it is halved; `frames`: 2
  // where dimension 0 is halved too, else 1. InvalidArgument for a dtype that cannot be reduced so: bfloat16,
  // and minima and maxima of complex items.
  static std::unique_ptr<Reducer> make(DType dtype, Reduce reduce, std::vector<std::uint64_t> frame,
                                       std::vector<bool> halves, unsigned frames);

  // Takes one frame; true when the next scale's frame is in out(), until the next call.
  virtual bool feed(const std::byte* frame) noexcept = 0;
  // The same for frames that wait for another one that will not come; false where there are none.
  virtual bool finish() noexcept = 0;
  Bytes out() const noexcept { return out_; }

 protected:
  std::vector<std::byte> out_;
};

// Halved, rounded up.
constexpr std::uint64_t halved(std::uint64_t size) noexcept { return size / 2 + size % 2; }

}  // namespace cdd::tiles
