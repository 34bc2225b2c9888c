// That for_each_target runs its body, and dispatch then takes that target's code: what the tests of kernels
// rest on. The names go to the output, which so says whose kernels this run of the tests was for.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/core/simd_targets_test.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::test {
namespace HWY_NAMESPACE {

std::int64_t OwnTarget() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace cdd::test
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/core/simd_targets.h"

namespace cdd::test {

HWY_EXPORT(OwnTarget);

TEST(SimdTargets, DispatchTakesEachInItsTurn) {
  std::int64_t seen = 0;
  for_each_target([&] {
    const std::int64_t target = HWY_DYNAMIC_DISPATCH(OwnTarget)();
    EXPECT_EQ(seen & target, 0) << hwy::TargetName(target);
    seen |= target;
    std::printf("[ TARGET   ] %s\n", hwy::TargetName(target));
  });
  EXPECT_NE(seen, 0);
  EXPECT_EQ(seen, HWY_SUPPORTED_TARGETS & HWY_TARGETS);
}

}  // namespace cdd::test
#endif  // HWY_ONCE
