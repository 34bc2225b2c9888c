// Makes one allocation of this thread fail with std::bad_alloc. failing_allocation.cpp replaces operator new
// of the program that it is linked into.
#pragma once

namespace cdd {

// The nth allocation, from 0, of those made while a Scope is alive.
class FailingAllocation {
 public:
  explicit FailingAllocation(long nth) noexcept;
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool has_failed() const noexcept;

  class Scope {
   public:
    Scope() noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };
};

}  // namespace cdd
