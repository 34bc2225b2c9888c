// Folders by path: made, removed, listed. Paths as OpenFile takes them; errors are Error{Io}.
#pragma once

#include <string>
#include <vector>

namespace cdd {

// The folder and those above it, where they are not there.
void make_folders(const std::string& path);

// A file; true where there was one.
bool remove_file(const std::string& path);

// A folder with all that is in it, or a file; nothing where there is none.
void remove_tree(const std::string& path);

// A folder or a file, within one file system, to a name that nothing has.
void rename_tree(const std::string& from, const std::string& to);

enum class PathKind { None, File, Folder };
PathKind kind_of(const std::string& path);

// Names in a folder, sorted.
std::vector<std::string> names_in(const std::string& path);

}  // namespace cdd
