#include "core/codec/book/cast.h"
#include "core/codec/work.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "core/simd/half.h"

namespace cdd {
namespace {

// Casting goes through a few rows at a time, so that the float32 in between stays in the nearest cache.
constexpr std::size_t kStepItems = 2048;
constexpr std::size_t kCheckBytes = std::size_t{256} << 10;  // of rows that are checked at a time

// The middle of the two innermost levels. Either half of a book may be ordered away from the middle or
// towards it, so these are the nearest pair of a first or last level of each half.
float mid_of(const RowLayout& layout, const std::byte* row, std::uint64_t row_number) {
  const std::size_t levels = layout.dims()[0];
  const std::size_t half = levels / 2;
  const auto price = [&](std::size_t level) {
    return static_cast<double>(load<float>(row + level * layout.dims()[1] * sizeof(float)));
  };
  double nearest = std::numeric_limits<double>::infinity();
  auto mid = std::numeric_limits<float>::quiet_NaN();
  for (const std::size_t a : {std::size_t{0}, half > 0 ? half - 1 : 0}) {
    for (const std::size_t b : {half, levels - 1}) {
      const double apart = std::fabs(price(a) - price(b));
      if (!(apart < nearest)) continue;  // NaN is no candidate
      nearest = apart;
      mid = static_cast<float>((price(a) + price(b)) / 2);
    }
  }
  if (!std::isfinite(mid) || mid == 0) {
    fail(ErrorCode::InvalidArgument, "row %llu has the mid %g, by which it cannot be normalised",
         static_cast<unsigned long long>(row_number), static_cast<double>(mid));
  }
  return mid;
}

}  // namespace

void cast_rows(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, const Float16Options& options,
               std::span<float> mids, std::uint16_t* halves, std::uint64_t first_row) {
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
        mid = mids[row] = mid_of(layout, given, first_row + row);
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
  const MutableBytes mask_bytes = scratch<CodecWork2>().get(items * sizeof(std::uint32_t));
  auto* mask = reinterpret_cast<std::uint32_t*>(mask_bytes.data());
  std::fill_n(mask, items, 0u);
  for (std::size_t i = 0; i < items; i += layout.dims()[1]) mask[i] = ~0u;
  simd::scale_half_rows({n_rows, items, mask, scale.mids, scale.size_scale}, halves, out);
}

CastError cast_error(const RowLayout& layout, Bytes given, Bytes returned, std::uint64_t first_row) {
  CastError error;
  const std::size_t row_items = layout.row_items();
  const std::size_t features = layout.dims()[1];
  for (std::size_t k = 0; k < given.size() / sizeof(float); ++k) {
    const auto value = load<float>(given.data() + k * sizeof(float));
    const auto got = load<float>(returned.data() + k * sizeof(float));
    if (!std::isfinite(value)) continue;
    if (!std::isfinite(got)) {
      fail(ErrorCode::InvalidArgument,
           "row %llu, level %zu, feature %zu: %.9g would become infinite as float16",
           static_cast<unsigned long long>(first_row + k / row_items), k % row_items / features, k % features,
           static_cast<double>(value));
    }
    const double absolute = std::fabs(static_cast<double>(got) - static_cast<double>(value));
    error.max_absolute = std::max(error.max_absolute, absolute);
    if (value != 0) {
      error.max_relative = std::max(error.max_relative, absolute / std::fabs(static_cast<double>(value)));
    }
  }
  return error;
}

void check_castable(const RowLayout& layout, Bytes rows, std::uint64_t n_rows,
                    const Float16Options& options) {
  const std::size_t row_bytes = layout.row_bytes();
  const std::uint64_t step_rows = std::max<std::uint64_t>(1, kCheckBytes / row_bytes);
  for (std::uint64_t first = 0; first < n_rows; first += step_rows) {
    const auto n = static_cast<std::uint32_t>(std::min(step_rows, n_rows - first));
    const Bytes given = rows.subspan(static_cast<std::size_t>(first) * row_bytes, n * row_bytes);
    std::byte* const work = scratch<CodecWork>().get(given.size() * 3 / 2 + sizeof(float) * n).data();
    auto* const mids = reinterpret_cast<float*>(work + given.size());
    auto* const halves = reinterpret_cast<std::uint16_t*>(mids + n);
    const bool by_mid = options.normalise == Normalise::Mid;
    cast_rows(layout, given, n, options, {mids, by_mid ? n : 0}, halves, first);
    uncast_rows(layout, n, {options.size_scale, by_mid ? mids : nullptr}, halves, work);
    cast_error(layout, given, {work, given.size()}, first);
  }
}

}  // namespace cdd
