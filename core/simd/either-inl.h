// Masks of lanes of which either of two is set.
#if defined(CDD_SIMD_EITHER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CDD_SIMD_EITHER_INL_H_
#undef CDD_SIMD_EITHER_INL_H_
#else
#define CDD_SIMD_EITHER_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As hn::Or, which for SVE is a choice between a and b by a: gcc 12 makes of that an "or" of the first 16
// bytes of a vector alone, whatever its length is.
template <class M>
HWY_INLINE M Either(M a, M b) {
#if HWY_TARGET == HWY_SVE || HWY_TARGET == HWY_SVE2 || HWY_TARGET == HWY_SVE_256 || HWY_TARGET == HWY_SVE2_128
  return svorr_b_z(svptrue_b8(), a, b);
#else
  return hn::Or(a, b);
#endif
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
