#include <pthread.h>

#include <new>
#include <shared_mutex>

#include "core/os/fork_gate.h"

namespace cdd {
namespace {

// Never destroyed: threads may read while the process ends.
std::shared_mutex& gate = *new std::shared_mutex;

// The child makes a new one, since its thread is not the one that locked.
const int registered =
    ::pthread_atfork([] { gate.lock(); }, [] { gate.unlock(); }, [] { new (&gate) std::shared_mutex; });

// A nested lock_shared would wait for a fork that waits for the outer one.
thread_local unsigned depth = 0;

}  // namespace

ForkGate::ForkGate() {
  static_cast<void>(registered);
  if (depth == 0) gate.lock_shared();
  ++depth;
}

ForkGate::~ForkGate() {
  if (--depth == 0) gate.unlock_shared();
}

}  // namespace cdd
