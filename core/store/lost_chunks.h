// Which chunks lie between and behind the records that salvage found, and which rows those were. What the
// damaged index still says is used for this and nothing else.
#pragma once

#include <vector>

#include "core/store/salvage.h"

namespace cdd {

// `records` in the order of their numbers. Throws Io.
std::vector<LostChunks> lost_chunks(const Storage& storage, const Header& header,
                                    const std::vector<WholeRecord>& records);

}  // namespace cdd
