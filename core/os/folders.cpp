#include "core/os/folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/error.h"

namespace cdd {
namespace {

namespace fs = std::filesystem;

fs::path path_of(const std::string& path) { return std::u8string(path.begin(), path.end()); }

void check(const std::error_code& error, const std::string& path, const char* what) {
  if (error) fail_io(error.default_error_condition().value(), path, what);
}

}  // namespace

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path_of(path), error);
  check(error, path, "cannot make the folder %s");
}

bool remove_file(const std::string& path) {
  std::error_code error;
  const bool was_there = fs::remove(path_of(path), error);
  check(error, path, "cannot remove %s");
  return was_there;
}

void remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path_of(path), error);
  check(error, path, "cannot remove %s");
}

void rename_tree(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(path_of(from), path_of(to), error);
  check(error, from, "cannot move %s aside");
}

PathKind kind_of(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path_of(path), error);
  if (status.type() == fs::file_type::not_found) return PathKind::None;
  check(error, path, "cannot look at %s");
  return status.type() == fs::file_type::directory ? PathKind::Folder : PathKind::File;
}

std::vector<std::string> names_in(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(path_of(path), error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::u8string name = entry->path().filename().u8string();
    names.emplace_back(name.begin(), name.end());
  }
  check(error, path, "cannot list %s");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cdd
