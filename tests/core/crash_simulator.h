// Crashes a writer at every moment of its work, in every way CrashStates knows, and looks at what is left:
//
//  1. the file opens;
//  2. every chunk that was acknowledged is there and equal;
//  3. what is visible is a prefix of one history, whole appends only;
//  4. a writer recovers it, appends, and nothing old reappears;
//  5. what is not the right bytes is an error.
//
// A share of the states is crashed again while it is recovered and appended to.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "tests/core/crash_session.h"

namespace cdd {

struct CrashOptions {
  std::uint64_t states = 1000;  // different ones, about
  std::uint64_t seed = 1;
  double nested_share = 0.15;  // of the states that are checked, how many are crashes inside a recovery
  bool stop_at_violation = true;
};

struct CrashWorkload {
  const char* name;
  WriterOptions options;
  void (*run)(Session& session);
};
const std::vector<CrashWorkload>& crash_workloads();

// The letters and digits of its name: what a test may be called.
inline std::string test_name(const CrashWorkload& workload) {
  std::string name(workload.name);
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
  return name;
}

class CrashSimulator {
 public:
  CrashSimulator(const CrashWorkload& workload, const CrashOptions& options);

  void run();

  std::uint64_t states() const noexcept { return states_; }  // different ones, nested ones included
  std::uint64_t nested() const noexcept { return nested_; }
  const std::vector<std::string>& violations() const noexcept { return violations_; }

 private:
  struct Level {
    const Session* session;
    const Image* start;
    int depth;
  };
  void crash_session(const Level& level, std::uint64_t states);
  void check_kill(const Level& level, const Image& done, const Operation* next, const Promise& promise);
  void check(const Image& image, const Promise& promise, std::uint64_t floor_rows, int depth);
  void check_readable(const Image& image, const Promise& promise, std::uint64_t floor_rows);
  void check_recovery(const Image& image, const Promise& promise, std::uint64_t floor_rows, int depth);
  bool is_done() const noexcept { return options_.stop_at_violation && !violations_.empty(); }

  const CrashWorkload& workload_;
  CrashOptions options_;
  Random random_;
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t states_ = 0;
  std::uint64_t nested_ = 0;
  std::uint64_t histories_ = 1;
  std::vector<std::string> violations_;
};

}  // namespace cdd
