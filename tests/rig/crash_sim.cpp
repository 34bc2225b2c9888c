// crash_sim STATES SEED: the crash simulation for as long as one likes. Exit status 1 when an invariant is
// violated.
#include <cstdio>
#include <cstdlib>

#include "tests/rig/crash_simulator.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s STATES SEED\n", argv[0]);
    return 2;
  }
  const std::uint64_t wanted = std::strtoull(argv[1], nullptr, 10);
  std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  constexpr std::uint64_t kRound = 4000;  // states of one history, before a new one with other salt and seed
  std::uint64_t states = 0;
  std::uint64_t nested = 0;
  while (states < wanted) {
    for (const cdd::CrashWorkload& workload : cdd::crash_workloads()) {
      cdd::CrashOptions options;
      options.states = kRound;
      options.seed = seed;
      cdd::CrashSimulator simulator(workload, options);
      simulator.run();
      states += simulator.states();
      nested += simulator.nested();
      for (const std::string& violation : simulator.violations()) {
        std::printf("VIOLATED %s\nafter %llu crash states\n", violation.c_str(),
                    static_cast<unsigned long long>(states));
      }
      if (!simulator.violations().empty()) return 1;
    }
    std::printf("seed %llu: %llu crash states, %llu of them inside a recovery\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(states),
                static_cast<unsigned long long>(nested));
    std::fflush(stdout);
    ++seed;
  }
  std::printf("%llu crash states, %llu of them inside a recovery: all invariants hold\n",
              static_cast<unsigned long long>(states), static_cast<unsigned long long>(nested));
  return 0;
}
