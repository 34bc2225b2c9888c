// Frames of one scale of a pyramid into those of the next: blocks of two along some dimensions become one
// item. At odd edges a block has what is there.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/dtype.h"
#include "core/simd/tiles/downsample.h"

namespace cdd::tiles {

using Reduce = simd::Reduction;

// Halved, rounded up.
constexpr std::uint64_t halved(std::uint64_t size) noexcept { return size / 2 + size % 2; }

class Reducer {
 public:
  // `frame` is a frame's sizes, `halves` says of each of its dimensions whether it is halved; `frames`: 2
  // where dimension 0 is halved too, else 1. InvalidArgument for a dtype that cannot be reduced so (bfloat16,
  // minima and maxima of complex items) and for more than simd::kMostHalvings halved dimensions. Takes no
  // memory for frames yet.
  Reducer(DType dtype, Reduce reduce, std::vector<std::uint64_t> frame, const std::vector<bool>& halves,
          unsigned frames);

  // Bytes that it keeps, the frame that comes out included; takes them, before the first frame.
  std::uint64_t bytes() const noexcept { return out_bytes_ + held_bytes_; }
  void take_memory();

  // Takes one frame; true when the next scale's frame is in out(), until the next call.
  bool feed(const std::byte* frame) noexcept {
    take_rows(frame, 0, rows_);
    return end_frame();
  }
  // The same in pieces: rows of the frame that comes out, in their order, then the end. A frame whose end has
  // not been told counts for nothing where each makes one (`frames` is 1).
  std::uint64_t rows() const noexcept { return rows_; }
  bool is_of_one_frame() const noexcept { return frames_ == 1; }
  std::uint64_t source_bytes(std::uint64_t rows) const noexcept;  // of a frame, that the first rows take
  void take_rows(const std::byte* frame, std::uint64_t first, std::uint64_t last) noexcept;
  bool end_frame() noexcept;

  // The same for frames that wait for another one that will not come; false where there are none.
  bool finish() noexcept;
  Bytes out() const noexcept { return out_; }

 private:
  // The rows of a frame that one row of the next scale is made of, which lie `offsets` after the first.
  struct Sources {
    std::uint64_t first = 0;
    std::array<std::uint64_t, std::size_t{1} << simd::kMostHalvings> offsets;
    unsigned shift = 0;  // there are 2^shift
  };
  // A dimension of a frame but its last.
  struct Axis {
    std::uint64_t size;
    bool is_halved;
  };

  void find_sources(std::uint64_t out_row, Sources& sources) const noexcept;
  void take_row(const simd::RowKernels& kernels, const Sources& sources, const std::byte* frame,
                std::byte* held) const noexcept;
  void end_row(const simd::RowKernels& kernels, const std::byte* held, unsigned shift,
               std::byte* out) const noexcept;

  Kind kind_;
  Reduce reduce_;
  std::size_t item_bytes_;
  std::vector<Axis> axes_;
  std::uint64_t columns_ = 1, rows_ = 1;  // items of a row of a frame; rows of a frame that comes out
  bool halves_columns_ = false;
  unsigned frames_, fed_ = 0;
  std::uint64_t out_bytes_ = 0, held_bytes_ = 0;
  std::size_t row_held_bytes_ = 0;
  std::vector<std::byte> held_;  // of a row; of all rows where two frames make one
  std::vector<std::byte> out_;
};

}  // namespace cdd::tiles
