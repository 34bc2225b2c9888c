#include <windows.h>

#include <algorithm>

#include "core/os/file_watch.h"

namespace cdd {

// Of the folder, since Windows watches no single file: events of other files there only mean one more look.
FileWatch::FileWatch(const std::string& path) {
  const std::size_t slash = path.find_last_of("\\/");
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::wstring wide(folder.size() + 1, L'\0');
  const int n = ::MultiByteToWideChar(CP_UTF8, 0, folder.data(), static_cast<int>(folder.size()), wide.data(),
                                      static_cast<int>(wide.size()));
  wide.resize(static_cast<std::size_t>(std::max(n, 0)));
  const HANDLE handle = ::FindFirstChangeNotificationW(
      wide.c_str(), FALSE,
      FILE_NOTIFY_CHANGE_SIZE | FILE_NOTIFY_CHANGE_LAST_WRITE | FILE_NOTIFY_CHANGE_FILE_NAME);
  if (handle != INVALID_HANDLE_VALUE) handle_ = reinterpret_cast<std::intptr_t>(handle);
}

FileWatch::~FileWatch() {
  if (handle_ != -1) ::FindCloseChangeNotification(reinterpret_cast<HANDLE>(handle_));
}

void FileWatch::clear() noexcept {
  step_ms_ = steps_.first_ms;
  if (handle_ != -1) ::FindNextChangeNotification(reinterpret_cast<HANDLE>(handle_));
}

bool FileWatch::wait(std::int64_t most_ms) {
  const auto step = static_cast<DWORD>(most_ms < 0 ? step_ms() : std::min(step_ms(), most_ms));
  if (handle_ == -1) {
    ::Sleep(step);
    return false;
  }
  if (::WaitForSingleObject(reinterpret_cast<HANDLE>(handle_), step) != WAIT_OBJECT_0) return false;
  clear();
  return true;
}

}  // namespace cdd
