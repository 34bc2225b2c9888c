// NUMERIC, writing. The contracts are Codec::bound and Codec::encode.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/row_layout.h"

namespace cdd::numeric {

std::size_t bound(const RowLayout& layout, std::uint32_t n_rows) noexcept;

// 0 when the payload would exceed bound().
std::size_t encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, MutableBytes out);

}  // namespace cdd::numeric
