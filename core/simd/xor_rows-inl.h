// The kernels of xor_rows.h. Lanes run along a row, so rows follow each other without waiting for more than
// one XOR; a row's last vector overlaps the one before it rather than ending in scalar code.
#if defined(CDD_CORE_SIMD_XOR_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_CORE_SIMD_XOR_ROWS_INL_H_
#undef CDD_CORE_SIMD_XOR_ROWS_INL_H_
#else
#define CDD_CORE_SIMD_XOR_ROWS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "core/simd/planes-inl.h"
#include "core/simd/xor_rows.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

// The items of one (50, 3) row: a constant lets the compiler lay a row's vectors out without a loop.
inline constexpr std::size_t kBookItems = 150;

// The vectors of a row start at 0, lanes, 2 * lanes, ... and, overlapping, at items - lanes. Needs items >=
// lanes.
HWY_INLINE std::size_t NextVector(std::size_t i, std::size_t items, std::size_t lanes) {
  return i + lanes < items ? HWY_MIN(i + lanes, items - lanes) : items;
}

template <std::size_t kItems, class D>
void SplitRows(D d, const XorRows& shape, const std::byte* rows, std::byte* planes) {
  using T = hn::TFromD<D>;
  const std::size_t items = kItems != 0 ? kItems : shape.row_items;
  const std::size_t row_bytes = items * sizeof(T);
  const std::size_t stride = shape.n_rows * items;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t r = 0, until_start = 0; r < shape.n_rows; ++r, --until_start) {
    if (until_start == 0) {
      until_start = shape.segment_rows;
      for (std::size_t i = 0; i < items; i = NextVector(i, items, lanes)) {
        SplitVector(d, LoadItems(d, rows + i * sizeof(T)), planes + i, stride);
      }
    } else {
      for (std::size_t i = 0; i < items; i = NextVector(i, items, lanes)) {
        const std::byte* p = rows + i * sizeof(T);
        SplitVector(d, hn::Xor(LoadItems(d, p), LoadItems(d, p - row_bytes)), planes + i, stride);
      }
    }
    rows += row_bytes;
    planes += items;
  }
}

template <std::size_t kItems, class D>
void JoinRows(D d, const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
              std::byte* out) {
  using T = hn::TFromD<D>;
  const std::size_t items = kItems != 0 ? kItems : shape.row_items;
  const std::size_t row_bytes = items * sizeof(T);
  const std::size_t stride = shape.n_rows * items;
  const std::size_t lanes = hn::Lanes(d);
  if (count == 0) return;
  // The first row is the XOR of its segment's rows up to itself, every other one a step from the row before.
  const std::size_t before = first % shape.segment_rows;
  planes += first * items;
  for (std::size_t i = 0; i < items; i = NextVector(i, items, lanes)) {
    StoreItems(JoinFrom<0>(d, planes + i, stride, before, items), d, out + i * sizeof(T));
  }
  std::size_t until_start = shape.segment_rows - before;
  for (std::size_t r = 1; r < count; ++r) {
    planes += items;
    out += row_bytes;
    if (--until_start != 0) {
      for (std::size_t i = 0; i < items; i = NextVector(i, items, lanes)) {
        std::byte* p = out + i * sizeof(T);
        StoreItems(hn::Xor(JoinVector(d, planes + i, stride), LoadItems(d, p - row_bytes)), d, p);
      }
    } else {
      until_start = shape.segment_rows;
      for (std::size_t i = 0; i < items; i = NextVector(i, items, lanes)) {
        StoreItems(JoinVector(d, planes + i, stride), d, out + i * sizeof(T));
      }
    }
  }
}

// Full vectors when a row fills one, 128-bit ones for short rows, single items for the shortest. Longer
// vectors than 512 bits would only help rows that long.
template <class T>
void SplitRowsOf(const XorRows& shape, const std::byte* rows, std::byte* planes) {
  const hn::CappedTag<T, 64 / sizeof(T)> full;
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  const hn::CappedTag<T, 1> one;
  if (shape.row_items == kBookItems && kBookItems >= hn::Lanes(full)) {
    SplitRows<kBookItems>(full, shape, rows, planes);
  } else if (shape.row_items >= hn::Lanes(full)) {
    SplitRows<0>(full, shape, rows, planes);
  } else if (shape.row_items >= hn::Lanes(block)) {
    SplitRows<0>(block, shape, rows, planes);
  } else {
    SplitRows<0>(one, shape, rows, planes);
  }
}

template <class T>
void JoinRowsOf(const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
                std::byte* out) {
  const hn::CappedTag<T, 64 / sizeof(T)> full;
  const hn::CappedTag<T, 16 / sizeof(T)> block;
  const hn::CappedTag<T, 1> one;
  if (shape.row_items == kBookItems && kBookItems >= hn::Lanes(full)) {
    JoinRows<kBookItems>(full, shape, planes, first, count, out);
  } else if (shape.row_items >= hn::Lanes(full)) {
    JoinRows<0>(full, shape, planes, first, count, out);
  } else if (shape.row_items >= hn::Lanes(block)) {
    JoinRows<0>(block, shape, planes, first, count, out);
  } else {
    JoinRows<0>(one, shape, planes, first, count, out);
  }
}

void SplitXorRows(const XorRows& shape, const std::byte* rows, std::byte* planes) {
  switch (shape.item_bytes) {
    case 2:
      return SplitRowsOf<std::uint16_t>(shape, rows, planes);
    case 4:
      return SplitRowsOf<std::uint32_t>(shape, rows, planes);
    default:
      return SplitRowsOf<std::uint64_t>(shape, rows, planes);
  }
}

void JoinXorRows(const XorRows& shape, const std::byte* planes, std::size_t first, std::size_t count,
                 std::byte* out) {
  switch (shape.item_bytes) {
    case 2:
      return JoinRowsOf<std::uint16_t>(shape, planes, first, count, out);
    case 4:
      return JoinRowsOf<std::uint32_t>(shape, planes, first, count, out);
    default:
      return JoinRowsOf<std::uint64_t>(shape, planes, first, count, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // include guard, once per target
