// Bit-unpacking with Highway, for bitpack.cpp and for the kernels of this folder that unpack as one step.
//
// Eight values take exactly `width` bytes, so a group of eight starts on a byte. Its bytes are shuffled so
// that each lane holds the bytes its value lies in, then shifted right by the value's bit offset and masked.
#if defined(CDD_SIMD_BITPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_BITPACK_INL_H_
#undef CDD_SIMD_BITPACK_INL_H_
#else
#define CDD_SIMD_BITPACK_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include <hwy/highway.h>

#include "core/simd/bitpack.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// Whether a byte can move anywhere within a 64-byte vector (VPERMB); elsewhere only within 16-byte blocks.
#define CDD_BYTES_CROSS_BLOCKS (HWY_TARGET <= HWY_AVX3_DL)

// Lanes of 32 bits hold values of up to 25 bits, lanes of 64 bits values of up to 57: 7 bits of offset fit
// too.
template <class Lane>
inline constexpr unsigned kMaxLaneWidth = sizeof(Lane) * 8 - 7;

// Where the values of a group lie, for lanes of type Lane: byte indices (relative to the first byte of the
// vector or of the 16-byte block) and bit offsets.
template <class Lane, size_t kValues>
struct GroupPattern {
  static constexpr size_t kBlockLanes = 16 / sizeof(Lane);
  alignas(64) Lane bytes[kValues];
  alignas(64) Lane shifts[kValues];
  size_t block_starts[kValues / kBlockLanes];

  HWY_INLINE GroupPattern(unsigned width, bool blocks) {
    constexpr Lane kOnes = static_cast<Lane>(0x0101010101010101u);
    constexpr Lane kRamp = static_cast<Lane>(0x0706050403020100u);
    for (size_t i = 0; i < kValues; ++i) {
      const size_t start = i * width / 8;
      const size_t block = i / kBlockLanes * kBlockLanes * width / 8;
      block_starts[i / kBlockLanes] = block;
      bytes[i] = static_cast<Lane>(static_cast<Lane>(start - (blocks ? block : 0)) * kOnes + kRamp);
      shifts[i] = static_cast<Lane>(i * width % 8);
    }
  }
};

// Lanes to values: 64-bit lanes also serve 32-bit values too wide for 32-bit lanes.
template <class D, class T>
HWY_INLINE void StoreValues(D d, hn::VFromD<D> v, T* out) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(T)) {
    hn::StoreU(v, d, out);
  } else {
    const hn::Rebind<T, D> narrow;
    hn::StoreU(hn::TruncateTo(narrow, v), narrow, out);
  }
}

#if CDD_BYTES_CROSS_BLOCKS

template <class Lane, class T>
HWY_INLINE void UnpackLanes(const uint8_t* HWY_RESTRICT in, size_t n, unsigned width, T base,
                            T* HWY_RESTRICT out) {
  constexpr size_t kValues = 64 / sizeof(Lane);
  const hn::FixedTag<Lane, kValues> d;
  const hn::FixedTag<uint8_t, 64> d8;
  const GroupPattern<Lane, kValues> pattern(width, false);
  const auto bytes = hn::IndicesFromVec(d8, hn::BitCast(d8, hn::Load(d, pattern.bytes)));
  const auto shifts = hn::Load(d, pattern.shifts);
  const auto mask = hn::Set(d, static_cast<Lane>((Lane{1} << width) - 1));
  const auto base_v = hn::Set(d, static_cast<Lane>(base));
  for (size_t i = 0; i < n; i += kValues, in += kValues / 8 * width) {
    const auto v = hn::BitCast(d, hn::TableLookupLanes(hn::LoadU(d8, in), bytes));
    StoreValues(d, hn::Add(hn::And(hn::Shr(v, shifts), mask), base_v), out + i);
  }
}

#else

template <class Lane, class T>
HWY_INLINE void UnpackLanes(const uint8_t* HWY_RESTRICT in, size_t n, unsigned width, T base,
                            T* HWY_RESTRICT out) {
  constexpr size_t kValues = 8;
  constexpr size_t kBlockLanes = 16 / sizeof(Lane);
#if HWY_TARGET <= HWY_AVX2
  constexpr size_t kLanes = 2 * kBlockLanes;
#else
  constexpr size_t kLanes = kBlockLanes;
#endif
  const hn::FixedTag<Lane, kLanes> d;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const hn::FixedTag<uint8_t, 16> block8;
  const GroupPattern<Lane, kValues> pattern(width, true);
  const auto mask = hn::Set(d, static_cast<Lane>((Lane{1} << width) - 1));
  const auto base_v = hn::Set(d, static_cast<Lane>(base));
  for (size_t i = 0; i < n; i += kValues, in += width) {
    for (size_t j = 0; j < kValues; j += kLanes) {
      const uint8_t* const start = in + pattern.block_starts[j / kBlockLanes];
#if HWY_TARGET <= HWY_AVX2
      const auto raw = hn::Combine(d8, hn::LoadU(block8, in + pattern.block_starts[j / kBlockLanes + 1]),
                                   hn::LoadU(block8, start));
#else
      const auto raw = hn::LoadU(block8, start);
#endif
      const auto v =
          hn::BitCast(d, hn::TableLookupBytes(raw, hn::BitCast(d8, hn::Load(d, pattern.bytes + j))));
      const auto shifted = hn::Shr(v, hn::Load(d, pattern.shifts + j));
      StoreValues(d, hn::Add(hn::And(shifted, mask), base_v), out + i + j);
    }
  }
}

#endif  // CDD_BYTES_CROSS_BLOCKS
#endif  // HWY_TARGET != HWY_SCALAR

// The contract of unpack32 and unpack64.
template <class T>
HWY_INLINE void Unpack(const uint8_t* HWY_RESTRICT in, size_t n, unsigned width, T base,
                       T* HWY_RESTRICT out) {
  if (width == 0) {
    for (size_t i = 0; i < n; ++i) out[i] = base;
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  if (sizeof(T) == 4 && width <= kMaxLaneWidth<uint32_t>) {
    return UnpackLanes<std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>(in, n, width, base, out);
  }
  if (width <= kMaxLaneWidth<uint64_t> && width < sizeof(T) * 8) {
    return UnpackLanes<uint64_t>(in, n, width, base, out);
  }
#endif
  if (width == sizeof(T) * 8) {
    std::memcpy(out, in, n * sizeof(T));
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] + base);
    return;
  }
  const auto* const bytes = reinterpret_cast<const std::byte*>(in);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<T>(base + unpack_one(bytes, i, width));
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
