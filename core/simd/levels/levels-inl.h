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

#include "core/simd/either-inl.h"
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

#if HWY_TARGET != HWY_SCALAR
// What block of 16 bytes each value of a vector goes to, so that entries come out in order when blocks are
// interleaved: value i to block i mod the number of blocks.
struct BlockOrder {
  alignas(64) std::uint32_t of[kLanes];
};
constexpr BlockOrder MakeBlockOrder() {
  BlockOrder order{};
  for (std::size_t i = 0; i < kLanes; ++i)
    order.of[i] = static_cast<std::uint32_t>(i / 4 + i % 4 * (kLanes / 4));
  return order;
}
constexpr BlockOrder kBlockOrder = MakeBlockOrder();
#endif

template <std::size_t kFeatures>
HWY_INLINE void MakeFloat32Entries(const LevelsColumns& c, std::size_t n, std::byte* entries) {
  const D32 d;
  auto* out = reinterpret_cast<std::uint32_t*>(entries);
  const std::uint32_t* in = c.lanes;
  const auto column = [=](std::size_t feature, std::size_t i)
                          HWY_ATTR { return hn::LoadU(d, in + feature * c.lane_pitch + i); };
  if constexpr (kFeatures == 2) {
    for (std::size_t i = 0; i < n; i += kLanes) {
      hn::StoreInterleaved2(Float32Bits(column(0, i), c.scales[0]), Float32Bits(column(1, i), c.scales[1]), d,
                            out + i * 2);
    }
    return;
  }
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t i = 0; i < n; ++i) {
    const auto last = Float32Bits(column(2, i), c.scales[2]);
    hn::StoreInterleaved4(Float32Bits(column(0, i), c.scales[0]), Float32Bits(column(1, i), c.scales[1]),
                          last, last, d, out + i * 4);
  }
#else
  const hn::RepartitionToWide<D32> d64;
  const auto order = hn::SetTableIndices(d, kBlockOrder.of);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const auto items = [&](std::size_t feature) HWY_ATTR {
      return Float32Bits(hn::TableLookupLanes(column(feature, i), order), c.scales[feature]);
    };
    const auto a = items(0), b = items(1), e = items(2);
    const auto store = [&](auto ab, auto ee, std::size_t first) HWY_ATTR {
      const auto ab64 = hn::BitCast(d64, ab), ee64 = hn::BitCast(d64, ee);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab64, ee64)), d, out + (i + first) * 4);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab64, ee64)), d, out + (i + first + kLanes / 4) * 4);
    };
    store(hn::InterleaveLower(d, a, b), hn::InterleaveLower(d, e, e), 0);
    store(hn::InterleaveUpper(d, a, b), hn::InterleaveUpper(d, e, e), kLanes / 2);
  }
#endif
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
                   std::size_t slots, std::uint32_t n_entries, std::uint16_t* ids) {
  const D32 d;
  const hn::Rebind<std::uint16_t, D32> d16;
  const auto limit = hn::Set(d, n_entries - 1);
  auto worst = hn::Zero(d);
  for (std::size_t v = 0; v < rows; v += kLanes) {
    // Lanes past the block's last row hold other rows' deltas; they must not count as bad.
    const auto used = hn::FirstN(d, rows - v);
    auto id = hn::LoadU(d, starts + v);
    worst = hn::Max(worst, hn::IfThenElseZero(used, id));
    hn::StoreU(hn::TruncateTo(d16, hn::Min(id, limit)), d16, ids + v);
    for (std::size_t j = 1; j < slots; ++j) {
      id = hn::Add(id, hn::LoadU(d, deltas + (j - 1) * rows + v));
      worst = hn::Max(worst, hn::IfThenElseZero(used, id));
      hn::StoreU(hn::TruncateTo(d16, hn::Min(id, limit)), d16, ids + j * kIdBlockRows + v);
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
  const std::uint16_t* ids;
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
    return hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(entries + id * (8 / Ids::kTimes)));
  };
  const auto pair = [=](std::size_t a, std::size_t b) { return hn::InterleaveLower(d, entry(a), entry(b)); };
  auto* to = reinterpret_cast<std::uint64_t*>(out);
  std::size_t i = 0;
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
  const hn::FixedTag<std::uint64_t, 4> dd;
  for (; i + 4 <= n; i += 4) {
    const FourIds four = ids.Four(i);
    hn::StoreU(hn::Combine(dd, pair(four[2], four[3]), pair(four[0], four[1])), dd, to + i);
  }
#endif
  for (; i + 2 <= n; i += 2) hn::StoreU(pair(ids[i], ids[i + 1]), d, to + i);
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

#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
// Four entries of 8, 12 or 16 bytes one behind another, and nothing behind them.
template <std::size_t kBytes>
HWY_INLINE void PutFour(const std::byte* entries, const FourIds& ids, std::byte* out) {
  const hn::FixedTag<std::uint32_t, 8> d;
  const hn::Half<decltype(d)> dh;
  constexpr std::size_t kStride = levels_entry_stride(kBytes);
  const auto entry = [=](std::size_t k) {
    return hn::LoadU(dh, reinterpret_cast<const std::uint32_t*>(entries + ids[k] * kStride));
  };
  auto* to = reinterpret_cast<std::uint32_t*>(out);
  if constexpr (kBytes == 8) {
    const hn::FixedTag<std::uint64_t, 2> d64;
    const auto pair = [=](std::size_t k) {
      return hn::BitCast(
          dh, hn::InterleaveLower(d64, hn::BitCast(d64, entry(k)), hn::BitCast(d64, entry(k + 1))));
    };
    hn::StoreU(hn::Combine(d, pair(2), pair(0)), d, to);
  } else {
    const auto low = hn::Combine(d, entry(1), entry(0)), high = hn::Combine(d, entry(3), entry(2));
    if constexpr (kBytes == 16) {
      hn::StoreU(low, d, to);
      hn::StoreU(high, d, to + 8);
    } else {
      alignas(32) static constexpr std::uint32_t kPlaces[2][8] = {{0, 1, 2, 4, 5, 6, 8, 9},
                                                                  {2, 4, 5, 6, 7, 7, 0, 1}};
      const auto rest = hn::TableLookupLanes(high, hn::SetTableIndices(d, kPlaces[1]));
#if HWY_TARGET <= HWY_AVX3
      const auto first = hn::TwoTablesLookupLanes(d, low, high, hn::SetTableIndices(d, kPlaces[0]));
#else
      alignas(32) static constexpr std::uint32_t kPair[8] = {0, 1, 2, 4, 5, 6, 7, 7};
      const auto pair = hn::TableLookupLanes(low, hn::SetTableIndices(d, kPair));
      const auto first = hn::IfThenElse(hn::FirstN(d, 6), pair, rest);
#endif
      hn::StoreU(first, d, to);
      hn::StoreU(hn::LowerHalf(dh, rest), dh, to + 8);
    }
  }
}

// Four rows of a block: one load brings a slot's ids of all of them, and loads are what gathering waits for.
template <std::size_t kBytes>
HWY_INLINE void GatherFourRows(const LevelsRows& r, const std::uint16_t* ids, std::byte* out) {
  const std::byte* const entries = r.entries;
  const std::size_t row_bytes = r.slots * kBytes;
  const auto word = [=](std::size_t slot) {
    std::uint64_t ids_of_rows;
    std::memcpy(&ids_of_rows, ids + slot * kIdBlockRows, 8);
    return ids_of_rows;
  };
  std::size_t j = 0;
  for (; j + 4 <= r.slots; j += 4) {
    const std::uint64_t a = word(j), b = word(j + 1), c = word(j + 2), e = word(j + 3);
    for (int k = 0; k < 4; ++k) {
      const auto id = [=](std::uint64_t w) { return static_cast<std::size_t>(w >> 16 * k & 0xffff); };
      PutFour<kBytes>(entries, {id(a), id(b), id(c), id(e)},
                      out + static_cast<std::size_t>(k) * row_bytes + j * kBytes);
    }
  }
  for (; j < r.slots; ++j) {
    const std::uint64_t a = word(j);
    for (int k = 0; k < 4; ++k) {
      const auto id = static_cast<std::size_t>(a >> 16 * k & 0xffff);
      std::memcpy(out + static_cast<std::size_t>(k) * row_bytes + j * kBytes,
                  entries + id * levels_entry_stride(kBytes), kBytes);
    }
  }
}
#endif

inline void GatherBlock(const LevelsRows& r, const std::uint16_t* ids, std::size_t first) {
  WithEntryBytes(r.entry_bytes, [&](auto bytes) HWY_ATTR {
    constexpr std::size_t kBytes = decltype(bytes)::value;
    const std::size_t row_bytes = r.slots * r.entry_bytes;
    std::size_t i = 0;
#if HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE
    if constexpr (kBytes != 0) {
      for (; i + 4 <= r.rows; i += 4) GatherFourRows<kBytes>(r, ids + first + i, r.out + i * row_bytes);
    }
#endif
    for (; i < r.rows; ++i) {
      GatherEntries<kBytes>(r, BlockIds{ids + first + i}, r.slots, r.out + i * row_bytes);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_INL_H_
