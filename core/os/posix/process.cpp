#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

#include "core/os/fork_gate.h"
#include "core/os/process.h"

namespace cdd {
namespace {

// Never destroyed: threads may write while the process ends.
std::mutex& closed_mutex = *new std::mutex;
std::vector<int*>& closed_in_children = *new std::vector<int*>;
std::uint32_t forks = 0;  // from the first process to this one
const int registered = ::pthread_atfork(nullptr, nullptr, [] {
  ++forks;
  for (int* const descriptor : closed_in_children) ::close(std::exchange(*descriptor, -1));
  closed_in_children.clear();
});

}  // namespace

// The number of a process is not enough: in a namespace of its own a child may have its parent's.
std::uint64_t process_id() noexcept {
  static_cast<void>(registered);
  return std::uint64_t{forks} << 32 | static_cast<std::uint32_t>(::getpid());
}

void close_in_children(int& descriptor) {
  static_cast<void>(registered);
  const ForkGate gate;
  const std::lock_guard lock(closed_mutex);
  closed_in_children.push_back(&descriptor);
}

void forget_in_children(int& descriptor) noexcept {
  const ForkGate gate;
  const std::lock_guard lock(closed_mutex);
  std::erase(closed_in_children, &descriptor);
}

}  // namespace cdd
