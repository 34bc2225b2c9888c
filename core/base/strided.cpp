#include "core/base/strided.h"

#include <algorithm>
#include <cstring>

namespace cdd {
namespace {

// A dimension to walk through; those that lie one after the other are one.
struct Walk {
  std::array<std::uint64_t, kMaxRowDims + 1> counts{};
  std::array<std::ptrdiff_t, kMaxRowDims + 1> strides{};
  std::size_t ndim = 0;
  std::size_t block_bytes = 0;  // that lie together
};

Walk walk_through(const StridedRows& from, std::uint64_t rows) {
  Walk walk;
  walk.counts[walk.ndim] = rows;
  walk.strides[walk.ndim++] = from.row_stride;
  for (std::size_t i = 0; i < from.ndim; ++i) {
    walk.counts[walk.ndim] = from.dims[i];
    walk.strides[walk.ndim++] = from.strides[i];
  }
  walk.block_bytes = from.item_bytes;
  while (walk.ndim > 0 && (walk.counts[walk.ndim - 1] == 1 ||
                           walk.strides[walk.ndim - 1] == static_cast<std::ptrdiff_t>(walk.block_bytes))) {
    walk.block_bytes *= static_cast<std::size_t>(walk.counts[--walk.ndim]);
  }
  return walk;
}

template <std::size_t kBytes>
std::byte* copy_blocks(const std::byte* from, std::uint64_t count, std::ptrdiff_t stride, std::size_t bytes,
                       std::byte* out) noexcept {
  const std::size_t size = kBytes == 0 ? bytes : kBytes;
  for (; count > 0; --count, from += stride, out += size) std::memcpy(out, from, size);
  return out;
}

std::byte* copy_line(const Walk& walk, const std::byte* from, std::byte* out) noexcept {
  const std::uint64_t count = walk.counts[walk.ndim - 1];
  const std::ptrdiff_t stride = walk.strides[walk.ndim - 1];
  switch (walk.block_bytes) {
    case 1:
      return copy_blocks<1>(from, count, stride, 1, out);
    case 2:
      return copy_blocks<2>(from, count, stride, 2, out);
    case 4:
      return copy_blocks<4>(from, count, stride, 4, out);
    case 8:
      return copy_blocks<8>(from, count, stride, 8, out);
    case 16:
      return copy_blocks<16>(from, count, stride, 16, out);
    default:
      return copy_blocks<0>(from, count, stride, walk.block_bytes, out);
  }
}

std::byte* copy_dimension(const Walk& walk, std::size_t dimension, const std::byte* from,
                          std::byte* out) noexcept {
  if (dimension + 1 == walk.ndim) return copy_line(walk, from, out);
  for (std::uint64_t i = 0; i < walk.counts[dimension]; ++i, from += walk.strides[dimension]) {
    out = copy_dimension(walk, dimension + 1, from, out);
  }
  return out;
}

template <class T>
T reversed(T value) noexcept {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(T));
  std::reverse(bytes.begin(), bytes.end());
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

template <class T>
void swap_each(MutableBytes items) noexcept {
  for (std::size_t at = 0; at < items.size(); at += sizeof(T)) {
    store<T>(items.data() + at, reversed(load<T>(items.data() + at)));
  }
}

}  // namespace

void copy_rows(const StridedRows& from, std::uint64_t first, std::uint64_t count, MutableBytes out) noexcept {
  const std::byte* const begin = from.first + static_cast<std::ptrdiff_t>(first) * from.row_stride;
  const Walk walk = walk_through(from, count);
  if (walk.ndim == 0) {
    if (!out.empty()) std::memcpy(out.data(), begin, out.size());
  } else {
    copy_dimension(walk, 0, begin, out.data());
  }
  if (from.swap_bytes == 2) swap_each<std::uint16_t>(out);
  if (from.swap_bytes == 4) swap_each<std::uint32_t>(out);
  if (from.swap_bytes == 8) swap_each<std::uint64_t>(out);
}

Bytes RowSource::at(std::uint64_t first, std::uint64_t count) {
  const auto bytes = static_cast<std::size_t>(count * row_bytes_);
  if (!is_copied()) return plain_.subspan(static_cast<std::size_t>(first * row_bytes_), bytes);
  if (piece_.size() < bytes) piece_.resize(bytes);
  const MutableBytes piece = MutableBytes(piece_).first(bytes);
  copy_rows(*strided_, first, count, piece);
  return piece;
}

}  // namespace cdd
