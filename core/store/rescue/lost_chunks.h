// Which chunks lie between and behind the records that salvage found, and which rows those were, as far as
// what is left of the index tells.
#pragma once

#include <vector>

#include "core/store/rescue/salvage.h"

namespace cdd {

// `records` in the order of their numbers. Throws Io.
std::vector<LostChunks> lost_chunks(const Storage& storage, const Header& header,
                                    const std::vector<WholeRecord>& records);

}  // namespace cdd
