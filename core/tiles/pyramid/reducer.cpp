#include "core/tiles/pyramid/reducer.h"

#include "core/base/error.h"

namespace cdd::tiles {

using U64 = std::uint64_t;

Reducer::Reducer(DType dtype, Reduce reduce, std::vector<U64> frame, const std::vector<bool>& halves,
                 unsigned frames)
    : kind_(dtype.kind()), reduce_(reduce), item_bytes_(dtype.item_bytes()), frames_(frames) {
  const simd::RowKernels kernels = simd::row_kernels(kind_, reduce);
  if (kernels.held_bytes == 0) {
    const bool is_complex = kind_ == Kind::Complex64 || kind_ == Kind::Complex128;
    if (is_complex) fail(ErrorCode::InvalidArgument, "complex items have no minimum and no maximum");
    fail(ErrorCode::InvalidArgument, "items of dtype 0x%04x cannot be reduced to another scale",
         dtype.code());
  }
  unsigned halvings = frames == 2 ? 1 : 0;
  for (const bool is_halved : halves) halvings += is_halved ? 1 : 0;
  if (halvings > simd::kMostHalvings) {
    fail(ErrorCode::InvalidArgument, "%u dimensions are halved at once, at most %u may be", halvings,
         simd::kMostHalvings);
  }
  for (std::size_t d = 0; d + 1 < frame.size(); ++d) {
    axes_.push_back({frame[d], halves[d]});
    rows_ *= halves[d] ? halved(frame[d]) : frame[d];
  }
  if (!frame.empty()) {
    columns_ = frame.back();
    halves_columns_ = halves.back();
  }
  const U64 out_columns = halves_columns_ ? halved(columns_) : columns_;
  out_bytes_ = rows_ * out_columns * item_bytes_;
  row_held_bytes_ = static_cast<std::size_t>(out_columns) * kernels.held_bytes;
  if (kernels.end != nullptr) held_bytes_ = row_held_bytes_ * (frames == 2 ? rows_ : 1);
}

void Reducer::take_memory() {
  out_.resize(static_cast<std::size_t>(out_bytes_));
  held_.resize(static_cast<std::size_t>(held_bytes_));
}

void Reducer::find_sources(U64 out_row, Sources& sources) const noexcept {
  sources.first = 0;
  sources.shift = 0;
  sources.offsets[0] = 0;
  U64 stride = 1;
  for (std::size_t d = axes_.size(); d-- > 0;) {
    const Axis& axis = axes_[d];
    const U64 extent = axis.is_halved ? halved(axis.size) : axis.size;
    const U64 index = out_row % extent * (axis.is_halved ? 2 : 1);
    out_row /= extent;
    sources.first += index * stride;
    if (axis.is_halved && index + 1 < axis.size) {
      const std::size_t n = std::size_t{1} << sources.shift++;
      for (std::size_t i = 0; i < n; ++i) sources.offsets[n + i] = sources.offsets[i] + stride;
    }
    stride *= axis.size;
  }
}

// The last item of an odd row is no pair.
void Reducer::take_row(const simd::RowKernels& kernels, const Sources& sources, const std::byte* frame,
                       std::byte* held) const noexcept {
  const std::size_t row_bytes = static_cast<std::size_t>(columns_) * item_bytes_;
  const auto n = static_cast<std::size_t>(halves_columns_ ? columns_ / 2 : columns_);
  const bool is_odd = halves_columns_ && columns_ % 2 != 0;
  for (std::size_t i = 0; i < std::size_t{1} << sources.shift; ++i) {
    const auto* const takes = i == 0 && fed_ == 0 ? kernels.begin : kernels.add;
    if (takes[0] == nullptr) return;
    const std::byte* const row =
        frame + static_cast<std::size_t>(sources.first + sources.offsets[i]) * row_bytes;
    takes[halves_columns_ ? 1 : 0](row, n, held);
    if (is_odd) takes[0](row + row_bytes - item_bytes_, 1, held + n * kernels.held_bytes);
  }
}

void Reducer::end_row(const simd::RowKernels& kernels, const std::byte* held, unsigned shift,
                      std::byte* out) const noexcept {
  const auto n = static_cast<std::size_t>(halves_columns_ ? columns_ / 2 : columns_);
  kernels.end(held, n, shift + (halves_columns_ ? 1 : 0), out);
  if (halves_columns_ && columns_ % 2 != 0)
    kernels.end(held + n * kernels.held_bytes, 1, shift, out + n * item_bytes_);
}

U64 Reducer::source_bytes(U64 rows) const noexcept {
  if (rows == 0) return 0;
  Sources sources;
  find_sources(rows - 1, sources);
  const U64 last = sources.first + sources.offsets[(std::size_t{1} << sources.shift) - 1];
  return (last + 1) * columns_ * item_bytes_;
}

void Reducer::take_rows(const std::byte* frame, U64 first, U64 last) noexcept {
  const simd::RowKernels kernels = simd::row_kernels(kind_, reduce_);
  const std::size_t out_row_bytes = out_.size() / static_cast<std::size_t>(rows_);
  const std::size_t row_bytes = static_cast<std::size_t>(columns_) * item_bytes_;
  const bool may_be_two_rows =
      kernels.two_rows != nullptr && frames_ == 1 && halves_columns_ && columns_ % 2 == 0;
  Sources sources;
  for (U64 r = first; r < last; ++r) {
    find_sources(r, sources);
    std::byte* const out = out_.data() + static_cast<std::size_t>(r) * out_row_bytes;
    if (may_be_two_rows && sources.shift == 1) {
      const std::byte* const row = frame + static_cast<std::size_t>(sources.first) * row_bytes;
      kernels.two_rows(row, row + static_cast<std::size_t>(sources.offsets[1]) * row_bytes,
                       static_cast<std::size_t>(columns_) / 2, out);
      continue;
    }
    std::byte* const held =
        kernels.end == nullptr
            ? out
            : held_.data() + (frames_ == 2 ? static_cast<std::size_t>(r) : 0) * row_held_bytes_;
    take_row(kernels, sources, frame, held);
    if (kernels.end != nullptr && frames_ == 1) end_row(kernels, held, sources.shift, out);
  }
}

bool Reducer::end_frame() noexcept {
  if (++fed_ < frames_) return false;
  if (frames_ == 1) fed_ = 0;
  return frames_ == 1 || finish();
}

bool Reducer::finish() noexcept {
  if (fed_ == 0) return false;
  const simd::RowKernels kernels = simd::row_kernels(kind_, reduce_);
  const std::size_t out_row_bytes = out_.size() / static_cast<std::size_t>(rows_);
  Sources sources;
  for (U64 r = 0; kernels.end != nullptr && r < rows_; ++r) {
    find_sources(r, sources);
    const auto row = static_cast<std::size_t>(r);
    end_row(kernels, held_.data() + row * row_held_bytes_, sources.shift + fed_ - 1,
            out_.data() + row * out_row_bytes);
  }
  fed_ = 0;
  return true;
}

}  // namespace cdd::tiles
