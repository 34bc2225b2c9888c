// Highway code that makes entries of LEVELS, and rows of them.
#if defined(CDD_SIMD_LEVELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_INL_H_
#undef CDD_SIMD_LEVELS_INL_H_
#else
#define CDD_SIMD_LEVELS_INL_H_
#endif

#include <array>
#include <cstring>
#include <type_traits>

#include "core/simd/levels/levels.h"
#include "core/simd/levels/stream-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// float32 bits of a column's values: int / 10^scale by one double multiplication, or the bits as they are.
HWY_INLINE hn::Vec<D32> Float32Bits(hn::Vec<D32> v, std::uint8_t scale) {
  const D32 d;
  if (scale == LevelsColumns::kBits) return v;
  // An integer is rounded once, too.
  if (scale == 0)
    return hn::BitCast(d, hn::ConvertTo(hn::Rebind<float, D32>(), hn::BitCast(hn::RebindToSigned<D32>(), v)));
#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR
  const hn::Half<D32> dh;
  const hn::RebindToSigned<hn::Half<D32>> dih;
  const hn::Rebind<double, hn::Half<D32>> d64;
  const hn::Rebind<float, hn::Half<D32>> dfh;
  const auto m = hn::Set(d64, kInversePowers[scale]);
  const auto lo = hn::PromoteTo(d64, hn::BitCast(dih, hn::LowerHalf(dh, v)));
  const auto hi = hn::PromoteTo(d64, hn::BitCast(dih, hn::UpperHalf(dh, v)));
  const auto f_lo = hn::DemoteTo(dfh, hn::Mul(lo, m));
  const auto f_hi = hn::DemoteTo(dfh, hn::Mul(hi, m));
  return hn::BitCast(d, hn::Combine(hn::Rebind<float, D32>(), f_hi, f_lo));
#else
  alignas(64) std::uint32_t lanes[kLanes];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < kLanes; ++i) {
    const float f = static_cast<float>(static_cast<std::int32_t>(lanes[i]) * kInversePowers[scale]);
    std::memcpy(lanes + i, &f, 4);
  }
  return hn::Load(d, lanes);
#endif
}

template <std::size_t kFeatures>
HWY_INLINE void MakeFloat32Entries(const LevelsColumns& c, std::size_t n, std::byte* entries) {
  const D32 d;
  auto* out = reinterpret_cast<std::uint32_t*>(entries);
  const std::uint32_t* in = c.lanes;
  for (std::size_t i = 0; i < n; i += kLanes) {
    const auto a = Float32Bits(hn::LoadU(d, in + i), c.scales[0]);
    const auto b = Float32Bits(hn::LoadU(d, in + c.lane_pitch + i), c.scales[1]);
    if constexpr (kFeatures == 2) {
      hn::StoreInterleaved4(a, b, b, b, d, out + i * 4);
    } else {
      const auto e = Float32Bits(hn::LoadU(d, in + 2 * c.lane_pitch + i), c.scales[2]);
      hn::StoreInterleaved4(a, b, e, e, d, out + i * 4);
    }
  }
}

inline void MakeAnyEntries(const LevelsColumns& c, std::size_t n, std::byte* entries) {
  const D32 d;
  const std::size_t stride = levels_entry_stride(std::size_t{c.features} * c.item_bytes);
  const std::uint32_t* lane = c.lanes;
  for (std::uint32_t f = 0; f < c.features; ++f) {
    std::byte* out = entries + f * c.item_bytes;
    const std::uint8_t scale = c.scales[f];
    if (c.item_bytes == 4) {
      alignas(64) std::uint32_t bits[kLanes];
      for (std::size_t i = 0; i < n; i += kLanes) {
        hn::Store(Float32Bits(hn::LoadU(d, lane + i), scale), d, bits);
        for (std::size_t k = 0; k < kLanes && i + k < n; ++k)
          std::memcpy(out + (i + k) * stride, bits + k, 4);
      }
    } else if (scale == LevelsColumns::kBits) {
      for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(out + i * stride, lane + i, 4);
        std::memcpy(out + i * stride + 4, lane + c.lane_pitch + i, 4);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) {
        const double v = static_cast<std::int32_t>(lane[i]) / kPowers[scale];
        std::memcpy(out + i * stride, &v, 8);
      }
    }
    lane += c.lane_pitch * (c.item_bytes == 8 && scale == LevelsColumns::kBits ? 2 : 1);
  }
}

inline void MakeEntries(const LevelsColumns& c, std::size_t n, std::byte* entries) {
  if (c.item_bytes == 4 && c.features == 3) return MakeFloat32Entries<3>(c, n, entries);
  if (c.item_bytes == 4 && c.features == 2) return MakeFloat32Entries<2>(c, n, entries);
  MakeAnyEntries(c, n, entries);
}

inline bool SumIds(const std::uint32_t* starts, const std::uint32_t* deltas, std::size_t rows,
                   std::size_t slots, std::uint32_t n_entries, std::uint32_t* ids) {
  const D32 d;
  const auto limit = hn::Set(d, n_entries - 1);
  auto worst = hn::Zero(d);
  for (std::size_t v = 0; v < rows; v += kLanes) {
    // Lanes past the block's last row hold other rows' deltas; they must not count as bad.
    const auto used = hn::FirstN(d, rows - v);
    auto id = hn::LoadU(d, starts + v);
    worst = hn::Max(worst, hn::IfThenElseZero(used, id));
    hn::StoreU(hn::Min(id, limit), d, ids + v);
    for (std::size_t j = 1; j < slots; ++j) {
      id = hn::Add(id, hn::LoadU(d, deltas + (j - 1) * rows + v));
      worst = hn::Max(worst, hn::IfThenElseZero(used, id));
      hn::StoreU(hn::Min(id, limit), d, ids + j * kIdBlockRows + v);
    }
  }
  return hn::AllFalse(d, hn::Gt(worst, limit));
}

// Four ids, of 16 bits each, by one load: loads are what gathering waits for.
using FourIds = std::array<std::size_t, 4>;
HWY_INLINE FourIds LoadFour(const std::uint16_t* ids) {
  std::uint64_t all;
  std::memcpy(&all, ids, 8);
  const auto id = [all](int shift) { return static_cast<std::size_t>(all >> shift & 0xffff); };
  return {id(0), id(16), id(32), id(48)};
}

// The ids of slots one behind another, the same twice as large, or in a block's column. Twice an id times
// half a stride of 16 is an address without a shift.
struct ListedIds {
  static constexpr std::size_t kTimes = 1;
  const std::uint16_t* ids;
  HWY_INLINE std::size_t operator[](std::size_t i) const { return ids[i]; }
  HWY_INLINE FourIds Four(std::size_t i) const { return LoadFour(ids + i); }
};
struct DoubledIds {
  static constexpr std::size_t kTimes = 2;
  const std::uint16_t* ids;
  HWY_INLINE std::size_t operator[](std::size_t i) const { return ids[i]; }
  HWY_INLINE FourIds Four(std::size_t i) const { return LoadFour(ids + i); }
};
struct BlockIds {
  static constexpr std::size_t kTimes = 1;
  const std::uint32_t* ids;
  HWY_INLINE std::size_t operator[](std::size_t i) const { return ids[i * kIdBlockRows]; }
  HWY_INLINE FourIds Four(std::size_t i) const {
    return {(*this)[i], (*this)[i + 1], (*this)[i + 2], (*this)[i + 3]};
  }
};

#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
// Entries of 12 bytes, in steps of 16, in as few stores as there can be: they are what rows cost. Returns how
// many were made; up to 8 bytes behind them are written, but none behind n.
template <class Ids>
HWY_INLINE std::size_t GatherPairs(const std::byte* entries, const Ids& ids, std::size_t n, std::byte* out) {
  const hn::FixedTag<std::uint32_t, 8> d;
  const hn::Half<decltype(d)> dh;
  const auto entry = [=](std::size_t id) {
    return hn::Load(dh, reinterpret_cast<const std::uint32_t*>(entries + id * (16 / Ids::kTimes)));
  };
  const auto pair = [=](std::size_t a, std::size_t b) { return hn::Combine(d, entry(b), entry(a)); };
  auto* to = reinterpret_cast<std::uint32_t*>(out);
  std::size_t i = 0;
#if HWY_TARGET <= HWY_AVX3
  alignas(32) static constexpr std::uint32_t kPlaces[3][8] = {
      {0, 1, 2, 4, 5, 6, 8, 9}, {2, 4, 5, 6, 8, 9, 10, 12}, {5, 6, 8, 9, 10, 12, 13, 14}};
  const auto first = hn::SetTableIndices(d, kPlaces[0]), second = hn::SetTableIndices(d, kPlaces[1]),
             third = hn::SetTableIndices(d, kPlaces[2]);
  for (; i + 8 <= n; i += 8, to += 24) {
    const FourIds low = ids.Four(i), high = ids.Four(i + 4);
    const auto a = pair(low[0], low[1]), b = pair(low[2], low[3]);
    const auto c = pair(high[0], high[1]), e = pair(high[2], high[3]);
    hn::StoreU(hn::TwoTablesLookupLanes(d, a, b, first), d, to);
    hn::StoreU(hn::TwoTablesLookupLanes(d, b, c, second), d, to + 8);
    hn::StoreU(hn::TwoTablesLookupLanes(d, c, e, third), d, to + 16);
  }
#endif
  alignas(32) static constexpr std::uint32_t kPair[8] = {0, 1, 2, 4, 5, 6, 7, 7};
  const auto packed = hn::SetTableIndices(d, kPair);
  for (; i + 5 <= n; i += 4, to += 12) {
    const FourIds four = ids.Four(i);
    hn::StoreU(hn::TableLookupLanes(pair(four[0], four[1]), packed), d, to);
    hn::StoreU(hn::TableLookupLanes(pair(four[2], four[3]), packed), d, to + 6);
  }
  return i;
}
#endif

#if HWY_TARGET != HWY_SCALAR
// The same for entries of 8 bytes; nothing behind those made is written.
template <class Ids>
HWY_INLINE std::size_t GatherNarrow(const std::byte* entries, const Ids& ids, std::size_t n, std::byte* out) {
  const hn::FixedTag<std::uint64_t, 2> d;
  const auto entry = [=](std::size_t id) {
    return hn::Load(d, reinterpret_cast<const std::uint64_t*>(entries + id * (16 / Ids::kTimes)));
  };
  const auto pair = [=](std::size_t i) { return hn::InterleaveLower(d, entry(ids[i]), entry(ids[i + 1])); };
  auto* to = reinterpret_cast<std::uint64_t*>(out);
  std::size_t i = 0;
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
  const hn::FixedTag<std::uint64_t, 4> dd;
  for (; i + 4 <= n; i += 4) hn::StoreU(hn::Combine(dd, pair(i + 2), pair(i)), dd, to + i);
#endif
  for (; i + 2 <= n; i += 2) hn::StoreU(pair(i), d, to + i);
  return i;
}
#endif

// The entries of n ids one behind another. kBytes is the size of an entry where it is known at compile time
// (the common books), else 0.
template <std::size_t kBytes, class Ids>
HWY_INLINE void GatherEntries(const LevelsRows& r, const Ids& ids, std::size_t n, std::byte* out) {
  const std::byte* entries = r.entries;
  std::size_t i = 0;
  if constexpr (kBytes == 0) {
    const std::size_t stride = r.entry_stride / Ids::kTimes;
    for (; i < n; ++i) std::memcpy(out + i * r.entry_bytes, entries + ids[i] * stride, r.entry_bytes);
  } else {
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
    if constexpr (kBytes == 12) i = GatherPairs(entries, ids, n, out);
#endif
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kBytes == 8) i = GatherNarrow(entries, ids, n, out);
#endif
    // Whole vectors: what is written too much is overwritten by the next entry.
    constexpr std::size_t kStride = levels_entry_stride(kBytes) / Ids::kTimes, kLoose = kBytes <= 8 ? 8 : 16;
    for (; i + 1 < n; ++i) std::memcpy(out + i * kBytes, entries + ids[i] * kStride, kLoose);
    if (i < n) std::memcpy(out + i * kBytes, entries + ids[i] * kStride, kBytes);
  }
}

// f(the size of an entry if it is a common one, else 0).
template <class F>
HWY_INLINE void WithEntryBytes(std::size_t entry_bytes, const F& f) {
  switch (entry_bytes) {
    case 8:
      return f(std::integral_constant<std::size_t, 8>());
    case 12:
      return f(std::integral_constant<std::size_t, 12>());
    case 16:
      return f(std::integral_constant<std::size_t, 16>());
    default:
      return f(std::integral_constant<std::size_t, 0>());
  }
}

inline void Gather(const LevelsRows& r, const std::uint16_t* ids) {
  WithEntryBytes(r.entry_bytes, [&](auto bytes) {
    GatherEntries<decltype(bytes)::value>(r, ListedIds{ids}, r.rows * r.slots, r.out);
  });
}

inline void GatherBlock(const LevelsRows& r, const std::uint32_t* ids, std::size_t first) {
  WithEntryBytes(r.entry_bytes, [&](auto bytes) {
    for (std::size_t i = 0; i < r.rows; ++i) {
      GatherEntries<decltype(bytes)::value>(r, BlockIds{ids + first + i}, r.slots,
                                            r.out + i * r.slots * r.entry_bytes);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_INL_H_
