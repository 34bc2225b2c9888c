#include "core/simd/levels/levels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/levels/levels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include "core/simd/levels/replay-inl.h"

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(LevelsKernelsOfTarget);

const LevelsKernels& levels_kernels() noexcept { return *HWY_DYNAMIC_DISPATCH(LevelsKernelsOfTarget)(); }

}  // namespace cdd::simd
#endif  // HWY_ONCE
