// System calls that are interrupted, cut short, refused, or end the process. failing_calls.cpp replaces them
// by functions of the same name in the program that it is linked into, which the loader prefers to the C
// library's; Linux only.
#pragma once

#if defined(__linux__)

namespace cdd {

// Name: open with O_CREAT, link, rename. Any: all of them.
enum class SystemCall { Read, Write, Sync, Truncate, Lock, Name, Any };

// What happens to the calls of this thread.
struct CallPlan {
  bool armed = false;
  SystemCall call = SystemCall::Read;
  int os_errno = 0;  // 0: the call does part of its work
  // Interrupts and short counts: each call again and again; else call number `left`, once.
  bool every_other = false;
  int left = 0;
  bool kills = false;  // the process ends before the call, as by kill -9; of a write the first half is done
  int failures = 0;
  bool at_proof = false;  // the write that failed was that of a clean-close slot
};
extern thread_local constinit CallPlan call_plan;

// How often this thread gave a file its name while bytes written before were not synced yet.
extern constinit thread_local int unsynced_names;

}  // namespace cdd

#endif
