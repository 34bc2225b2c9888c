// Where the streams of a tile are not like those that its plan was made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/codec/blosc/stream_plan.h"

namespace cdd::blosc {

// Says of a tile's streams, one after the other, which are worth a new plan. A look at all of a stream costs
// as much as its codes: what streams take by their plan says most, and a sample of each eighth the rest. A
// tile's own, so that equal tiles give equal bytes.
class PlanWatch {
 public:
  // Whether stream `s`, of a plan that stores it as it is, is no noise.
  bool is_compressible(Bytes stream, std::size_t s) noexcept;
  // Whether stream `s`, which takes `stored` bytes by its plan, would take notably fewer by another one, or
  // as many without a search.
  bool is_unlike(const StreamPlan::OfStream& plan, Bytes stream, std::size_t s, std::size_t stored) noexcept;
  // Stream `s`, which takes `stored` bytes by it, has this plan instead of the one before.
  void renewed(const StreamPlan::OfStream& plan, const StreamPlan::OfStream& before, std::size_t s,
               std::size_t stored) noexcept;

 private:
  struct Seen {
    std::size_t stored = 0;  // bytes that the last one took that was looked at
    std::uint8_t rest = 0;   // streams to come that keep their plan
    std::uint8_t left = 0;   // and that need no sample
    std::uint8_t wait = 0;   // as `left` was at first
    bool is_new = false;     // whether the plan was renewed
  };
  bool is_due(std::size_t s) noexcept;

  Seen seen_[kMaxStreams];
};

}  // namespace cdd::blosc
