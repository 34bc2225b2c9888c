#include "core/simd/tiles/scatter.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/tiles/scatter.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kLeastStreamed = 128;  // shorter runs are faster through the caches

using ByteTag = hn::CappedTag<std::uint8_t, kLineBytes>;

HWY_INLINE const std::uint8_t* Of(const std::byte* p) { return reinterpret_cast<const std::uint8_t*>(p); }
HWY_INLINE std::uint8_t* Of(std::byte* p) { return reinterpret_cast<std::uint8_t*>(p); }

// `bytes` is a multiple of a line, `to` is aligned to one.
HWY_INLINE void StreamRun(const std::byte* from, std::size_t bytes, std::byte* to) {
  const ByteTag d;
  const std::size_t step = hn::Lanes(d);
  for (std::size_t i = 0; i < bytes; i += kLineBytes) {
    for (std::size_t j = 0; j < kLineBytes; j += step) {
      hn::Stream(hn::LoadU(d, Of(from + i + j)), d, Of(to + i + j));
    }
  }
}

// Short runs of whole vectors, without a call for each.
HWY_INLINE void CopyLines(const std::byte* from, std::size_t bytes, std::byte* to) {
  const ByteTag d;
  const std::size_t step = hn::Lanes(d);
  for (std::size_t i = 0; i < bytes; i += kLineBytes) {
    for (std::size_t j = 0; j < kLineBytes; j += step) {
      hn::StoreU(hn::LoadU(d, Of(from + i + j)), d, Of(to + i + j));
    }
  }
}

HWY_INLINE void CopyRun(const std::byte* from, std::size_t bytes, std::byte* to) {
  std::memcpy(to, from, bytes);
}

template <class Copy>
HWY_INLINE void EachRun(const std::byte* row, std::size_t rows, std::size_t row_bytes, std::size_t run_bytes,
                        std::byte* const* tiles, std::size_t offset, Copy&& copy) {
  const std::size_t whole = row_bytes / run_bytes;
  const std::size_t rest = row_bytes % run_bytes;
  for (std::size_t r = 0; r < rows; ++r, offset += run_bytes) {
    for (std::size_t j = 0; j < whole; ++j, row += run_bytes) copy(row, run_bytes, tiles[j] + offset);
    if (rest != 0) {
      std::memcpy(tiles[whole] + offset, row, rest);
      row += rest;
    }
  }
}

bool AreAligned(std::size_t run_bytes, std::size_t row_bytes, std::byte* const* tiles, std::size_t offset) {
  std::uintptr_t low = run_bytes | offset;
  for (std::size_t j = 0; j < row_bytes / run_bytes; ++j) low |= reinterpret_cast<std::uintptr_t>(tiles[j]);
  return low % kLineBytes == 0;
}

void ScatterRows(const std::byte* rows_at, std::size_t rows, std::size_t row_bytes, std::size_t run_bytes,
                 std::byte* const* tiles, std::size_t offset) {
  const auto each = [&](auto&& copy)
                        HWY_ATTR { EachRun(rows_at, rows, row_bytes, run_bytes, tiles, offset, copy); };
  if (run_bytes >= kLeastStreamed && AreAligned(run_bytes, row_bytes, tiles, offset)) {
    each([](const std::byte* from, std::size_t bytes, std::byte* to)
             HWY_ATTR { StreamRun(from, bytes, to); });
    hwy::FlushStream();
  } else if (run_bytes % kLineBytes == 0 && run_bytes <= 4 * kLineBytes) {
    each([](const std::byte* from, std::size_t bytes, std::byte* to)
             HWY_ATTR { CopyLines(from, bytes, to); });
  } else {
    each([](const std::byte* from, std::size_t bytes, std::byte* to) HWY_ATTR { CopyRun(from, bytes, to); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(ScatterRows);

void scatter_rows(const std::byte* rows_at, std::size_t rows, std::size_t row_bytes, std::size_t run_bytes,
                  std::byte* const* tiles, std::size_t offset) noexcept {
  HWY_DYNAMIC_DISPATCH(ScatterRows)(rows_at, rows, row_bytes, run_bytes, tiles, offset);
}

namespace reference {

void scatter_rows(const std::byte* rows_at, std::size_t rows, std::size_t row_bytes, std::size_t run_bytes,
                  std::byte* const* tiles, std::size_t offset) noexcept {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t x = 0; x < row_bytes; ++x) {
      tiles[x / run_bytes][offset + r * run_bytes + x % run_bytes] = rows_at[r * row_bytes + x];
    }
  }
}

}  // namespace reference
}  // namespace cdd::simd
#endif  // HWY_ONCE
