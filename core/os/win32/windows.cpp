#include "core/os/win32/windows.h"

#include <cerrno>

#include "core/base/error.h"

namespace cdd {

int last_errno() noexcept {
  switch (::GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME:
      return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_WRITE_PROTECT:
      return EACCES;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS:
      return EEXIST;
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
      return EAGAIN;
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return ENOSPC;
    case ERROR_NOT_ENOUGH_MEMORY:
    case ERROR_OUTOFMEMORY:
      return ENOMEM;
    case ERROR_INVALID_HANDLE:
      return EBADF;
    default:
      return EIO;
  }
}

void fail_windows(const char* what, const std::string& name) { fail_io(last_errno(), name, what); }

std::wstring wide(const std::string& path) {
  const int bytes = static_cast<int>(path.size());
  const int n = ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, nullptr, 0);
  if (n == 0 && bytes != 0) fail_io(ENOENT, path, "not a path: %s");
  std::wstring out(static_cast<std::size_t>(n), L'\0');
  ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), bytes, out.data(), n);
  return out;
}

HANDLE open_handle(const std::string& path, bool write, DWORD disposition) {
  // Everybody may share everything: the lock decides who writes, and a file may be replaced while it is read.
  return ::CreateFileW(wide(path).c_str(), GENERIC_READ | (write ? GENERIC_WRITE | DELETE : 0),
                       FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, disposition,
                       FILE_ATTRIBUTE_NORMAL, nullptr);
}

OVERLAPPED at_offset(std::uint64_t offset) noexcept {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return at;
}

}  // namespace cdd
