// NUMERIC, residuals to bytes: plans the packing of one stream, sizes its blocks and writes them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/codec/numeric/format.h"
#include "core/codec/numeric/plan.h"
#include "core/codec/numeric/writer.h"

namespace cdd::numeric {

// How one block is packed.
struct BlockPlan {
  std::uint64_t base = 0;         // without bins
  unsigned width = 0;             // of offsets, or of selectors
  std::uint32_t offset_bits = 0;  // with bins: of all values that are no exceptions
  std::uint32_t exceptions = 0;
};

// One stream's residuals (which outlive it) and their plan.
template <class T>
class PackedStream {
 public:
  PackedStream(const Shape& shape, const T* residuals);

  unsigned flags() const noexcept {
    return (binned_ ? kHasBins : 0u) | (has_exceptions_ ? kHasExceptions : 0u);
  }
  void put_header(Writer& out) const;
  void put_data(Writer& out) const;

 private:
  // Also finds where all residuals lie.
  Spread plan_plain(unsigned exception_width);
  bool plan_binned(std::uint64_t most_bytes, unsigned exception_width);
  void range_exceptions();
  // Whether value i of block b is stored apart.
  bool is_exception(const BlockPlan& plan, std::size_t i) const noexcept;
  std::uint64_t block_bytes(const BlockPlan& plan, std::size_t n, unsigned exception_width) const noexcept;
  std::uint64_t total_bytes(unsigned exception_width) const noexcept;
  std::size_t first_of(std::size_t block) const noexcept;
  void put_plain(const BlockPlan& plan, std::size_t first, std::size_t n, Writer& out) const;
  void put_binned(const BlockPlan& plan, std::size_t first, std::size_t n, Writer& out) const;

  const Shape& shape_;
  const T* residuals_;
  Packing packing_;
  bool binned_ = false;
  std::vector<BlockPlan> blocks_;
  std::vector<std::uint8_t> bin_of_;  // of each residual
  bool has_exceptions_ = false;
  unsigned exception_width_ = 0;
  std::uint64_t exception_base_ = 0;
};

extern template class PackedStream<std::uint32_t>;
extern template class PackedStream<std::uint64_t>;

}  // namespace cdd::numeric
