// System calls that a signal interrupts are made again.
#pragma once

#include <cerrno>

namespace cdd {

template <class Call>
auto retry(Call&& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace cdd
