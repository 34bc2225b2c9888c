// A writer of the file that is there, or of a new one.
#pragma once

#include <memory>
#include <string>

#include "core/store/writer.h"

namespace cdd {

// Opens the file, or creates it where there is none: also what a link at `path` leads to. Throws as
// Writer::open_file and create_file.
std::unique_ptr<Writer> open_or_create(const std::string& path, const WriterOptions& options);

}  // namespace cdd
