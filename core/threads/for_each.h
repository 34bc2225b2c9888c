// Runs independent pieces of work on several cores. oneTBB is seen only in for_each.cpp. The build decides by
// CDD_TBB: internal; external, a oneTBB that other code of the process uses too, whose limits are left alone;
// or off, which runs everything in the calling thread.
//
// No thread exists before the first call that is worth one. A forked child works in its calling thread until
// it sets a number itself, since the parent's threads are not there; then, where the parent used oneTBB, each
// call that is worth it starts threads of its own.
#pragma once

#include <cstddef>
#include <functional>

namespace cdd {

inline constexpr unsigned kMostThreads = 1024;

// How many threads work at once, the calling one included. Default: CDD_THREADS from the environment, else
// what the machine has. 0 sets the default again. Throws InvalidArgument for more than
// kMostThreads.
void set_threads(unsigned threads);
unsigned threads() noexcept;

// Whether CDD_THREADS, where it is set, is a number from 0 to kMostThreads. If not it counts as not set.
bool understands_environment() noexcept;

// Whether this build can use more than one thread.
bool has_threads() noexcept;

// Calls work(i) once for each i in [0, n), in any order and at the same time, and returns when all are done.
// Of exceptions the one of the smallest i is thrown again, which says the same for any number of threads;
// calls of greater i may then not have been made. `work` may itself call for_each.
void for_each(std::size_t n, const std::function<void(std::size_t)>& work);

}  // namespace cdd
