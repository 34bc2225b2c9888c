// Which process this is, and handles that a forked child lets go of at once.
#pragma once

#include <cstdint>

namespace cdd {

// A number for the calling process that none it was forked off has. A writer remembers it, since a forked
// child must not write through its parent's handle.
std::uint64_t process_id() noexcept;

#if !defined(_WIN32)
// A lock belongs to the open file, and a forked child has that, too: a writer that was killed would leave its
// file locked for as long as the child lives. So a child closes every descriptor noted here, and finds -1 in
// its place. `descriptor` must stay where it is until it is forgotten. Any thread may call these.
void close_in_children(int& descriptor);
void forget_in_children(int& descriptor) noexcept;
#endif

}  // namespace cdd
