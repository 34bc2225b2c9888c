// Runs a test body once for each SIMD target that was compiled and that this CPU has.
//
// $CDD_TEST_TARGET names one of them (SSE2, NEON, EMU128, ...): then the whole run of the tests uses the
// kernels of that target alone, as if the CPU had nothing better. A target that is not there ends the run.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "hwy/highway.h"

namespace cdd::test {

inline void choose_targets(std::int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// The target that this run is confined to, 0 for none.
std::int64_t only_target();

template <class Body>
void for_each_target(Body&& body) {
  for (std::int64_t left = HWY_SUPPORTED_TARGETS & HWY_TARGETS; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    SCOPED_TRACE(hwy::TargetName(target));
    choose_targets(target);
    body();
  }
  choose_targets(only_target());
}

}  // namespace cdd::test
