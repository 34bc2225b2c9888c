#include "core/codec/book_cast.h"

#include <algorithm>
#include <cmath>

#include "core/base/scratch.h"
#include "core/simd/half.h"

namespace cdd {
namespace {

// Casting goes through a few rows at a time, so that the float32 in between stays in the nearest cache.
constexpr std::size_t kStepItems = 2048;

float mid_of(const RowLayout& layout, const std::byte* row, std::uint64_t row_number) {
  const std::size_t other_side = std::size_t{layout.dims()[0] / 2} * layout.dims()[1];
  const auto ask = load<float>(row);
  const auto bid = load<float>(row + other_side * sizeof(float));
  const auto mid = static_cast<float>((static_cast<double>(ask) + static_cast<double>(bid)) / 2);
  if (!std::isfinite(mid) || mid == 0) {
    fail(ErrorCode::InvalidArgument, "row %llu has the mid %g, by which it cannot be normalised",
         static_cast<unsigned long long>(row_number), static_cast<double>(mid));
  }
  return mid;
}

}  // namespace

void cast_rows(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Float16Options& options,
               std::span<float> mids, std::uint16_t* halves) {
  if (!std::isfinite(options.size_scale) || options.size_scale <= 0) {
    fail(ErrorCode::InvalidArgument, "size_scale must be finite and above 0, got %g",
         static_cast<double>(options.size_scale));
  }
  const std::size_t items = std::size_t{layout.row_items()} * n_rows;
  const std::size_t features = layout.dims()[1];
  const bool by_mid = options.normalise == Normalise::Mid;
  float mid = 1;
  float step[kStepItems];
  for (std::size_t first = 0; first < items; first += kStepItems) {
    const std::size_t n = std::min(kStepItems, items - first);
    for (std::size_t k = first; k < first + n; ++k) {
      const std::byte* given = rows.data() + k * sizeof(float);
      if (by_mid && k % layout.row_items() == 0) {
        const std::size_t row = k / layout.row_items();
        mid = mids[row] = mid_of(layout, given, row);
      }
      const auto v = load<float>(given);
      if (k % features != 0) {
        step[k - first] = v / options.size_scale;
      } else {
        step[k - first] =
            by_mid ? static_cast<float>(static_cast<double>(v) / static_cast<double>(mid) - 1.0) : v;
      }
    }
    simd::float_to_half(step, n, halves + first);
  }
}

void uncast_rows(const RowLayout& layout, std::uint32_t n_rows, const BookScale& scale,
                 const std::uint16_t* halves, std::byte* out) {
  if (scale.mids == nullptr && scale.size_scale == 1.0f) {
    return simd::half_to_float(halves, std::size_t{layout.row_items()} * n_rows, out);
  }
  const std::size_t items = layout.row_items();
  const MutableBytes mask_bytes = scratch(Stage::Transform2).get(items * sizeof(std::uint32_t));
  auto* mask = reinterpret_cast<std::uint32_t*>(mask_bytes.data());
  std::fill_n(mask, items, 0u);
  for (std::size_t i = 0; i < items; i += layout.dims()[1]) mask[i] = ~0u;
  simd::scale_half_rows({n_rows, items, mask, scale.mids, scale.size_scale}, halves, out);
}

CastError cast_error(const RowLayout& layout, Bytes given, Bytes returned) {
  CastError error;
  const std::size_t row_items = layout.row_items();
  const std::size_t features = layout.dims()[1];
  for (std::size_t k = 0; k < given.size() / sizeof(float); ++k) {
    const auto value = load<float>(given.data() + k * sizeof(float));
    const auto got = load<float>(returned.data() + k * sizeof(float));
    if (!std::isfinite(value)) continue;
    if (!std::isfinite(got)) {
      fail(ErrorCode::InvalidArgument,
           "row %zu, level %zu, feature %zu: %.9g would become infinite as float16", k / row_items,
           k % row_items / features, k % features, static_cast<double>(value));
    }
    const double absolute = std::fabs(static_cast<double>(got) - static_cast<double>(value));
    error.max_absolute = std::max(error.max_absolute, absolute);
    if (value != 0) {
      error.max_relative = std::max(error.max_relative, absolute / std::fabs(static_cast<double>(value)));
    }
  }
  return error;
}

}  // namespace cdd
