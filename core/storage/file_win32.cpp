#include <windows.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "core/storage/file.h"

namespace cdd {
namespace {

// The writer's lock: one byte far behind any data, since a locked range cannot be read by others.
constexpr std::uint64_t kLockOffset = (std::uint64_t{1} << 63) - 2;

// Windows error codes as the errno values that the rest of the core and Python speak.
int errno_of(DWORD error) {
  switch (error) {
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

[[noreturn]] void fail_windows(const char* doing, const std::string& path) {
  fail_io(errno_of(::GetLastError()), path, (std::string(doing) + " %s").c_str());
}

std::wstring wide(const std::string& utf8) {
  const int bytes = static_cast<int>(utf8.size());
  const int n = ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8.data(), bytes, nullptr, 0);
  if (n == 0 && bytes != 0) fail_io(ENOENT, utf8, "not a path: %s");
  std::wstring out(static_cast<std::size_t>(n), L'\0');
  ::MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8.data(), bytes, out.data(), n);
  return out;
}

HANDLE open_handle(const std::string& path, bool write, DWORD disposition) {
  // Everybody may share everything: the lock decides who writes, and a file may be replaced while it is read.
  return ::CreateFileW(wide(path).c_str(), GENERIC_READ | (write ? GENERIC_WRITE | DELETE : 0),
                       FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, disposition,
                       FILE_ATTRIBUTE_NORMAL, nullptr);
}

OVERLAPPED at_offset(std::uint64_t offset) {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return at;
}

void lock_or_fail(HANDLE handle, const std::string& path, DWORD kind = LOCKFILE_EXCLUSIVE_LOCK) {
  OVERLAPPED at = at_offset(kLockOffset);
  if (::LockFileEx(handle, kind | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)) return;
  if (::GetLastError() == ERROR_LOCK_VIOLATION) fail_io(EAGAIN, path, "another writer has %s open");
  fail_windows("cannot lock", path);
}

bool exists(const std::string& path) {
  return ::GetFileAttributesW(wide(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

bool is_same_file(HANDLE held, const std::string& path) {
  const HANDLE named = open_handle(path, false, OPEN_EXISTING);
  if (named == INVALID_HANDLE_VALUE) return false;
  BY_HANDLE_FILE_INFORMATION a{};
  BY_HANDLE_FILE_INFORMATION b{};
  const bool known = ::GetFileInformationByHandle(held, &a) && ::GetFileInformationByHandle(named, &b);
  ::CloseHandle(named);
  return known && a.dwVolumeSerialNumber == b.dwVolumeSerialNumber && a.nFileIndexHigh == b.nFileIndexHigh &&
         a.nFileIndexLow == b.nFileIndexLow;
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, ".%lu-%u.tmp", ::GetCurrentProcessId(), counter.fetch_add(1));
  return path + suffix;
}

constexpr DWORD kMaxTransfer = DWORD{1} << 30;  // bytes of one ReadFile or WriteFile

}  // namespace

std::unique_ptr<FileStorage> FileStorage::open(const std::string& path, Access access) {
  for (;;) {
    const HANDLE handle = open_handle(path, access == Access::Append, OPEN_EXISTING);
    if (handle == INVALID_HANDLE_VALUE) fail_windows("cannot open", path);
    std::unique_ptr<FileStorage> file(new FileStorage(handle, path));
    if (access == Access::Read) return file;
    lock_or_fail(handle, path, access == Access::Append ? LOCKFILE_EXCLUSIVE_LOCK : 0);
    if (is_same_file(handle, path)) return file;
  }
}

std::unique_ptr<FileStorage> FileStorage::create(const std::string& path, bool replace) {
  std::unique_ptr<FileStorage> old;
  if (exists(path)) {
    if (!replace) fail_io(EEXIST, path, "cannot create %s");
    old = open(path, Access::Append);
  }
  std::string temporary = temporary_beside(path);
  const HANDLE handle = open_handle(temporary, true, CREATE_NEW);
  if (handle == INVALID_HANDLE_VALUE) fail_windows("cannot create", path);
  std::unique_ptr<FileStorage> file(new FileStorage(handle, path));
  file->temporary_ = std::move(temporary);
  file->replace_ = replace;
  file->replaced_ = std::move(old);
  lock_or_fail(handle, path);
  return file;
}

void FileStorage::publish() {
  if (temporary_.empty()) return;
  sync();
  replaced_.reset();  // Windows replaces no file that is open without POSIX semantics
  const DWORD flags = MOVEFILE_WRITE_THROUGH | (replace_ ? MOVEFILE_REPLACE_EXISTING : 0);
  if (!::MoveFileExW(wide(temporary_).c_str(), wide(path_).c_str(), flags))
    fail_windows("cannot create", path_);
  temporary_.clear();
}

FileStorage::~FileStorage() {
  ::CloseHandle(handle_);
  if (!temporary_.empty()) ::DeleteFileW(wide(temporary_).c_str());
}

Bytes FileStorage::read_at(std::uint64_t offset, std::size_t n, Scratch& scratch) const {
  const MutableBytes out = scratch.get(n);
  std::size_t done = 0;
  while (done < n) {
    OVERLAPPED at = at_offset(offset + done);
    DWORD got = 0;
    const auto wanted = static_cast<DWORD>(std::min<std::size_t>(n - done, kMaxTransfer));
    if (!::ReadFile(handle_, out.data() + done, wanted, &got, &at)) {
      if (::GetLastError() == ERROR_HANDLE_EOF) break;
      fail_windows("cannot read", path_);
    }
    if (got == 0) break;
    done += got;
  }
  return out.first(done);
}

void FileStorage::write_at(std::uint64_t offset, std::span<const Bytes> parts) {
  for (Bytes part : parts) {
    while (!part.empty()) {
      OVERLAPPED at = at_offset(offset);
      DWORD written = 0;
      const auto wanted = static_cast<DWORD>(std::min<std::size_t>(part.size(), kMaxTransfer));
      if (!::WriteFile(handle_, part.data(), wanted, &written, &at)) fail_windows("cannot write", path_);
      offset += written;
      part = part.subspan(written);
    }
  }
}

std::uint64_t FileStorage::size() const {
  LARGE_INTEGER size{};
  if (!::GetFileSizeEx(handle_, &size)) fail_windows("cannot stat", path_);
  return static_cast<std::uint64_t>(size.QuadPart);
}

void FileStorage::truncate(std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<LONGLONG>::max())) {
    fail_io(EFBIG, path_, "cannot resize %s");
  }
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(size);
  if (!::SetFileInformationByHandle(handle_, FileEndOfFileInfo, &end, sizeof end)) {
    fail_windows("cannot resize", path_);
  }
}

void FileStorage::sync() {
  if (!::FlushFileBuffers(handle_)) fail_windows("cannot sync", path_);
}

}  // namespace cdd
