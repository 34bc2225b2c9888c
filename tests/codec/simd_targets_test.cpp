// That for_each_target runs its body, and dispatch then takes that target's code: what the tests of kernels
// rest on. The names go to the output, which so says whose kernels this run of the tests was for.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/codec/simd_targets_test.cpp"
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
#include <cstdlib>
#include <string>

#include "tests/rig/simd_targets.h"

namespace cdd::test {
namespace {

std::int64_t named_target(const std::string& name) {
  for (std::int64_t left = HWY_SUPPORTED_TARGETS & HWY_TARGETS; left != 0; left &= left - 1) {
    if (name == hwy::TargetName(left & -left)) return left & -left;
  }
  std::fprintf(stderr, "CDD_TEST_TARGET=%s: not compiled, or this CPU does not have it\n", name.c_str());
  std::exit(2);
}

// Before the first test, so that no kernel has been chosen yet.
class OneTarget : public testing::Environment {
  void SetUp() override { choose_targets(only_target()); }
};

const testing::Environment* const kOneTarget = testing::AddGlobalTestEnvironment(new OneTarget);

}  // namespace

std::int64_t only_target() {
  static const char* const name = std::getenv("CDD_TEST_TARGET");
  static const std::int64_t target = name == nullptr ? 0 : named_target(name);
  return target;
}

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
  if (only_target() != 0) {
    EXPECT_EQ(seen, only_target());
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(OwnTarget)(), only_target());
  }
}

}  // namespace cdd::test
#endif  // HWY_ONCE
