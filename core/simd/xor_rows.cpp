#include "core/simd/xor_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/xor_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "core/simd/xor_rows-inl.h"

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(SplitXorRows);
HWY_EXPORT(JoinXorRows);

void split_xor_rows(const XorRows& shape, const std::byte* rows, std::byte* planes) noexcept {
  HWY_DYNAMIC_DISPATCH(SplitXorRows)(shape, rows, planes);
}

void join_xor_rows(const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
                   std::byte* out) noexcept {
  HWY_DYNAMIC_DISPATCH(JoinXorRows)(shape, planes, first, count, out);
}

namespace reference {

void split_xor_rows(const XorRows& shape, const std::byte* rows, std::byte* planes) noexcept {
  const std::size_t row_bytes = shape.row_items * shape.item_bytes;
  const std::size_t stride = shape.n_rows * shape.row_items;
  for (std::size_t k = 0; k < shape.n_rows * row_bytes; ++k) {
    const bool start = k / row_bytes % shape.segment_rows == 0;
    planes[k % shape.item_bytes * stride + k / shape.item_bytes] =
        start ? rows[k] : rows[k] ^ rows[k - row_bytes];
  }
}

void join_xor_rows(const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
                   std::byte* out) noexcept {
  const std::size_t row_bytes = shape.row_items * shape.item_bytes;
  const std::size_t stride = shape.n_rows * shape.row_items;
  for (std::size_t k = 0; k < count * row_bytes; ++k) {
    const std::size_t row = first + k / row_bytes;
    std::byte v{0};
    for (std::size_t r = row - row % shape.segment_rows; r <= row; ++r) {
      v ^= planes[k % shape.item_bytes * stride + r * shape.row_items + k % row_bytes / shape.item_bytes];
    }
    out[k] = v;
  }
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
