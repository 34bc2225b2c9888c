#include "core/os/lock.h"

namespace cdd {

std::unique_ptr<OpenFile> lock_file(const std::string& path) {
  for (;;) {
    auto file = std::make_unique<OpenFile>(path, OpenFile::How::Create);
    file->lock(OpenFile::LockKind::Exclusive);
    // Somebody may have removed the file between open and lock: then this lock keeps nobody out.
    if (file->is_named(path)) return file;
  }
}

}  // namespace cdd
