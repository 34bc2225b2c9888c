// The dtype and shape of a store's rows: its header's, or else those of its records.
#pragma once

#include "core/base/row_layout.h"
#include "core/storage/storage.h"
#include "core/store/header.h"
#include "core/store/index/chunk_index.h"

namespace cdd {

// A store that was created without a layout has it from its first record that is whole. Unset where there is
// none. Throws Io.
RowLayout find_layout(const Storage& storage, const Header& header, const ChunkIndex& index);

// Where chunks were committed and none is whole.
[[noreturn]] void fail_without_layout(const Storage& storage, const ChunkIndex& index);

}  // namespace cdd
