#include <windows.h>

#include "core/os/process.h"

namespace cdd {

std::uint64_t process_id() noexcept { return ::GetCurrentProcessId(); }

}  // namespace cdd
