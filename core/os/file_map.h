// A file in memory, read-only: reads are pointers. Whoever truncates a mapped file makes its readers fault
// (SIGBUS).
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/os/open_file.h"

namespace cdd {

// The first `bytes` bytes, page by page as they are touched; empty for none. They stay when the file is
// closed, until unmap_file(). Throws Error{Io} where the file or the address space does not have them.
Bytes map_file(const OpenFile& file, std::uint64_t bytes);
void unmap_file(Bytes map) noexcept;

}  // namespace cdd
