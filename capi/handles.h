// What the handles of the C interface hold. A queue's work shares a store's object, so the store may be
// closed while work is under way.
#pragma once

#include <memory>
#include <string>

#include "core/async/queue.h"
#include "core/async/store.h"

struct cdd_reader {
  std::shared_ptr<cdd::Reader> core;
  std::string path;                                                             // empty for memory
  std::shared_ptr<cdd::WarmChunks> warm = std::make_shared<cdd::WarmChunks>();  // of reads through queues
};

struct cdd_writer {
  std::shared_ptr<cdd::AsyncWriter> core;
};

namespace cdd::capi {

// Cells of the caller's, null for all. Whether they are within a row is the reader's to say.
struct GivenCells {
  explicit GivenCells(const cdd_cells* given) noexcept {
    if (given == nullptr) return;
    cells = {given->level_begin, given->level_end, given->feature_begin, given->feature_end};
    pointer = &cells;
  }
  GivenCells(const GivenCells& other) noexcept : cells(other.cells) {
    if (other.pointer != nullptr) pointer = &cells;
  }
  GivenCells& operator=(const GivenCells&) = delete;

  Cells cells;
  const Cells* pointer = nullptr;
};

inline MutableBytes out_bytes(void* out, std::size_t bytes) {
  if (out == nullptr && bytes != 0) fail(ErrorCode::InvalidArgument, "out is NULL");
  return {static_cast<std::byte*>(out), bytes};
}

// The bytes of `count` rows. Throws InvalidArgument where they do not fit into memory.
inline Bytes rows_bytes(const RowLayout& layout, const void* rows, std::uint64_t count) {
  if (rows == nullptr && count != 0) fail(ErrorCode::InvalidArgument, "rows is NULL");
  if (count > PTRDIFF_MAX / std::max<std::uint64_t>(layout.row_bytes(), 1)) {
    fail(ErrorCode::InvalidArgument, "%llu rows of %u bytes are more than memory can hold",
         static_cast<unsigned long long>(count), layout.row_bytes());
  }
  return {static_cast<const std::byte*>(rows), static_cast<std::size_t>(count * layout.row_bytes())};
}

}  // namespace cdd::capi
