#include "core/tiles/failures.h"

#include <cerrno>

namespace cdd::tiles {
namespace {

bool is_full_disk(const Error& error) noexcept {
  if (error.code() != ErrorCode::Io) return false;
#if defined(EDQUOT)
  if (error.os_errno() == EDQUOT) return true;
#endif
  return error.os_errno() == ENOSPC;
}

}  // namespace

Failure looked_at(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const SyncFailed& sync) {
    try {
      return {std::make_exception_ptr(sync.error), true};
    } catch (...) {
      return {std::current_exception(), true};
    }
  } catch (const Error& known) {
    return {error, !is_full_disk(known)};
  } catch (...) {
    return {error, true};
  }
}

std::string text_of(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    try {
      return known.what();
    } catch (...) {
      return "no memory";
    }
  } catch (...) {
    return "unknown";
  }
}

}  // namespace cdd::tiles
