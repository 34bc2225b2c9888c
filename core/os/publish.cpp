#include "core/os/publish.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>

#include "core/base/error.h"

namespace cdd {
namespace {

constexpr std::size_t kMostNameBytes = 200;  // NAME_MAX is 255 nearly everywhere, and the rest has to fit

}  // namespace

// Process numbers alone repeat, in containers always.
std::string temporary_beside(const std::string& path) {
#if defined(_WIN32)
  const std::size_t slash = path.find_last_of("/\\:");
#else
  const std::size_t slash = path.rfind('/');
#endif
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  std::size_t bytes = std::min(path.size() - begin, kMostNameBytes);
  const auto is_inside_character = [&](std::size_t at) {
    return at < path.size() && (static_cast<unsigned char>(path[at]) & 0xC0) == 0x80;
  };
  while (bytes > 0 && is_inside_character(begin + bytes)) --bytes;
  std::random_device random;
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".%08x%08x.tmp", random(), random());
  return path.substr(0, begin) + "." + path.substr(begin, bytes) + suffix;
}

void publish(const std::string& path, Bytes bytes, bool replace) {
  NewName name(path);
  if (!replace && name.is_taken()) fail_io(EEXIST, path, "cannot create %s");
  OpenFile file(name.temporary(), name.how(), path);
  name.keep_attributes(file);
  file.write_at(0, std::span<const Bytes>(&bytes, 1));
  if (replace) {
    name.replace(file);
  } else if (!name.take(file)) {
    fail_io(EEXIST, path, "cannot create %s");
  }
}

}  // namespace cdd
