// In which ways a tile is packed, of which the smallest stays.
#pragma once

#include <array>
#include <span>

#include "core/codec/blosc/frame.h"
#include "core/codec/blosc/stream_plan.h"

namespace cdd::blosc {

// Most bytes of a tile that several levels of zstd are tried on.
inline constexpr std::size_t kSampledBytes = 512 << 10;

struct Way {
  Options options;  // of level 1, or a level above that is no higher than the one asked
  StreamPlan plan;
};

struct Ways {
  std::array<Way, 5> of;
  std::size_t count = 0;

  void add(const Options& options, const StreamPlan& plan) { of[count++] = {options, plan}; }
};

// Those that are worth a try of all of these bytes; one for most.
Ways ways_of(std::span<const Bytes> parts, std::size_t bytes, const Options& options);

}  // namespace cdd::blosc
