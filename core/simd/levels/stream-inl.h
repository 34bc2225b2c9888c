// Highway code that LEVELS' streams of integers are read by, and the vectors that all its kernels work with.
#if defined(CDD_SIMD_LEVELS_STREAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_LEVELS_STREAM_INL_H_
#undef CDD_SIMD_LEVELS_STREAM_INL_H_
#else
#define CDD_SIMD_LEVELS_STREAM_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Up to 16 lanes, their number known at compile time: the shuffle tables below depend on it.
#if HWY_TARGET == HWY_SCALAR
constexpr std::size_t kLanes = 1;
#elif HWY_HAVE_SCALABLE
constexpr std::size_t kLanes = 4;
#else
constexpr std::size_t kLanes = HWY_MIN(HWY_MAX_BYTES / 4, 16);
#endif
using D32 = hn::FixedTag<std::uint32_t, kLanes>;
// For squeezing lanes together and spreading them out, which AVX2 has no instruction for: Highway's table for
// a half vector is quick, the one for a whole vector is copied to the stack each time.
constexpr std::size_t kSqueezeLanes = HWY_TARGET == HWY_AVX2 ? 4 : kLanes;
using S32 = hn::FixedTag<std::uint32_t, kSqueezeLanes>;
constexpr std::size_t kGroup = 16;  // values that start on a byte whatever the width
constexpr unsigned kMaxWidth = 24;  // a value and its bit offset fit into 4 bytes

#if HWY_TARGET != HWY_SCALAR
// Values whose bytes one load brings and one shuffle puts in place: all of a vector where bytes can go
// anywhere, else those of 16 bytes.
#undef CDD_LOAD_BLOCKS
#define CDD_LOAD_BLOCKS (HWY_MAX_BYTES >= 32 && !HWY_HAVE_SCALABLE && HWY_TARGET > HWY_AVX3_DL)
constexpr std::size_t kLoadLanes = CDD_LOAD_BLOCKS ? 4 : kLanes;

// For each width and each value of a group: which bytes of its load hold it, and its bit offset.
struct UnpackTables {
  alignas(64) std::uint8_t bytes[kMaxWidth + 1][kGroup * 4];
  alignas(64) std::uint32_t shifts[kMaxWidth + 1][kGroup];
};
constexpr UnpackTables MakeUnpackTables() {
  UnpackTables t{};
  for (unsigned width = 0; width <= kMaxWidth; ++width) {
    for (unsigned i = 0; i < kGroup; ++i) {
      const unsigned load = static_cast<unsigned>(i / kLoadLanes * kLoadLanes * width) / 8;
      for (unsigned b = 0; b < 4; ++b) {
        t.bytes[width][i * 4 + b] = static_cast<std::uint8_t>((i * width) / 8 - load + b);
      }
      t.shifts[width][i] = (i * width) % 8;
    }
  }
  return t;
}
constexpr UnpackTables kUnpack = MakeUnpackTables();

#if CDD_LOAD_BLOCKS
// The bytes of kLanes values of `width` bits from the `first` of a group on: 16 for each four of them.
HWY_INLINE hn::Vec<hn::Repartition<std::uint8_t, D32>> LoadBlocks(const std::uint8_t* bytes, unsigned width,
                                                                  std::size_t first) {
  const hn::FixedTag<std::uint8_t, 16> block;
  const hn::FixedTag<std::uint8_t, 32> pair;
  const auto load = [&](std::size_t v) HWY_ATTR {
    const auto high = hn::LoadU(block, bytes + (v + kLoadLanes) * width / 8);
    return hn::Combine(pair, high, hn::LoadU(block, bytes + v * width / 8));
  };
#if HWY_MAX_BYTES >= 64
  return hn::Combine(hn::FixedTag<std::uint8_t, 64>(), load(first + 8), load(first));
#else
  return load(first);
#endif
}
#endif

// store(values, i) for each vector of values from i on, of n values of `width` bits from 1 to 24.
template <class Store>
HWY_INLINE void UnpackEach(const std::byte* in, unsigned width, std::size_t n, const Store& store) {
  const D32 d;
  const hn::Repartition<std::uint8_t, D32> d8;
  const auto mask = hn::Set(d, (1u << width) - 1);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
#if !CDD_LOAD_BLOCKS && HWY_MAX_BYTES >= 64 && !HWY_HAVE_SCALABLE
  const auto shifts = hn::Load(d, kUnpack.shifts[width]);
  if (width <= 8) {
    // Sixteen values are in 16 bytes, and bytes behind these are none of their bits.
    const auto index = hn::Load(d8, kUnpack.bytes[width]);
    for (std::size_t i = 0; i < n; i += kGroup, bytes += width * kGroup / 8) {
      const auto words = hn::BitCast(d, hn::TableLookupBytes(hn::LoadDup128(d8, bytes), index));
      store(hn::And(hn::Shr(words, shifts), mask), i);
    }
    return;
  }
#endif
  for (std::size_t i = 0; i < n; i += kGroup, bytes += width * kGroup / 8) {
    for (std::size_t v = 0; v < kGroup; v += kLanes) {
#if CDD_LOAD_BLOCKS
      const auto index = hn::Load(d8, kUnpack.bytes[width] + v * 4);
      const auto words = hn::BitCast(d, hn::TableLookupBytes(LoadBlocks(bytes, width, v), index));
#else
      const auto raw = hn::LoadU(d8, bytes + v * width / 8);
      const auto index = hn::IndicesFromVec(d8, hn::Load(d8, kUnpack.bytes[width] + v * 4));
      const auto words = hn::BitCast(d, hn::TableLookupLanes(raw, index));
#endif
      store(hn::And(hn::Shr(words, hn::Load(d, kUnpack.shifts[width] + v)), mask), i + v);
    }
  }
}

inline void Unpack(const std::byte* in, unsigned width, std::size_t n, std::uint32_t base,
                   std::uint32_t* out) {
  const D32 d;
  if (width == 0) {
    const auto bases = hn::Set(d, base);
    for (std::size_t i = 0; i < n; i += kLanes) hn::StoreU(bases, d, out + i);
    return;
  }
  UnpackEach(in, width, n, [=](auto values, std::size_t i) HWY_ATTR {  // a vector of SVE cannot be captured
    hn::StoreU(hn::Add(values, hn::Set(d, base)), d, out + i);
  });
}

inline void UnpackWide(const std::byte* low, const std::byte* high, unsigned high_width, std::size_t n,
                       std::uint32_t base, std::uint32_t* out) {
  const D32 d;
  const hn::Rebind<std::uint16_t, D32> d16;
  const auto* lows = reinterpret_cast<const std::uint16_t*>(low);
  UnpackEach(high, high_width, n, [=](auto values, std::size_t i) HWY_ATTR {
    const auto rest = hn::Add(hn::PromoteTo(d, hn::LoadU(d16, lows + i)), hn::Set(d, base));
    hn::StoreU(hn::Add(hn::ShiftLeft<16>(values), rest), d, out + i);
  });
}
#else
inline void Unpack(const std::byte* in, unsigned width, std::size_t n, std::uint32_t base,
                   std::uint32_t* out) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t word;
    std::memcpy(&word, in + i * width / 8, 4);
    out[i] = base + (word >> (i * width % 8) & ((1u << width) - 1));
  }
}

inline void UnpackWide(const std::byte* low, const std::byte* high, unsigned high_width, std::size_t n,
                       std::uint32_t base, std::uint32_t* out) {
  Unpack(high, high_width, n, 0, out);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t rest;
    std::memcpy(&rest, low + i * sizeof rest, sizeof rest);
    out[i] = (out[i] << 16) + rest + base;
  }
}
#endif

inline void Unzigzag(std::uint32_t* values, std::size_t n) {
  const D32 d;
  const auto one = hn::Set(d, 1u);
  for (std::size_t i = 0; i < n; i += kLanes) {
    const auto v = hn::LoadU(d, values + i);
    const auto sign = hn::Sub(hn::Zero(d), hn::And(v, one));
    hn::StoreU(hn::Xor(hn::ShiftRight<1>(v), sign), d, values + i);
  }
}

inline void PrefixSum(std::uint32_t* values, std::size_t n) {
  std::size_t i = 0;
  std::uint32_t last = 0;
#if HWY_TARGET != HWY_SCALAR
  const D32 d;
  auto before = hn::Zero(d);
  for (; i + kLanes <= n; i += kLanes) {
    auto v = hn::LoadU(d, values + i);
    v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
    v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
    // Each four have their sums now, but not those of the fours before them.
    if constexpr (kLanes >= 8) {
      auto fours = hn::SlideUpBlocks<1>(d, hn::Broadcast<3>(v));
      if constexpr (kLanes >= 16) {
        fours = hn::Add(fours, hn::SlideUpBlocks<1>(d, fours));
        fours = hn::Add(fours, hn::SlideUpBlocks<2>(d, fours));
      }
      v = hn::Add(v, fours);
    }
    hn::StoreU(hn::Add(v, before), d, values + i);
    before = hn::Add(before, hn::BroadcastLane<kLanes - 1>(v));
  }
  last = hn::GetLane(before);
#endif
  // What is behind n stays: there may be values that are no part of the sums.
  for (; i < n; ++i) values[i] = last += values[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#endif  // CDD_SIMD_LEVELS_STREAM_INL_H_
