// The crash simulation's share in every change's tests; crash_sim runs it for longer.
#include <gtest/gtest.h>

#include "tests/rig/crash_simulator.h"

namespace cdd {
namespace {

constexpr std::uint64_t kStates = 3500;  // of each workload

class Crash : public testing::TestWithParam<CrashWorkload> {};

TEST_P(Crash, LeavesAPrefixOfOneHistory) {
  CrashOptions options;
  options.states = kStates;
  options.stop_at_violation = false;
  CrashSimulator simulator(GetParam(), options);
  simulator.run();
  for (std::size_t i = 0; i < simulator.violations().size() && i < 5; ++i)
    ADD_FAILURE() << simulator.violations()[i];
  EXPECT_EQ(simulator.violations().size(), 0u);
  EXPECT_GT(simulator.states(), kStates * 9 / 10);
  EXPECT_GT(simulator.nested(), simulator.states() / 10);
  RecordProperty("states", std::to_string(simulator.states()));
  RecordProperty("nested", std::to_string(simulator.nested()));
}

INSTANTIATE_TEST_SUITE_P(Workloads, Crash, testing::ValuesIn(crash_workloads()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace cdd
