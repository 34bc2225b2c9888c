#include "tests/rig/failing_calls.h"

#if defined(__linux__)

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "core/base/bytes.h"
#include "core/format/cdd/constants.h"

namespace cdd {

thread_local constinit CallPlan call_plan;
constinit thread_local int unsynced_names = 0;

namespace {

thread_local bool is_unsynced = false;

bool strikes(SystemCall call) {
  CallPlan& plan = call_plan;
  if (!plan.armed || (plan.call != call && plan.call != SystemCall::Any)) return false;
  if (plan.every_other) {
    plan.left ^= 1;
    if (plan.left == 0) return false;
  } else if (plan.left-- != 0) {
    return false;
  }
  ++plan.failures;
  if (plan.kills && call != SystemCall::Write) ::_exit(0);
  if (plan.os_errno != 0) errno = plan.os_errno;
  return true;
}

int refused_or(SystemCall call, long number, auto... arguments) {
  return strikes(call) ? -1 : static_cast<int>(::syscall(number, arguments...));
}

int name(long number, auto... arguments) {
  if (is_unsynced) ++unsynced_names;
  return refused_or(SystemCall::Name, number, arguments...);
}

// Where `long` has 32 bits the kernel takes an offset as two of them, low first. preadv and pwritev take two
// everywhere; ftruncate64 on Arm takes them from a pair of registers of which the first is even.
ssize_t transfer(long number, int fd, const iovec* parts, int count, off_t at) {
  const auto offset = static_cast<std::uint64_t>(at);
  return syscall(number, fd, parts, count, static_cast<long>(offset), static_cast<long>(offset >> 32));
}

int cut(int fd, off_t size) {
#if defined(__arm__)
  const auto offset = static_cast<std::uint64_t>(size);
  return refused_or(SystemCall::Truncate, SYS_ftruncate64, fd, 0, static_cast<long>(offset),
                    static_cast<long>(offset >> 32));
#else
  return refused_or(SystemCall::Truncate, SYS_ftruncate, fd, size);
#endif
}

bool is_proof(const iovec* parts, int count) {
  if (count != 1 || parts[0].iov_len != kSlotBytes) return false;
  const auto flags = load<std::uint32_t>(static_cast<const std::byte*>(parts[0].iov_base) + 24);
  return flags == (slot_flags::kCommit | slot_flags::kSynced);
}

int synced(int result) {
  if (result == 0) is_unsynced = false;
  return result;
}

}  // namespace
}  // namespace cdd

using cdd::SystemCall;

extern "C" {
ssize_t pread(int fd, void* out, size_t n, off_t at) {
  if (cdd::strikes(SystemCall::Read)) {
    if (cdd::call_plan.os_errno != 0) return -1;
    n = (n + 1) / 2;
  }
  const iovec part{out, n};
  return cdd::transfer(SYS_preadv, fd, &part, 1, at);
}
ssize_t pwritev(int fd, const iovec* parts, int count, off_t at) {
  cdd::is_unsynced = true;
  if (cdd::strikes(SystemCall::Write)) {
    cdd::call_plan.at_proof = cdd::is_proof(parts, count);
    if (cdd::call_plan.os_errno != 0) return -1;
    const iovec part{parts[0].iov_base, (parts[0].iov_len + 1) / 2};
    const ssize_t written = cdd::transfer(SYS_pwritev, fd, &part, 1, at);
    if (cdd::call_plan.kills) ::_exit(0);
    return written;
  }
  return cdd::transfer(SYS_pwritev, fd, parts, count, at);
}
int fdatasync(int fd) { return cdd::synced(cdd::refused_or(SystemCall::Sync, SYS_fdatasync, fd)); }
int fsync(int fd) { return cdd::synced(cdd::refused_or(SystemCall::Sync, SYS_fsync, fd)); }
int ftruncate(int fd, off_t size) noexcept {
  cdd::is_unsynced = true;
  return cdd::cut(fd, size);
}
int flock(int fd, int operation) noexcept {
  // Letting go is followed by a close, which lets go as well: its failure has no effect to look for.
  const bool refused = operation != LOCK_UN && cdd::strikes(SystemCall::Lock);
  return refused ? -1 : static_cast<int>(syscall(SYS_flock, fd, operation));
}
int rename(const char* from, const char* to) noexcept {
  return cdd::name(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int link(const char* from, const char* to) noexcept {
  return cdd::name(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  if ((flags & O_CREAT) != 0 && cdd::strikes(SystemCall::Name)) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode));
}
}

#endif
