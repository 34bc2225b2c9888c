// What the files for Windows share: paths, error numbers, handles of files.
#pragma once

#include <windows.h>

#include <cstdint>
#include <string>

namespace cdd {

// The system's last error as one of the errno values that the rest of the core and Python speak.
int last_errno() noexcept;

// Throws Error{Io} with last_errno(). `what` has "%s" where the name belongs.
[[noreturn]] void fail_windows(const char* what, const std::string& name);

// Throws Error{Io, ENOENT} for what is not UTF-8.
std::wstring wide(const std::string& path);

// INVALID_HANDLE_VALUE where it cannot be opened.
HANDLE open_handle(const std::string& path, bool write, DWORD disposition);

OVERLAPPED at_offset(std::uint64_t offset) noexcept;

}  // namespace cdd
