// Lets a thread leave the other cores to those that work beside it, as to one that reads what it writes.
#pragma once

namespace cdd {

// Whether the calling thread does all of its for_each() by itself, whatever set_threads() says: threads()
// is 1 in it then. It is no other thread's matter, and lasts until it is set anew.
void work_alone(bool alone) noexcept;

}  // namespace cdd
