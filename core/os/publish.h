// A file that gets its name when it is whole: written under a temporary name beside it, synced, then linked
// or renamed, and the folder synced. Whoever opens the name finds the old file or all of the new one.
#pragma once

#include <string>

#include "core/base/bytes.h"
#include "core/os/open_file.h"

namespace cdd {

// Windows gives nobody the name of a file that is open.
#if defined(_WIN32)
inline constexpr bool kReplacesOpenFiles = false;
#else
inline constexpr bool kReplacesOpenFiles = true;
#endif

class NewName {
 public:
  // A link at `path` stays: what it leads to, be it there or not, is the name to be given. Throws Error{Io}
  // where that is something else than a regular file.
  explicit NewName(const std::string& path);
  // Removes the file if it has not got its name, in the process that this object was made in.
  ~NewName();
  NewName(const NewName&) = delete;
  NewName& operator=(const NewName&) = delete;

  // Whether something was at `path` when this was made: a link that leads nowhere counts.
  bool is_taken() const noexcept { return is_taken_; }
  // The same of the name to be given, links followed.
  bool has_old_file() const noexcept { return has_old_file_; }

  const std::string& target() const noexcept { return target_; }
  // Where the file is to be created, and how: others may not open it before it has the old one's permissions.
  const std::string& temporary() const noexcept { return temporary_; }
  OpenFile::How how() const noexcept { return has_old_file_ ? OpenFile::How::NewAlone : OpenFile::How::New; }

  // Gives `file` the old file's group, owner, extended attributes and permissions, as far as the system lets;
  // nothing where there is none.
  void keep_attributes(const OpenFile& file) const noexcept;

  // Gives `file`, which is at temporary(), its name. False where something has that by now.
  bool take(OpenFile& file);
  // The same, in place of whatever has the name.
  void replace(OpenFile& file);

 private:
  const std::string path_;
  const std::string target_;
  const std::uint64_t process_ = process_id();
  bool is_taken_ = false;
  bool has_old_file_ = false;
  std::string temporary_;  // empty once the file has its name
};

// A file of these bytes, durable on return. `replace` false: Error{Io, EEXIST} where something has the name,
// and of several callers at once one succeeds.
void publish(const std::string& path, Bytes bytes, bool replace);

// Gives a file, which is whole and durable, the name of another of the same folder, in its place; durable on
// return. Windows refuses where somebody has either open.
void replace_file(const std::string& from, const std::string& to);

// A name beside `path` that nobody else is likely to take, hidden where names with a dot are.
std::string temporary_beside(const std::string& path);

// `path`, or where the links at it lead: the name that opening `path` to create it would create.
std::string followed(const std::string& path);

}  // namespace cdd
