// What the system is told about memory.
#pragma once

#include <cstddef>

namespace cdd {

// Asks for large pages where the system has them on request: memory of many MB that is used all over costs a
// fault for each page. Only a hint.
void use_large_pages(void* memory, std::size_t bytes) noexcept;

// Has the system give the memory now that it would give at its first use. What is there stays as it is, so
// that others may use it meanwhile. False where the system cannot, or has none.
bool take_pages(void* memory, std::size_t bytes) noexcept;

}  // namespace cdd
