// Crashes a writer at every moment of its work, in every way CrashStates knows, and looks at what is left:
//
//  1. the file opens;
//  2. every chunk that was acknowledged is there and equal;
//  3. what is visible is a prefix of one history, whole appends only;
//  4. a writer recovers it, appends, and nothing old reappears;
//  5. what is not the right bytes is an error.
//
// A share of the states is crashed again while it is recovered and appended to. When the first crash was a
// kill and the second is a power cut, that takes what neither process synced.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "tests/rig/crash_session.h"

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
    const Image* start;  // durable; the session's operations begin with those that were unsynced before it
    int depth;
  };
  // What a crash left: after a kill, operations that a power cut may still take.
  struct Left {
    const Image& durable;
    std::span<const Operation> unsynced;
    std::uint64_t floor_rows;  // must be there
    int depth;
  };
  void crash_session(const Level& level, std::uint64_t states);
  void check_kills(const Left& left, const Operation* next, const Promise& promise);
  void check(const Left& left, const Promise& promise);
  void check_readable(const Image& image, const Promise& promise, std::uint64_t floor_rows);
  void check_recovery(const Left& left, const Image& image, const Promise& promise);
  bool is_done() const noexcept { return options_.stop_at_violation && !violations_.empty(); }

  const CrashWorkload& workload_;
  CrashOptions options_;
  Random random_;
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t states_ = 0;
  std::uint64_t nested_ = 0;
  std::uint64_t histories_ = 1;
  bool nest_in_kill_ = true;  // of the next nested crash: after a kill, else after a power cut
  std::vector<std::string> violations_;
};

}  // namespace cdd
