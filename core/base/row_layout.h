// What one row is: an item type and up to seven dimensions. A store has one RowLayout for all its rows, so
// the shape of any range of rows is (n, dims...).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/dtype.h"
#include "core/base/error.h"

namespace cdd {

inline constexpr std::size_t kMaxRowDims = 7;                               // a chunk has one more: its rows
inline constexpr std::uint64_t kMaxChunkRawBytes = std::uint64_t{1} << 31;  // 2 GiB of raw rows in a chunk
// Of those, what this build can hold. Where addresses have 32 bits that is less: encoders need up to sixteen
// times the rows' bytes, and no count of bits may wrap. Stored chunks may be twice as long.
inline constexpr std::uint64_t kAddressableChunkBytes =
    sizeof(std::size_t) < sizeof(std::uint64_t) ? std::uint64_t{128} << 20 : kMaxChunkRawBytes;

class RowLayout {
 public:
  RowLayout() = default;
  // Throws `blame`, which is Corrupt for what a file says: an unknown dtype, more than 7 dimensions, a zero
  // dimension, or a row over 2 GiB.
  RowLayout(DType dtype, std::span<const std::uint32_t> dims, ErrorCode blame = ErrorCode::InvalidArgument);

  DType dtype() const noexcept { return dtype_; }
  std::span<const std::uint32_t> dims() const noexcept { return {dims_.data(), ndim_}; }
  bool is_set() const noexcept { return dtype_.kind() != Kind::None; }
  std::size_t item_bytes() const noexcept { return dtype_.item_bytes(); }
  std::uint32_t row_items() const noexcept { return row_items_; }
  std::uint32_t row_bytes() const noexcept { return row_bytes_; }
  std::uint32_t levels() const noexcept { return ndim_ == 0 ? 1 : dims_[0]; }
  std::uint32_t features() const noexcept { return row_items_ / levels(); }
  bool operator==(const RowLayout&) const noexcept = default;

 private:
  DType dtype_;
  std::uint8_t ndim_ = 0;
  std::array<std::uint32_t, kMaxRowDims> dims_{};
  std::uint32_t row_items_ = 0;
  std::uint32_t row_bytes_ = 0;
};

// "float32 (50, 3)", "datetime64[ns] ()": a layout for people, in NumPy's words.
std::string to_string(const RowLayout& layout);

// Throws Unsupported for a chunk of more raw or stored bytes than this build can hold.
void check_addressable(std::uint64_t raw_bytes, std::uint64_t stored_bytes);

// Rows [first, first + count) of a chunk or a store.
struct RowRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// A part of each row of a book: of levels [level_begin, level_end) every level_step-th from the first one on,
// and of these features [feature_begin, feature_end). Levels are a row's first dimension, whatever follows
// counts as one of features; a row without dimensions is one level of one feature.
struct Cells {
  std::uint32_t level_begin = 0;
  std::uint32_t level_end = 1;
  std::uint32_t feature_begin = 0;
  std::uint32_t feature_end = 1;
  std::uint32_t level_step = 1;

  std::uint32_t levels() const noexcept { return (level_end - level_begin - 1) / level_step + 1; }
  std::uint32_t features() const noexcept { return feature_end - feature_begin; }
};

// The same of rows that are in memory, as kernels and pointers count them.
struct RowSpan {
  explicit RowSpan(const RowRange& range) noexcept
      : first(static_cast<std::size_t>(range.first)), count(static_cast<std::size_t>(range.count)) {}
  std::size_t end() const noexcept { return first + count; }

  std::size_t first;
  std::size_t count;
};

}  // namespace cdd
