// What a writer may be told: the one list of options, their defaults and their limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/row_layout.h"
#include "core/codec/choose.h"
#include "core/format/cdd/constants.h"

namespace cdd {

// What survives a power cut. A killed process loses only rows that do not fill a chunk yet, whichever it is.
enum class Durability : std::uint8_t {
  Batch,   // what was there at the last flush(), and all but the last 64 chunks or second of appending
  None,    // nothing is synced before close()
  Flush,   // what was there at the last flush()
  Always,  // every append, which therefore ends with a chunk of its own
};

struct WriterOptions {
  RowLayout layout;                  // unset: the first append decides. For an existing store it must agree.
  std::vector<std::byte> user_meta;  // of a new store
  std::string codec = "auto";        // a name of core/codec/scheme.h
  Profile profile = Profile::Fast;
  int level = 3;  // of zstd
  Float16Options float16;
  std::uint32_t chunk_rows = 0;      // not 0: rows of every chunk
  std::uint32_t chunk_bytes = 4096;  // else: stored bytes of a chunk, about
  Durability durability = Durability::Batch;
  std::uint32_t first_capacity = kDefaultFirstCapacity;  // chunks of a new store's first index block
  std::uint64_t least_rows = 0;  // which opening an existing store keeps, or it throws Truncated
};

// Throws InvalidArgument for a value out of its limits, or options that do not go together.
void check_options(const WriterOptions& options);

}  // namespace cdd
