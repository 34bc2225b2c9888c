#include "core/store/open_or_create.h"

#include <cerrno>

#include "core/os/publish.h"

namespace cdd {

// Between the two attempts somebody else may create the file, or remove it.
std::unique_ptr<Writer> open_or_create(const std::string& path, const WriterOptions& options) {
  for (;;) {
    try {
      return Writer::open_file(path, options);
    } catch (const Error& error) {
      if (error.os_errno() != ENOENT) throw;
    }
    try {
      return Writer::create_file(followed(path), false, options);
    } catch (const Error& error) {
      if (error.os_errno() != EEXIST) throw;
    }
  }
}

}  // namespace cdd
