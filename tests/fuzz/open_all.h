// Opens any bytes as a store, reads all of it in every way, salvages, recovers and appends to it. Errors are
// fine; what must not happen is for sanitizers and limits to notice.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/rewrite.h"
#include "core/store/writer.h"

namespace cdd {

inline constexpr std::uint64_t kFuzzChunkBytes =
    1 << 18;                                      // the limit that the reader of a stranger's file sets
inline constexpr std::uint64_t kFuzzChunks = 64;  // of each file, as many are read

template <class Call>
bool succeeds(Call&& call) {
  try {
    call();
    return true;
  } catch (const Error&) {
    return false;
  }
}

inline void read_all(const std::shared_ptr<Storage>& storage, Verify verify) {
  ReaderOptions options;
  options.verify = verify;
  options.max_chunk_raw_bytes = kFuzzChunkBytes;
  Reader reader(storage, options);
  const std::uint64_t rows = reader.rows();
  const std::uint64_t row_bytes = reader.layout().row_bytes();
  if (rows > 0 && row_bytes <= kFuzzChunkBytes) {
    const std::uint64_t step = std::min<std::uint64_t>(rows, kFuzzChunkBytes / row_bytes);
    std::vector<std::byte> out(static_cast<std::size_t>(step * row_bytes));
    for (std::uint64_t i = 0; i < kFuzzChunks; ++i) {
      const std::uint64_t first = std::min(i * step, rows - step);
      succeeds([&] { reader.read_into({first, step}, out); });
    }
    const std::uint64_t half = step / 2;
    const std::uint64_t starts[] = {rows - half, 0};
    succeeds([&] {
      reader.read_windows(starts, half,
                          MutableBytes(out).first(static_cast<std::size_t>(2 * half * row_bytes)));
    });
  }
  for (std::uint64_t i = 0; i < std::min(reader.chunks(), kFuzzChunks); ++i) {
    succeeds([&] { reader.chunk_info(i); });
    succeeds([&] { reader.verify_chunk(i); });
  }
  succeeds([&] { reader.refresh(); });
}

// What salvage takes for whole is a sound store when it is copied.
inline void salvage_all(const Storage& storage) {
  const Salvage found = salvage(storage, kFuzzChunkBytes);
  if (found.header.metadata.first_capacity > 4096) return;  // a large file for each input
  const auto copy = std::make_shared<MemoryStorage>();
  copy_records(storage, found.header, found.layout, found.records, *copy);
  const Reader reader(copy);
  if (reader.rows() != found.rows || !reader.verify_chunks(0, reader.chunks()).empty()) std::abort();
}

inline void open_all(Bytes file) {
  const auto view = std::make_shared<ViewStorage>(file, "fuzzed");
  succeeds([&] { salvage_all(*view); });
  if (!succeeds([&] { read_all(view, Verify::Stored); })) return;
  succeeds([&] { read_all(view, Verify::None); });
  succeeds([&] {
    const auto memory = std::make_shared<MemoryStorage>();
    memory->write_at(0, file);
    WriterOptions options;
    options.chunk_rows = 1;
    const auto writer = Writer::open(memory, options);
    const RowLayout layout = writer->layout();
    if (layout.is_set() && layout.row_bytes() <= kFuzzChunkBytes) {
      writer->append(layout, std::vector<std::byte>(3 * layout.row_bytes()), 3);
    }
    writer->close();
    read_all(memory, Verify::Stored);
  });
}

}  // namespace cdd
