// A file that is there to be locked: who has it is the one writer of whatever it stands beside, a folder for
// example. (The writer of a single file locks that file, see OpenFile::lock.)
#pragma once

#include <memory>
#include <string>

#include "core/os/open_file.h"

namespace cdd {

// Creates the file where it is not there, and holds its lock until the result is destroyed, in this process
// only: a forked child lets go of it. The file stays behind, empty. Throws Error{Io}: EAGAIN while somebody
// else, in this or another process, has it.
std::unique_ptr<OpenFile> lock_file(const std::string& path);

}  // namespace cdd
