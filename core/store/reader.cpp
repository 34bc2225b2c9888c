#include "core/store/reader.h"

#include <algorithm>

#include "core/codec/cells.h"
#include "core/format/cdd/record.h"
#include "core/os/fork_gate.h"
#include "core/store/find_layout.h"
#include "core/threads/for_each.h"

namespace cdd {
namespace {

struct RecordBytes {};
struct VerifiedRows {};

using ull = unsigned long long;  // for printf

// A read of at least as many bytes is worth waking other threads for.
constexpr std::size_t kParallelBytes = std::size_t{2} << 20;

Place place_of(std::uint64_t chunk, std::uint64_t offset) {
  return {Place::Kind::Chunk, chunk, Place::kNone, offset};
}

}  // namespace

const RowLayout Reader::kUnset;

Reader::Reader(std::shared_ptr<Storage> storage, const ReaderOptions& options)
    : header_(read_header(*storage)),
      storage_(std::move(storage)),
      is_far_(storage_->is_far()),
      verify_once_(options.verify_once),
      verify_(options.verify),
      file_bytes_(storage_->size()),
      check_salt_(header_.metadata.check_salt()),
      max_chunk_raw_bytes_(std::min(options.max_chunk_raw_bytes, header_.metadata.max_chunk_raw_bytes)),
      index_(*storage_, header_.metadata, header_.first_block) {
  static_assert(sizeof(storage_) + 4 + 4 * sizeof(std::uint64_t) + sizeof(layout_) + ChunkIndex::kWarmBytes <=
                kWarmBytes);
  if (options.as_of) show(*options.as_of);
  if (is_far_) index_.digest(index_.chunks());  // all of it now: later look-ups would fetch within locks
  learn_fixed_bytes();
  load_layout();
}

void Reader::show(const Snapshot& snapshot) {
  const char* const name = storage_->name().c_str();
  if (snapshot.id != header_.metadata.salt) {
    fail(ErrorCode::Corrupt, "%s was replaced: its id is %s, that of the store that was read is %s", name,
         hex(header_.metadata.salt).c_str(), hex(snapshot.id).c_str());
  }
  if (snapshot.chunks > index_.chunks()) {
    fail(ErrorCode::Truncated, "%s has %llu chunks, of %llu that it had when it was read", name,
         ull{index_.chunks()}, ull{snapshot.chunks});
  }
  if (index_.digest(snapshot.chunks) != snapshot.digest) {
    fail(
        ErrorCode::Corrupt,
        "%s has other rows than the store that was read: one of the two is a copy that was written to on its "
        "own, or its index is damaged",
        name);
  }
  index_.show_only(snapshot.chunks, snapshot.rows);
}

Snapshot Reader::snapshot() const {
  const ForkGate gate;
  const std::lock_guard lock(refresh_mutex_);
  const std::uint64_t chunks = index_.chunks();
  return {header_.metadata.salt, chunks, index_.rows(), index_.digest(chunks)};
}

void Reader::learn_fixed_bytes() {
  for (std::uint64_t chunk = index_.durable_chunks(); chunk > 0; --chunk) {
    const ChunkEntry last = index_.entry(chunk - 1);
    if (last.is_damaged()) continue;
    fixed_bytes_.store(last.offset + last.size, std::memory_order_relaxed);
    return;
  }
}

// When a crash lost all the records there are, it has none yet.
void Reader::load_layout() {
  layout_ = find_layout(*storage_, header_, index_);
  if (layout_.is_set()) {
    layout_known_.store(true, std::memory_order_release);
  } else if (index_.durable_chunks() > 0) {
    fail_without_layout(*storage_, index_);
  }
}

ChunkRange Reader::chunks_of(RowRange range) const {
  check_range(range, rows());
  if (range.count == 0) return {};
  const std::uint64_t last = index_.chunks() - 1;  // the last slots may be damaged
  return {std::min(index_.chunk_of_row(range.first), last),
          std::min(index_.chunk_of_row(range.first + range.count - 1), last) + 1};
}

bool Reader::is_cached(std::uint64_t chunk) const {
  check_chunk(chunk);
  const ChunkEntry entry = index_.entry(chunk);
  return storage_->is_cached(entry.offset, entry.size);
}

void Reader::prefetch(RowRange range) const {
  const ChunkRange chunks = chunks_of(range);
  if (chunks.first == chunks.end) return;
  const ChunkEntry first = index_.entry(chunks.first);
  const ChunkEntry last = index_.entry(chunks.end - 1);
  if (first.is_damaged() || last.is_damaged() || last.offset < first.offset) return;
  storage_->prefetch(first.offset, static_cast<std::size_t>(last.offset + last.size - first.offset));
}

void Reader::check_chunk(std::uint64_t chunk) const {
  if (chunk < chunks()) return;
  fail(ErrorCode::OutOfRange, "chunk %llu does not exist: the store has %llu", ull{chunk}, ull{chunks()});
}

void Reader::read_into(RowRange range, MutableBytes out, const Cells* cells) const {
  check_range(range, rows());
  cells = checked_cells(layout(), cells);
  const std::uint64_t row_bytes = cells_bytes(layout(), cells);
  std::uint64_t bytes = ~std::uint64_t{0};
  if (!checked_mul(range.count, row_bytes, &bytes) || bytes != out.size()) {
    fail(ErrorCode::InvalidArgument, "a buffer of %zu bytes is too %s for %llu rows of %llu bytes",
         out.size(), out.size() > bytes ? "long" : "short", ull{range.count}, ull{row_bytes});
  }
  if (range.count == 0) return;
  if (is_far_) ask(range);
  const bool is_large = range.count >= kParallelBytes / layout_.row_bytes() && threads() > 1;
  if (is_large) {
    read_range_in_parallel(range, cells, out.data());
  } else {
    read_range(range, cells, out.data());
  }
}

void Reader::read_range(RowRange range, const Cells* cells, std::byte* out) const {
  const std::size_t row_bytes = cells_bytes(layout_, cells);
  const std::uint64_t end = range.first + range.count;
  for (std::uint64_t chunk = index_.chunk_of_row(range.first), row = range.first; row < end; ++chunk) {
    const OpenChunk open = open_chunk_with(chunk, row);
    const RowRange part{row - open.rows.first, std::min(end, open.rows.first + open.rows.count) - row};
    decode(open, part, cells, out);
    out += part.count * row_bytes;
    row += part.count;
  }
}

Bytes Reader::read_record(const ChunkEntry& entry) const {
  if (entry.is_damaged()) {
    fail(ErrorCode::Checksum, "its index slot is damaged, so it cannot be found");
  }
  if (!ends_within_file(entry.offset + entry.size)) {
    fail(ErrorCode::Truncated, "its %u stored bytes end at 0x%llx, the file at 0x%llx", entry.size,
         ull{entry.offset + entry.size}, ull{storage_->size()});
  }
  check_addressable(0, entry.size);
  const std::uint64_t end = entry.offset + entry.size;
  const std::uint64_t fixed = fixed_bytes_.load(std::memory_order_relaxed);
  Scratch& own = scratch<RecordBytes>();
  if (end > fixed) return copy_exactly(*storage_, entry.offset, entry.size, own);
  const Bytes record = read_exactly(*storage_, entry.offset, entry.size, own);
  // A map that is cut off right behind the record lacks the padding.
  return end + kScratchPadding <= fixed ? record : own.own(record);
}

// Of a chunk, before anything is allocated for them.
void Reader::check_rows(std::uint64_t rows) const {
  if (rows <= max_chunk_raw_bytes_ / layout().row_bytes()) return;
  const bool is_damage = rows > header_.metadata.max_chunk_raw_bytes / layout().row_bytes();
  fail(is_damage ? ErrorCode::Corrupt : ErrorCode::Limit,
       "%llu rows of %u bytes exceed %s limit of %llu raw bytes a chunk", ull{rows}, layout().row_bytes(),
       is_damage ? "the file's" : "the reader's",
       ull{is_damage ? header_.metadata.max_chunk_raw_bytes : max_chunk_raw_bytes_});
}

bool Reader::ends_within_file(std::uint64_t end) const {
  if (end <= file_bytes_.load(std::memory_order_relaxed)) return true;
  const std::uint64_t bytes = storage_->size();
  file_bytes_.store(bytes, std::memory_order_relaxed);
  return end <= bytes;
}

Reader::OpenChunk Reader::open_chunk(std::uint64_t chunk) const {
  const ChunkEntry entry = index_.entry(chunk);
  OpenChunk open;
  open.number = chunk;
  open.offset = entry.offset;
  open.rows = {entry.row_begin, entry.row_end - entry.row_begin};
  open.check = entry.record_check;
  try {
    open.record = read_record(entry);
    own_record(open, entry.follows_damage);
    if (entry.follows_damage) {
      check_record(open.record, {check_salt_, chunk});
      Bytes payload;
      const std::uint64_t own_rows = parse_record(open.record, &payload).n_rows;
      if (own_rows > open.rows.count)
        fail(ErrorCode::Corrupt, "record has more rows than the index leaves it");
      open.rows = {entry.row_end - own_rows, own_rows};
    }
    if (stored_check(open.record) != entry.record_check) {
      fail(ErrorCode::Checksum, "the record's check is not the one in its index slot");
    }
    check_rows(open.rows.count);
    check_addressable(open.rows.count * layout().row_bytes(), entry.size);
  } catch (Error& error) {
    error.at(place_of(chunk, entry.is_damaged() ? Place::kNone : entry.offset), storage_->name());
    throw;
  }
  return open;
}

// Programs other than a writer may overwrite a file in place while it is mapped. A record that they change
// between its check and its decoding would give wrong rows, so what is checked and decoded is a copy; where
// that would cost too much, see decode_shared().
void Reader::own_record(OpenChunk& open, bool at_any_cost) const {
  Scratch& own = scratch<RecordBytes>();
  open.is_owned = own.owns(open.record);
  if (open.is_owned || (!at_any_cost && (verify_ == Verify::None || !is_dear(open.record)))) return;
  open.record = own.own(open.record);
  open.is_owned = true;
}

// Where slots are damaged, the next chunk in sight may begin behind the row that is asked for.
Reader::OpenChunk Reader::open_chunk_with(std::uint64_t chunk, std::uint64_t row) const {
  const OpenChunk open = open_chunk(chunk);
  if (row < open.rows.first) {
    fail(ErrorCode::Checksum, "%s: rows %llu to %llu are lost: the index slot before chunk %llu is damaged",
         storage_->name().c_str(), ull{row}, ull{open.rows.first}, ull{chunk});
  }
  return open;
}

// Checked as the options say.
void Reader::decode(const OpenChunk& chunk, RowRange range, const Cells* cells, std::byte* out) const {
  const bool full = verify_once_ && first_touch(chunk.number);
  decode(chunk, range, cells, out, full ? Verify::Full : verify_);
}

void Reader::decode(const OpenChunk& chunk, RowRange range, const Cells* cells, std::byte* out,
                    Verify verify) const {
  try {
    if (!chunk.is_owned && verify != Verify::None) return decode_shared(chunk, range, cells, out, verify);
    decode_chunk_rows(layout_, chunk.record, {check_salt_, chunk.number}, verify,
                      static_cast<std::uint32_t>(chunk.rows.count), range, out, cells);
  } catch (Error& error) {
    error.at(place_of(chunk.number, chunk.offset), storage_->name());
    throw;
  }
}

// A record that may change meanwhile is checked when its rows are made: what was overwritten before or
// meanwhile is no longer what the index knows. Decoders take any bytes.
void Reader::decode_shared(const OpenChunk& chunk, RowRange range, const Cells* cells, std::byte* out,
                           Verify verify) const {
  const ChunkKey place{check_salt_, chunk.number};
  const Verify early = verify == Verify::Stored ? Verify::None : verify;
  try {
    decode_chunk_rows(layout_, chunk.record, place, early, static_cast<std::uint32_t>(chunk.rows.count),
                      range, out, cells);
  } catch (const Error&) {
    check_record(chunk.record, place, chunk.check);  // says more
    throw;
  }
  check_record(chunk.record, place, chunk.check);
}

bool Reader::first_touch(std::uint64_t chunk) const {
  const ForkGate gate;
  const std::lock_guard lock(touched_mutex_);
  if (touched_.size() <= chunk) touched_.resize(static_cast<std::size_t>(chunk) + 1);
  const bool first = !touched_[static_cast<std::size_t>(chunk)];
  touched_[static_cast<std::size_t>(chunk)] = true;
  return first;
}

RowRange Reader::chunk_rows(std::uint64_t chunk) const {
  check_chunk(chunk);
  const ChunkEntry entry = index_.entry(chunk);
  if (entry.is_damaged() || entry.follows_damage) return open_chunk(chunk).rows;
  return {entry.row_begin, entry.row_end - entry.row_begin};
}

ChunkInfo Reader::chunk_info(std::uint64_t chunk) const {
  check_chunk(chunk);
  const OpenChunk open = open_chunk(chunk);
  Bytes payload;
  const RecordHeader header = parse_record(open.record, &payload);
  ChunkInfo info;
  info.start = open.rows.first;
  info.stop = open.rows.first + open.rows.count;
  info.codec = codec_name(header.type, header.flags);
  info.raw_bytes = open.rows.count * layout().row_bytes();
  info.stored_bytes = header.size;
  info.offset = open.offset;
  return info;
}

bool Reader::refresh() {
  const ForkGate gate;
  const std::lock_guard lock(refresh_mutex_);
  const std::uint64_t before = rows();
  if (index_.refresh()) {
    storage_->look_again();
    learn_fixed_bytes();
  }
  if (!layout_known_.load(std::memory_order_relaxed)) load_layout();
  return rows() > before;
}

void Reader::verify_chunk(std::uint64_t chunk) const {
  check_chunk(chunk);
  const OpenChunk open = open_chunk(chunk);
  const std::uint64_t bytes = open.rows.count * layout().row_bytes();
  std::byte* const rows = scratch<VerifiedRows>().get(static_cast<std::size_t>(bytes)).data();
  decode(open, {0, open.rows.count}, nullptr, rows, Verify::Full);
}

std::vector<Error> Reader::verify_chunks(std::uint64_t first, std::uint64_t count) const {
  if (first > chunks() || count > chunks() - first) check_chunk(chunks());
  std::vector<Error> errors;
  std::mutex mutex;
  if (count > ~std::size_t{0}) fail(ErrorCode::Unsupported, "%llu chunks in one call", ull{count});
  for_each(static_cast<std::size_t>(count), [&](std::size_t i) {
    try {
      verify_chunk(first + i);
    } catch (Error& error) {
      error.at(place_of(first + i, Place::kNone), storage_->name());
      const std::lock_guard lock(mutex);
      errors.push_back(error);
    }
  });
  std::sort(errors.begin(), errors.end(),
            [](const Error& a, const Error& b) { return a.place().number < b.place().number; });
  return errors;
}

}  // namespace cdd
