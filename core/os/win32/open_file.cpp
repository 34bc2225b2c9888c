#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/os/open_file.h"
#include "core/os/win32/windows.h"

namespace cdd {
namespace {

// The lock: one byte far behind any data, since a locked range cannot be read by others.
constexpr std::uint64_t kLockOffset = (std::uint64_t{1} << 63) - 2;
constexpr DWORD kMaxTransfer = DWORD{1} << 30;  // bytes of one ReadFile or WriteFile

DWORD disposition_of(OpenFile::How how) {
  switch (how) {
    case OpenFile::How::Read:
    case OpenFile::How::ReadWrite:
      return OPEN_EXISTING;
    case OpenFile::How::Create:
      return OPEN_ALWAYS;
    case OpenFile::How::New:
    case OpenFile::How::NewAlone:  // permissions are the folder's
      break;
  }
  return CREATE_NEW;
}

bool identify(HANDLE handle, BY_HANDLE_FILE_INFORMATION* info) {
  return ::GetFileInformationByHandle(handle, info) != 0;
}

}  // namespace

OpenFile::OpenFile(const std::string& path, How how, std::string name)
    : handle_(open_handle(path, how != How::Read, disposition_of(how))), name_(std::move(name)) {
  if (handle_ != INVALID_HANDLE_VALUE) return;
  fail_windows(how == How::Read || how == How::ReadWrite ? "cannot open %s" : "cannot create %s", name_);
}

OpenFile::~OpenFile() { ::CloseHandle(handle_); }

void OpenFile::lock(LockKind kind) {
  OVERLAPPED at = at_offset(kLockOffset);
  const DWORD flags = kind == LockKind::Exclusive ? LOCKFILE_EXCLUSIVE_LOCK : 0;
  if (::LockFileEx(handle_, flags | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)) return;
  if (::GetLastError() == ERROR_LOCK_VIOLATION) fail_io(EAGAIN, name_, "another writer has %s open");
  fail_windows("cannot lock %s", name_);
}

bool OpenFile::is_named(const std::string& path) const {
  const HANDLE named = open_handle(path, false, OPEN_EXISTING);
  if (named == INVALID_HANDLE_VALUE) return false;
  BY_HANDLE_FILE_INFORMATION a{};
  BY_HANDLE_FILE_INFORMATION b{};
  const bool known = identify(handle_, &a) && identify(named, &b);
  ::CloseHandle(named);
  return known && a.dwVolumeSerialNumber == b.dwVolumeSerialNumber && a.nFileIndexHigh == b.nFileIndexHigh &&
         a.nFileIndexLow == b.nFileIndexLow;
}

std::size_t OpenFile::read_at(std::uint64_t offset, MutableBytes out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    OVERLAPPED at = at_offset(offset + done);
    DWORD got = 0;
    const auto wanted = static_cast<DWORD>(std::min<std::size_t>(out.size() - done, kMaxTransfer));
    if (!::ReadFile(handle_, out.data() + done, wanted, &got, &at)) {
      if (::GetLastError() == ERROR_HANDLE_EOF) break;
      fail_windows("cannot read %s", name_);
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

// Windows reads ahead into maps alone (PrefetchVirtualMemory), and of no page tells whether it is there.
bool OpenFile::is_cached(std::uint64_t, std::size_t) const noexcept { return false; }

void OpenFile::prefetch(std::uint64_t, std::size_t) const noexcept {}

void OpenFile::write_at(std::uint64_t offset, std::span<const Bytes> parts) {
  for (Bytes part : parts) {
    while (!part.empty()) {
      OVERLAPPED at = at_offset(offset);
      DWORD written = 0;
      const auto wanted = static_cast<DWORD>(std::min<std::size_t>(part.size(), kMaxTransfer));
      if (!::WriteFile(handle_, part.data(), wanted, &written, &at)) fail_windows("cannot write %s", name_);
      offset += written;
      part = part.subspan(written);
    }
  }
}

std::uint64_t OpenFile::size() const {
  LARGE_INTEGER size{};
  if (!::GetFileSizeEx(handle_, &size)) fail_windows("cannot stat %s", name_);
  return static_cast<std::uint64_t>(size.QuadPart);
}

void OpenFile::truncate(std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<LONGLONG>::max())) {
    fail_io(EFBIG, name_, "cannot resize %s");
  }
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(size);
  if (!::SetFileInformationByHandle(handle_, FileEndOfFileInfo, &end, sizeof end)) {
    fail_windows("cannot resize %s", name_);
  }
}

void OpenFile::sync_bytes() { sync(); }

void OpenFile::sync() {
  if (!::FlushFileBuffers(handle_)) fail_windows("cannot sync %s", name_);
}

}  // namespace cdd
