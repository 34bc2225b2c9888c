#include <cerrno>

#include "core/base/error.h"
#include "core/os/publish.h"
#include "core/os/win32/windows.h"

namespace cdd {

// The system follows links that lead to a file. One that leads nowhere is replaced.
std::string followed(const std::string& path) { return path; }

NewName::NewName(const std::string& path) : path_(path), target_(path), temporary_(temporary_beside(path)) {
  is_taken_ = ::GetFileAttributesW(wide(path).c_str()) != INVALID_FILE_ATTRIBUTES;
  has_old_file_ = is_taken_;
}

NewName::~NewName() {
  if (!temporary_.empty()) ::DeleteFileW(wide(temporary_).c_str());
}

// Permissions come from the folder.
void NewName::keep_attributes(const OpenFile&) const noexcept {}

bool NewName::take(OpenFile& file) {
  file.sync();
  if (!::MoveFileExW(wide(temporary_).c_str(), wide(target_).c_str(), MOVEFILE_WRITE_THROUGH)) {
    if (last_errno() == EEXIST) return false;
    fail_windows("cannot create %s", path_);
  }
  temporary_.clear();
  return true;
}

void NewName::replace(OpenFile& file) {
  file.sync();
  const DWORD flags = MOVEFILE_WRITE_THROUGH | MOVEFILE_REPLACE_EXISTING;
  if (!::MoveFileExW(wide(temporary_).c_str(), wide(target_).c_str(), flags))
    fail_windows("cannot create %s", path_);
  temporary_.clear();
}

void replace_file(const std::string& from, const std::string& to) {
  const DWORD flags = MOVEFILE_WRITE_THROUGH | MOVEFILE_REPLACE_EXISTING;
  if (!::MoveFileExW(wide(from).c_str(), wide(to).c_str(), flags)) fail_windows("cannot replace %s", to);
}

}  // namespace cdd
