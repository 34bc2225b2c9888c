#include "core/store/rescue/rewrite.h"

#include <algorithm>

#include "core/codec/scheme.h"
#include "core/store/reader.h"

namespace cdd {
namespace {

struct RecordBytes {};

// Rows are copied with every check there is: a new file would bear witness to what is wrong.
constexpr ReaderOptions kVerified{.verify = Verify::Full};
constexpr std::size_t kPieceBytes = std::size_t{8} << 20;  // of records in memory at once
constexpr std::size_t kRowBytes = std::size_t{2} << 20;    // of rows: as few as several threads share

std::shared_ptr<Storage> open_source(const std::string& path) {
  return FileStorage::open(path, FileStorage::Access::Read);
}

WholeRecord verified_record(const Reader& reader, std::uint64_t chunk) {
  reader.verify_chunk(chunk);
  const ChunkInfo info = reader.chunk_info(chunk);
  return {chunk, info.offset, static_cast<std::uint32_t>(info.stored_bytes),
          static_cast<std::uint32_t>(info.stop - info.start)};
}

void append_rows(const Reader& reader, std::uint64_t first, std::uint64_t end, Writer& writer,
                 const Progress& progress) {
  const std::uint64_t row_bytes = reader.layout().row_bytes();
  const std::uint64_t step = std::max<std::uint64_t>(1, (kRowBytes + row_bytes - 1) / row_bytes);
  std::vector<std::byte> rows;
  for (std::uint64_t row = first; row < end; row += step) {
    const std::uint64_t count = std::min(step, end - row);
    rows.resize(static_cast<std::size_t>(count * row_bytes));
    reader.read_into({row, count}, rows);
    writer.append(reader.layout(), rows, count);
    tell(progress, row + count, end);
  }
}

}  // namespace

void copy_records(const Storage& from, const Header& header, const RowLayout& layout,
                  std::span<const WholeRecord> records, WritableStorage& to, const Progress& progress) {
  Metadata metadata = header.metadata;
  metadata.salt = random_salt();
  metadata.index_type = BlockType::Slots;
  metadata.layout = layout;
  const std::vector<std::byte> start = encode_header(metadata, header.user_meta);
  to.truncate(0);
  to.write_at(0, Bytes(start));
  IndexWriter index = IndexWriter::create(to, metadata, start.size());
  std::vector<std::byte> bytes;
  std::vector<PendingChunk> pending;
  for (std::size_t i = 0; i < records.size(); ++i) {
    tell(progress, i, records.size());
    const WholeRecord& record = records[i];
    const std::size_t at = static_cast<std::size_t>(align_up(bytes.size(), kRecordAlignment));
    const Bytes read = read_exactly(from, record.offset, record.size, scratch<RecordBytes>());
    bytes.resize(at);
    bytes.insert(bytes.end(), read.begin(), read.end());
    const bool continued =
        (load<std::uint64_t>(read.data() + kRecordFlagsAt) & chunk_flags::kBatchCont) != 0 &&
        i + 1 < records.size() && records[i + 1].chunk == record.chunk + 1;
    const std::uint32_t check =
        seal_record(MutableBytes(bytes).subspan(at), {metadata.check_salt(), i}, continued);
    pending.push_back({at, record.size, check, record.n_rows});
    if (continued && bytes.size() < kPieceBytes) continue;
    index.append(bytes, pending, !continued);
    bytes.clear();
    pending.clear();
  }
  index.close();
}

namespace {

// The source is closed by the end of these two: Windows replaces no file that is open.

void copy_first_rows(const std::string& path, std::uint64_t rows, const std::shared_ptr<FileStorage>& to,
                     const Progress& progress) {
  const auto from = open_source(path);
  const Reader reader(from, kVerified);
  if (rows > reader.rows()) {
    fail(ErrorCode::OutOfRange, "%s has %llu rows, not %llu", path.c_str(),
         static_cast<unsigned long long>(reader.rows()), static_cast<unsigned long long>(rows));
  }
  std::vector<WholeRecord> records;
  std::uint64_t row = 0;
  for (std::uint64_t chunk = 0; row < rows; ++chunk) {
    const RowRange range = reader.chunk_rows(chunk);
    if (range.first + range.count > rows) break;
    records.push_back(verified_record(reader, chunk));
    row = range.first + range.count;
    tell(progress, row, rows);
  }
  copy_records(*from, reader.header(), reader.layout(), records, *to,
               [&](std::uint64_t, std::uint64_t) { tell(progress, row, rows); });
  if (row < rows) {
    WriterOptions options;
    options.durability = Durability::None;
    const auto writer = Writer::open(to, options);
    append_rows(reader, row, rows, *writer, progress);
    writer->close();
  }
}

// Rows are to stay what they are, whatever codec is named.
void check_lossless(const WriterOptions& options) {
  const auto schemes = schemes_for(options.codec, options.layout, options.level, options.float16);
  if (std::ranges::any_of(schemes, [](const Scheme& scheme) { return scheme.float16.enabled; })) {
    fail(ErrorCode::InvalidArgument,
         "codec \"%s\" would store rows as float16, and compacting keeps them as they are",
         options.codec.c_str());
  }
}

Compacted encode_anew(const std::string& path, WriterOptions options, const std::shared_ptr<FileStorage>& to,
                      const Progress& progress) {
  const auto from = open_source(path);
  const Reader reader(from, kVerified);
  options.layout = reader.layout();
  if (reader.layout().is_set()) check_lossless(options);
  options.user_meta = reader.header().user_meta;
  options.durability = Durability::None;
  if (options.chunk_rows == 0) options.chunk_rows = reader.header().metadata.chunk_rows;
  options.first_capacity = reader.header().metadata.first_capacity;
  const auto writer = Writer::create(to, options);
  if (reader.rows() > 0) append_rows(reader, 0, reader.rows(), *writer, progress);
  writer->close();
  return {from->size(), to->size()};
}

}  // namespace

Salvage repair_file(const std::string& path, const std::string& output, bool replace,
                    std::uint64_t max_chunk_raw_bytes, const Progress& progress) {
  const auto from = FileStorage::open(path, FileStorage::Access::ReadAlone);
  const auto to = FileStorage::create(output, replace);
  Salvage found = salvage(*from, max_chunk_raw_bytes, progress);
  copy_records(*from, found.header, found.layout, found.records, *to,
               [&](std::uint64_t, std::uint64_t) { tell(progress, from->size(), from->size()); });
  to->publish();
  return found;
}

void truncate_file(const std::string& path, const std::string& output, bool replace, std::uint64_t rows,
                   const Progress& progress) {
  const std::shared_ptr<FileStorage> to = FileStorage::create(output, replace);
  copy_first_rows(path, rows, to, progress);
  to->publish();
}

Compacted compact_file(const std::string& path, const std::string& output, bool replace, bool only_smaller,
                       WriterOptions options, const Progress& progress) {
  const std::shared_ptr<FileStorage> to = FileStorage::create(output, replace);
  const Compacted sizes = encode_anew(path, std::move(options), to, progress);
  if (!only_smaller || sizes.bytes_after < sizes.bytes_before) to->publish();
  return sizes;
}

}  // namespace cdd
