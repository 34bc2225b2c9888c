// Keeps fork() out of the few moments in which a reader's shared state is half changed or its mutex held: a
// child has only the thread that forked, so nobody there would ever finish the change.
//
// Hold one around such a moment. fork() waits for those of other threads; they do not wait for one another,
// and may be nested. Nothing to do on Windows.
#pragma once

namespace cdd {

class ForkGate {
 public:
#if defined(_WIN32)
  ForkGate() noexcept {}
  ~ForkGate() {}
#else
  ForkGate();
  ~ForkGate();
#endif
  ForkGate(const ForkGate&) = delete;
  ForkGate& operator=(const ForkGate&) = delete;
};

}  // namespace cdd
