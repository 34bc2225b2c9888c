// Fuzz targets for whole files: read them in every way, walk their index, recover and append, salvage.
#include <algorithm>
#include <memory>

#include "core/storage/memory.h"
#include "core/store/reader.h"
#include "core/store/rescue/rewrite.h"
#include "core/store/writer.h"
#include "tests/fuzz/target.h"

namespace cdd::fuzz {
namespace {

constexpr std::uint64_t kChunkBytes = 1 << 18;  // the limit that the reader of a stranger's file sets
constexpr std::uint64_t kChunks = 64;           // of each file, as many are read
constexpr std::uint32_t kCapacity = 4096;       // of a file's first index block, for what writes one

template <class Call>
bool succeeds(Call&& call) {
  try {
    call();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void read_all(const std::shared_ptr<Storage>& storage, Verify verify) {
  ReaderOptions options;
  options.verify = verify;
  options.max_chunk_raw_bytes = kChunkBytes;
  Reader reader(storage, options);
  const std::uint64_t rows = reader.rows();
  const std::uint64_t row_bytes = reader.layout().row_bytes();
  if (rows > 0 && row_bytes <= kChunkBytes) {
    const std::uint64_t step = std::min<std::uint64_t>(rows, kChunkBytes / row_bytes);
    Buffer out(static_cast<std::size_t>(step * row_bytes));
    for (std::uint64_t i = 0; i < kChunks; ++i) {
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
  for (std::uint64_t i = 0; i < std::min(reader.chunks(), kChunks); ++i) {
    succeeds([&] { reader.chunk_info(i); });
    succeeds([&] { reader.verify_chunk(i); });
  }
  succeeds([&] { reader.refresh(); });
}

std::shared_ptr<MemoryStorage> copy_of(Bytes file) {
  const auto memory = std::make_shared<MemoryStorage>();
  memory->write_at(0, file);
  return memory;
}

// Whether all chunks are whole and their rows follow one another.
bool is_sound(const std::shared_ptr<Storage>& storage) {
  ReaderOptions options;
  options.max_chunk_raw_bytes = kChunkBytes;
  const Reader reader(storage, options);
  const std::uint64_t chunks = reader.chunks();
  if (chunks > kChunks || !reader.verify_chunks(0, chunks).empty()) return false;
  const ChunkInfo last = chunks == 0 ? ChunkInfo{} : reader.chunk_info(chunks - 1);
  return last.stop == reader.rows();
}

std::uint64_t rows_of(const std::shared_ptr<Storage>& storage) { return Reader(storage).rows(); }

}  // namespace

void open(Bytes file) {
  const auto view = std::make_shared<ViewStorage>(file, "fuzzed");
  if (!succeeds([&] { read_all(view, Verify::Stored); })) return;
  succeeds([&] { read_all(view, Verify::None); });
}

// The index alone, of files whose chunks nobody could decode.
void walk_index(Bytes file) {
  const ViewStorage view(file, "fuzzed");
  succeeds([&] {
    const Header header = read_header(view);
    BlockWalk walk(view, header.metadata, header.first_block);
    const CommittedEnd end = walk.find_end();
    require(end.durable_chunks <= end.chunks, "no more chunks are durable than there are");
    walk.find_tail();
    for (std::uint64_t k = 0; k < std::min<std::uint64_t>(walk.blocks().size(), 8); ++k)
      succeeds([&] { walk.is_sealed(k); });
    walk.follow_link();
  });
  succeeds([&] {
    const Header header = read_header(view);
    ChunkIndex index(view, header.metadata, header.first_block);
    const std::uint64_t chunks = index.chunks();
    for (std::uint64_t i = 0; i < kChunks && i < chunks; ++i) {
      const std::uint64_t chunk = i % 2 == 0 ? i / 2 : chunks - 1 - i / 2;
      const ChunkEntry entry = index.entry(chunk);
      require(entry.row_begin <= entry.row_end, "a chunk has as many rows as it has");
    }
    for (std::uint64_t i = 0; i < kChunks && i < index.rows(); ++i) {
      const std::uint64_t row = i % 2 == 0 ? i / 2 : index.rows() - 1 - i / 2;
      require(index.chunk_of_row(row) <= chunks, "a row is in a chunk");
    }
    index.refresh();
  });
}

// After any recovery of a file that does not lie, appending works, and what was appended is there after
// closing and opening again. One that lies, with checks that hold, may do so on.
void recover(Bytes file) {
  const auto memory = copy_of(file);
  WriterOptions options;
  options.chunk_rows = 1;
  bool sound = false;
  std::uint64_t before = 0;
  succeeds([&] {
    Writer::open(memory, options)->close();
    sound = is_sound(memory);
    before = rows_of(memory);
  });
  Buffer rows;
  const bool written = succeeds([&] {
    const auto writer = Writer::open(memory, options);
    const RowLayout layout = writer->layout();
    if (!layout.is_set() || layout.row_bytes() > kChunkBytes) return;
    rows.resize(3 * std::size_t{layout.row_bytes()}, std::byte{0x3c});
    writer->append(layout, rows, 3);
    writer->close();
  });
  if (!sound || rows.empty()) {
    succeeds([&] { read_all(memory, Verify::Stored); });
    return;
  }
  require(written, "a sound store takes rows");
  require(rows_of(memory) == before + 3, "what was appended is there");
  Buffer got(rows.size());
  Reader(memory).read_into({before, 3}, got);
  require(got == rows, "what was appended is equal");
  Writer::open(memory, options)->close();
  require(rows_of(memory) == before + 3, "opening and closing changes no rows");
  read_all(memory, Verify::Stored);
}

// What salvage takes for whole is a sound store when it is copied.
void salvage_records(Bytes file) {
  const ViewStorage view(file, "fuzzed");
  succeeds([&] {
    const Salvage found = salvage(view, kChunkBytes);
    if (found.header.metadata.first_capacity > kCapacity) return;  // a large file for each input
    const auto copy = std::make_shared<MemoryStorage>();
    copy_records(view, found.header, found.layout, found.records, *copy);
    const Reader reader(copy);
    require(reader.rows() == found.rows, "a copy has all rows that were found");
    require(reader.verify_chunks(0, reader.chunks()).empty(), "a copy is sound");
  });
}

// What a header says survives being written again.
void header(Bytes file) {
  Header first;
  if (!succeeds([&] { first = read_header(ViewStorage(file, "fuzzed")); })) return;
  if (first.user_meta.size() > file.size() * 1024) return;  // a frame of zeros: large for nothing
  const Buffer written = encode_header(first.metadata, first.user_meta);
  const Header second = read_header(ViewStorage(written, "written"));
  require(second.first_block == written.size(), "a header is as long as it says");
  require(second.user_meta == first.user_meta, "user metadata survive");
  std::byte metadata[2][kMetadataBytes];
  put_metadata(first.metadata, {}, metadata[0]);
  put_metadata(second.metadata, {}, metadata[1]);
  require(std::equal(metadata[0], metadata[0] + kMetadataBytes, metadata[1]), "metadata survive");
}

}  // namespace cdd::fuzz
