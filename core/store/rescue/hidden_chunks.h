// Whole chunks that a file has and its index does not show.
//
// None is hidden as long as all is well. A crash of the system may leave some, and so does damage to the end
// of the index that looks like such a crash. The next writer takes up those that follow on the last it knows,
// and cuts off the others.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/progress.h"
#include "core/base/row_layout.h"

namespace cdd {

struct ShownChunks {
  std::uint64_t shown = 0;   // by the index
  std::uint64_t hidden = 0;  // behind them, in whole appends
};

// Where the file does not end with the last chunk, every record is looked for, and no writer can open the
// file meanwhile. While a writer has it nothing is hidden: it took up what was when it opened the file.
// Records of more raw bytes than `max_chunk_raw_bytes` are no records. Throws what Reader and salvage()
// throw.
ShownChunks count_chunks(const std::string& path, std::uint64_t max_chunk_raw_bytes = kMaxChunkRawBytes,
                         const Progress& progress = {});

}  // namespace cdd
